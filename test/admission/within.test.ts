// needs: nothing
import { CpuSet, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it, onTestFinished } from 'vitest';

const podOf = (uid: string, cpu: number) => ({
  uid,
  containers: [{ name: 'main', limits: { cpu, memory: '1Gi' } }],
});

async function managerOf() {
  const topology = await discover({ synthetic: 'numa:2(memory=8GiB) core:4 pu:1' });
  const manager = await openManager({ topology });
  onTestFinished(() => manager.close());
  return manager;
}

describe('the CPUs of a request that is limited to some', () => {
  it('are some of these, and so is their memory', async () => {
    const manager = await managerOf();
    const options = { owner: 'persistent', within: '6-7' } as const;
    expect(String(manager.plan(podOf('a', 2), options).containers[0]!.cpus)).toBe('6-7');
    const [main] = (await manager.admit(podOf('a', 2), options)).containers;
    expect([String(main!.cpus), String(main!.memory[0]!.nodes)]).toEqual(['6-7', '1']);
  });

  it('are refused if there are not so many, with the limit as a reason', async () => {
    const manager = await managerOf();
    const rejected = manager.admit(podOf('a', 3), { owner: 'persistent', within: CpuSet.of(2, 3) });
    await expect(rejected).rejects.toThrow(/may have CPUs 2-3 only/);
    expect(manager.grants()).toEqual([]);
  });

  it('are checked as a list', async () => {
    const manager = await managerOf();
    expect(() => manager.plan(podOf('a', 1), { within: 5 as never })).toThrow(/within must be a CpuSet or/);
  });
});

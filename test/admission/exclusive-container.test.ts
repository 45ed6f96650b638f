// needs: nothing
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it, onTestFinished } from 'vitest';

const POD = {
  uid: 'a',
  containers: [
    { name: 'main', requests: { cpu: 2, memory: '1Gi' } },
    { name: 'log', requests: { cpu: 1 } },
  ],
};

async function managerOf() {
  const topology = await discover({ synthetic: 'numa:2(memory=8GiB) core:4 pu:1' });
  const manager = await openManager({ topology, reservedSystemCPUs: '0' });
  onTestFinished(() => manager.close());
  return manager;
}

describe('one container of a Burstable pod', () => {
  it('gets exclusive CPUs on request; the others and the memory are shared', async () => {
    const manager = await managerOf();
    const options = { owner: 'persistent', exclusiveContainer: 'main' } as const;
    expect(manager.whyShared(POD, options)).toEqual([null, expect.stringContaining('Burstable: ')]);
    const planned = manager.plan(POD, options);
    const pod = await manager.admit(POD, options);
    const cpus = pod.containers.map((container) => container.cpus && String(container.cpus));
    expect(cpus).toEqual(['1-2', null]);
    expect(planned.containers.map((container) => container.cpus && String(container.cpus))).toEqual(cpus);
    expect(pod.containers.flatMap(({ memory }) => memory)).toEqual([]);
    expect(String(manager.sharedPool())).toBe('0,3-7');
    await manager.release('a');
    expect(String(manager.sharedPool())).toBe('0-7');
  });

  it('gets none without the option, as from the kubelet', async () => {
    const manager = await managerOf();
    const pod = await manager.admit(POD, { owner: 'persistent' });
    expect(pod.containers.map(({ cpus }) => cpus)).toEqual([null, null]);
  });

  it('gets none for a fraction, and says so', async () => {
    const manager = await managerOf();
    const pod = { containers: [{ name: 'main', requests: { cpu: 1.5 } }] };
    expect(manager.whyShared(pod, { exclusiveContainer: 'main' })).toEqual([
      'container main: 1500m is not a whole number of CPUs',
    ]);
  });

  it.each([
    ['a container that there is not', POD, 'web', /exclusiveContainer must be 'main' or 'log', not 'web'/],
    ['a Guaranteed pod', { containers: [{ name: 'main', limits: { cpu: 1, memory: 1 } }] }, 'main', /left out: the pod is Guaranteed/],
  ])('is refused for %s', async (_, pod, exclusiveContainer, message) => {
    const manager = await managerOf();
    expect(() => manager.plan(pod, { exclusiveContainer })).toThrow(message);
  }); // biome-ignore format: a table
});

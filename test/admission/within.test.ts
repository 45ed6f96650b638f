// needs: nothing
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { expect, it, onTestFinished } from 'vitest';

const pod = (uid: string, cpu: number) => ({
  uid,
  qosClass: 'Guaranteed' as const,
  containers: [{ name: 'main', limits: { cpu, memory: '1Gi' } }],
});

async function managerOf() {
  const topology = await discover({ synthetic: 'numa:2(memory=8GiB) core:4 pu:1' });
  const manager = await openManager({ topology, policy: 'single-numa-node' });
  onTestFinished(() => manager.close());
  return manager;
}

it('exclusive CPUs are chosen among those that the request names', async () => {
  const manager = await managerOf();
  const options = { owner: 'persistent', within: '3-6' } as const;
  expect(String(manager.plan(pod('a', 3), options).containers[0]!.cpus)).toBe('4-6');
  const admitted = await manager.admit(pod('a', 3), options);
  expect(String(admitted.containers[0]!.cpus)).toBe('4-6');
  expect(String(manager.sharedPool())).toBe('0-3,7');
});

it('a request that does not fit there is rejected, and says so', async () => {
  const manager = await managerOf();
  await expect(manager.admit(pod('a', 3), { owner: 'persistent', within: '0-1' })).rejects.toMatchObject({
    code: 'ERR_TOPOLOGY_AFFINITY',
    message: expect.stringContaining('to be chosen from CPUs 0-1 only'),
  });
  await expect(manager.admit(pod('a', 1), { within: 'x' })).rejects.toMatchObject({
    code: 'ERR_INVALID_LIST',
  });
});

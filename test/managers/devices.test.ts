// needs: agents
// Devices: which of several a container gets, and requests that wait for them.
import { describe, expect, it } from 'vitest';
import type { DeviceSpec } from '../../lib/entries/topology.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

const GPU = 'example.com/gpu';

const fourNodes = () => machineOf([0, 1, 2, 3].map(() => ({ cpus: 4, memory: 8 * GI })));

/** The devices of a container that runs on node 0. */
async function given(devices: DeviceSpec[], count: number): Promise<string[]> {
  const manager = await simulate(await fourNodes(), { policy: 'best-effort' });
  manager.registerDevices(GPU, devices);
  const pod = await manager.admit({ containers: [guaranteed('main', { cpu: 2, [GPU]: count })] });
  expect(pod.container('main').cpus?.toArray()).toEqual([0, 1]);
  return pod.container('main').devices[GPU]!.map(({ id }) => id);
}

describe('devices near several NUMA nodes', () => {
  it('come after those that are near the hint’s nodes alone', async () => {
    const devices = [
      { id: 'a', numaNodes: [0, 1] },
      { id: 'b', numaNodes: [0] },
      { id: 'c', numaNodes: [0, 1] },
    ];
    expect(await given(devices, 1)).toEqual(['b']);
  });

  it('come in the order of how many other nodes they are near', async () => {
    const devices = [
      { id: 'a', numaNodes: [0, 1, 2, 3] },
      { id: 'b', numaNodes: [0, 1, 2] },
      { id: 'c', numaNodes: [0, 1] },
    ];
    expect(await given(devices, 1)).toEqual(['c']);
    expect(await given(devices, 2)).toEqual(['b', 'c']);
  });
});

describe('a request that waits', () => {
  it('is served once its missing devices are given back', async () => {
    const manager = await simulate(await fourNodes());
    manager.registerDevices(GPU, [{ id: 'only', numaNodes: [0] }]);
    const request = { cpu: 1, resources: { [GPU]: 1 } };
    const first = await manager.acquire(request);
    const waiting = manager.acquire({ ...request, wait: true });
    const outcome = waiting.then(
      () => 'served',
      ({ code }) => code,
    );
    // Commits by requests that do not wait make it try again.
    await (await manager.acquire({ cpu: 1 })).release();
    await first.release();
    expect(await outcome).toBe('served');
  });
});

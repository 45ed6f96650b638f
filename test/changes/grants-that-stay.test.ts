// needs: agents
import { describe, expect, it } from 'vitest';
import { errorOf } from '../support/error-of.js';
import {
  askForThree,
  cpusByName,
  fragment,
  fragmentByTwo,
  openTwoNodes,
  SINGLE,
} from '../support/fragmented.js';

const container = (cpu: number) => ({ name: 'main', limits: { cpu, memory: '1Gi' } });

describe('a grant that consents to moves', () => {
  it('stays if its application does not answer, and the next candidate moves', async () => {
    const manager = await openTwoNodes();
    const movers = await fragmentByTwo(manager, { movable: { notice: 1000 } });
    const asked: string[] = [];
    for (const mover of movers) {
      mover.on('move', ({ uid, waitUntil }) => {
        if (asked.push(uid) === 1) waitUntil(new Promise(() => {}));
      });
    }
    await askForThree(manager);
    expect(asked.map((uid) => String(manager.grant(uid).numaNodes))).toEqual(['0', '1']);
  });

  it('stays if the kubelet takes its target CPUs', async () => {
    const manager = await openTwoNodes();
    const { mover } = await fragment(manager);
    mover.on('move', ({ cpus }) =>
      manager.recordKubelet([{ namespace: 'default', name: 'web', containers: [{ name: 'main', cpus }] }]),
    );
    const error = await errorOf(() => askForThree(manager));
    expect(error).toMatchObject({ details: { repacking: { unmoved: [{ uid: mover.uid }] } } });
    expect(cpusByName(manager)).toEqual({ mover: '0-1', filler: '4-5' });
    expect(String(manager.kubelet()!.cpus)).toBe('6-7');
    expect(mover.upcoming).toBeNull();
  });

  it('is not asked if its init containers have left something', async () => {
    const manager = await openTwoNodes();
    const initContainers = [{ ...container(2), name: 'setup' }];
    const pod = { uid: 'mover', initContainers, containers: [container(2)] };
    await manager.admit(pod, { ...SINGLE, movable: true });
    const rest = await manager.acquire({ cpu: 2, ...SINGLE });
    await manager.acquire({ cpu: 2, name: 'filler', ...SINGLE });
    await rest.release();
    const { repacking } = manager.plan({ containers: [container(3)] }, SINGLE);
    expect(repacking).toMatchObject({ moves: [], reason: 'grants' });
  });
});

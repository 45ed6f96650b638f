// needs: agents
// Which pages a move takes along, on a machine that stands for this one.
import { expect, it, onTestFinished, vi } from 'vitest';
import type { MovingPod } from '../../lib/account/pod-holdings.js';
import { native } from '../../lib/base/native.js';
import { movePages } from '../../lib/changes/carry-out.js';
import { NodeSet } from '../../lib/index.js';
import { Topology } from '../../lib/machine/topology.js';
import { GI, machineOf } from '../support/memory-machine.js';
import { hostOf, placeAt, podOf } from '../support/moves.mjs';
import { simulate } from '../support/simulated.js';

const SINGLE = { memory: '1Gi', policy: 'single-numa-node' } as const;

/** From where to where the pages of this process go if a grant on node 0 moves to node 2. */
async function migrations(others: number): Promise<string[][]> {
  const { handle } = await machineOf([0, 1, 2].map(() => ({ cpus: 4, memory: 8 * GI })));
  const manager = await simulate(await machineOf([0, 1, 2].map(() => ({ cpus: 4, memory: 8 * GI }))));
  const { uid } = await manager.acquire({ ...SINGLE, cpu: 1, movable: true });
  for (let i = 0; i < others; i++) await manager.acquire({ ...SINGLE, cpu: 1 });
  const seen: string[][] = [];
  onTestFinished(() => void vi.restoreAllMocks());
  vi.spyOn(native, 'grantThreads').mockReturnValue([1]);
  vi.spyOn(native, 'migratePages').mockImplementation((from, to) => {
    seen.push([from, to].map((nodes) => String(new NodeSet(nodes))));
    return 0;
  });
  const host = hostOf(manager);
  const before = podOf(host, uid);
  movePages(
    { ...host, topology: new Topology('machine', handle) },
    placeAt(before, '8', 2) as MovingPod,
    before,
  );
  return seen;
}

it('a move takes the pages of the process along', async () => {
  expect(await migrations(0)).toEqual([['0', '2']]);
});

it('a move leaves the pages on nodes of the process’s other grants', async () => {
  expect(await migrations(1)).toEqual([]);
});

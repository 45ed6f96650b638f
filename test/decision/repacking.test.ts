// Room that grants make for a request by moving.
import { describe, expect, it } from 'vitest';
import { memoryOf, presentCpus } from '../../lib/account/pod-holdings.js';
import { type Repacking, repack } from '../../lib/decision/repacking/repacking.js';
import type { AdmitOptions } from '../../lib/index.js';
import { CpuSet } from '../../lib/index.js';
import { GI, MI, machineOf } from '../support/memory-machine.js';
import { type Amounts, RepackingWorld } from '../support/repacking-world.js';

const LIMITS = { maxMoves: 2, budget: 1000 };
const SINGLE: AdmitOptions = { policy: 'single-numa-node' };
const MOVABLE = { movable: [] };

/** NUMA nodes of so many CPUs, one of them reserved, with 8 GiB each. */
async function worldOf(cpus: readonly number[], devices = {}): Promise<RepackingWorld> {
  const topology = await machineOf(cpus.map((count) => ({ cpus: count, memory: 8 * GI })));
  return new RepackingWorld(topology, devices);
}

const ask = (world: RepackingWorld, asked: Amounts, options = SINGLE, limits = LIMITS) =>
  repack(world.question('new', asked, options), world.movable, limits);

function foundFor(world: RepackingWorld, asked: Amounts, options = SINGLE, limits = LIMITS): Repacking {
  const answer = ask(world, asked, options, limits);
  expect(answer).toMatchObject({ isFound: true });
  return answer as Repacking;
}

// [uid, where it goes]
const movesOf = ({ moves }: Repacking, { topology }: RepackingWorld) =>
  moves.map(({ uid, after }) => [uid, topology.nodesOf(presentCpus(after)).toString()]);

describe('a request for which there is room in sum, on no node alone', () => {
  it('has the grant move that is in its way', async () => {
    const world = await worldOf([6, 6]);
    world.admit('a', [{ cpu: 2 }], SINGLE, MOVABLE);
    world.admit('b', [{ cpu: 3 }], SINGLE, MOVABLE);
    world.admit('c', [{ cpu: 3 }], SINGLE);
    world.release('b');
    // Node 0 has 4 free, node 1 has 3.
    const repacking = foundFor(world, [{ cpu: 5 }]);
    expect(movesOf(repacking, world)).toEqual([['a', '1']]);
    expect(world.topology.nodesOf(presentCpus(repacking.pod)).toString()).toBe('0');
    expect(repacking).toMatchObject({ bytes: 64 * MI, cpus: 2, isBounded: false });
  });

  it('gets none without consent', async () => {
    const world = await worldOf([6, 7]);
    world.admit('a', [{ cpu: 2 }], SINGLE);
    world.admit('b', [{ cpu: 5 }], SINGLE);
    expect(ask(world, [{ cpu: 5 }])).toEqual({ isFound: false, reason: 'grants', isBounded: false });
  });
});

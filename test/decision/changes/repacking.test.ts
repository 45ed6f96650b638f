// needs: nothing
// Room that grants make for a request by moving.
import { describe, expect, it } from 'vitest';
import { devicesOf, hasParts, memoryOf, presentCpus } from '../../../lib/account/pod-holdings.js';
import { type Repacking, type RepackLimits, repack } from '../../../lib/decision/changes/repacking.js';
import type { HintProvider } from '../../../lib/decision/hints/hint-provider.js';
import { discover } from '../../../lib/entries/topology.js';
import { GI, MI, machineOf } from '../../support/memory-machine.js';
import { type Amounts, RepackingWorld, type WorldOptions } from '../../support/repacking-world.js';

const LIMITS: RepackLimits = { maxMoves: 2, budget: 1000 };
const SINGLE: WorldOptions = { policy: 'single-numa-node' };
const WHOLE: WorldOptions = { ...SINGLE, cpuManagerPolicyOptions: { 'full-pcpus-only': true } };

/** NUMA nodes of this many CPUs each, with 8 GiB. */
async function worldOf(cpus: readonly number[], devices = {}): Promise<RepackingWorld> {
  const topology = await machineOf(cpus.map((count) => ({ cpus: count, memory: 8 * GI })));
  return new RepackingWorld(topology, devices);
}

interface Grant {
  readonly on: number;
  readonly cpu: number;
  readonly more?: Record<string, number>;
  /** NUMA nodes that it excludes; null: it stays. */
  readonly movable?: readonly number[] | null;
}

/** Grants on these nodes, which may move anywhere unless they say otherwise. */
function fill(world: RepackingWorld, grants: Readonly<Record<string, Grant>>): void {
  for (const [uid, { on, cpu, more, movable = [] }] of Object.entries(grants)) {
    const within = world.topology.nodes[on]!.cpus;
    if (!world.admit(uid, [{ cpu, ...more }], SINGLE, { movable: movable ?? undefined, within }))
      throw new Error(`no room for ${uid}`);
  }
}

const ask = (world: RepackingWorld, asked: Amounts, options = SINGLE, limits = LIMITS) =>
  repack(world.question('new', asked, options), world.movable, limits);

function foundFor(world: RepackingWorld, asked: Amounts, options = SINGLE, limits = LIMITS): Repacking {
  const answer = ask(world, asked, options, limits);
  expect(answer).toMatchObject({ isFound: true });
  return answer as Repacking;
}

// [uid, the nodes where it goes]
const movesOf = ({ moves }: Repacking, { topology }: RepackingWorld) =>
  moves.map(({ uid, after }) => [uid, topology.nodesOf(presentCpus(after)).toString()]);

describe('a request with enough room in total, but on no single node', () => {
  it('makes the grant in its way move', async () => {
    const world = await worldOf([6, 7]);
    fill(world, { a: { on: 0, cpu: 2 }, b: { on: 1, cpu: 4 } });
    const repacking = foundFor(world, [{ cpu: 5 }]);
    expect(movesOf(repacking, world)).toEqual([['a', '1']]);
    expect(world.topology.nodesOf(presentCpus(repacking.pod)).toString()).toBe('0');
    expect(repacking).toMatchObject({ bytes: 64 * MI, cpus: 2, isBounded: false });
    expect(repacking.next().pods.map(({ uid }) => uid)).toEqual(['a', 'b', 'new']);
  });

  it('gets no room without consent', async () => {
    const world = await worldOf([6, 7]);
    world.admit('a', [{ cpu: 2 }], SINGLE);
    world.admit('b', [{ cpu: 5 }], SINGLE);
    expect(ask(world, [{ cpu: 5 }])).toEqual({ isFound: false, reason: 'grants', isBounded: false });
  });

  it('gets no room if no grant has room beside its current place', async () => {
    const world = await worldOf([6, 7]);
    fill(world, { a: { on: 0, cpu: 3 }, b: { on: 1, cpu: 5 } });
    expect(ask(world, [{ cpu: 4 }])).toMatchObject({ isFound: false, reason: 'grants' });
  });

  it('makes one grant give room to another, which makes room for the request', async () => {
    const world = await worldOf([6, 6, 4]);
    fill(world, {
      a: { on: 0, cpu: 3 },
      b: { on: 1, cpu: 2 },
      c: { on: 1, cpu: 2, movable: null },
      d: { on: 2, cpu: 2, movable: null },
    });
    const repacking = foundFor(world, [{ cpu: 6 }]);
    expect(movesOf(repacking, world)).toEqual([
      ['b', '2'],
      ['a', '1'],
    ]);
  });

  it('makes two grants move to one node, to its last CPU', async () => {
    const world = await worldOf([6, 4, 1]);
    fill(world, {
      a: { on: 0, cpu: 1, movable: [2] },
      b: { on: 0, cpu: 1, movable: [2] },
      c: { on: 1, cpu: 2, movable: null },
    });
    expect(movesOf(foundFor(world, [{ cpu: 6 }]), world)).toEqual([
      ['a', '1'],
      ['b', '1'],
    ]);
  });

  it('takes three moves only if it may, and says when its search is incomplete', async () => {
    const world = await worldOf([6, 4, 4, 4]);
    fill(world, { a: { on: 0, cpu: 2 }, b: { on: 0, cpu: 2 }, c: { on: 0, cpu: 2 } });
    fill(world, { d: { on: 1, cpu: 2 }, e: { on: 2, cpu: 2 }, f: { on: 3, cpu: 1 } });
    expect(ask(world, [{ cpu: 6 }])).toEqual({ isFound: false, reason: 'grants', isBounded: false });
    const { moves } = foundFor(world, [{ cpu: 6 }], SINGLE, { maxMoves: 3, budget: 1000 });
    expect(moves.map(({ uid }) => uid)).toEqual(['a', 'b', 'c']);
    expect(ask(world, [{ cpu: 6 }], SINGLE, { maxMoves: 3, budget: 0 })).toMatchObject({
      isFound: false,
      isBounded: true,
    });
  });
});

describe('among several repackings', () => {
  it('the one that moves the fewest bytes wins, whatever the CPUs', async () => {
    const world = await worldOf([6, 6, 9]);
    fill(world, {
      a: { on: 0, cpu: 2, more: { memory: 2 * GI } },
      b: { on: 1, cpu: 3, more: { memory: GI } },
      c: { on: 2, cpu: 4, movable: null },
    });
    const repacking = foundFor(world, [{ cpu: 6 }]);
    expect(movesOf(repacking, world)).toEqual([['b', '0']]);
    expect(repacking.bytes).toBe(GI);
  });

  it('with equal bytes the one that moves the fewest CPUs wins, and with equal CPUs the first uid', async () => {
    const world = await worldOf([6, 6, 9]);
    fill(world, { c: { on: 0, cpu: 2 }, b: { on: 1, cpu: 3 }, d: { on: 2, cpu: 4, movable: null } });
    expect(movesOf(foundFor(world, [{ cpu: 6 }]), world)).toEqual([['c', '1']]);
    world.release('b');
    fill(world, { a: { on: 1, cpu: 2 } });
    expect(movesOf(foundFor(world, [{ cpu: 6 }]), world)).toEqual([['a', '0']]);
  });
});

describe('a grant that moves', () => {
  it('never goes to nodes that it excludes', async () => {
    const world = await worldOf([6, 7, 5]);
    fill(world, { a: { on: 0, cpu: 2, movable: [1] }, b: { on: 1, cpu: 4 } });
    fill(world, { c: { on: 2, cpu: 2 } });
    expect(movesOf(foundFor(world, [{ cpu: 6 }]), world)).toEqual([['a', '2']]);
  });

  it('goes only where its device is near, and takes no other device', async () => {
    const world = await worldOf([6, 7, 8], { x: [0, 2], y: [1] });
    fill(world, {
      a: { on: 0, cpu: 2, more: { 'example.com/gpu': 1 } },
      b: { on: 1, cpu: 3 },
      c: { on: 2, cpu: 4 },
    });
    const repacking = foundFor(world, [{ cpu: 6 }]);
    expect(movesOf(repacking, world)).toEqual([['a', '2']]);
    const [{ before, after }] = repacking.moves as [Repacking['moves'][0]];
    expect(devicesOf(after)).toEqual(devicesOf(before));
    expect(devicesOf(after)).toMatchObject({ 'example.com/gpu': [{ id: 'x' }] });
  });

  it('brings its hugepages, and goes where there are enough', async () => {
    const topology = await machineOf(
      [6, 5, 5].map((cpus, i) => ({ cpus, memory: 8 * GI, hugepages: { 2048: i === 1 ? 10 : 32 } })),
    );
    const world = new RepackingWorld(topology);
    fill(world, {
      a: { on: 0, cpu: 2, more: { 'hugepages-2Mi': 32 * MI } },
      b: { on: 1, cpu: 1, movable: null },
      c: { on: 2, cpu: 1, movable: null },
    });
    const repacking = foundFor(world, [{ cpu: 5, 'hugepages-2Mi': 64 * MI }]);
    expect(movesOf(repacking, world)).toEqual([['a', '2']]);
    expect(memoryOf(repacking.moves[0]!.after)).toEqual([
      { nodes: [2], type: 'memory', bytes: 64 * MI },
      { nodes: [2], type: 'hugepages-2Mi', bytes: 32 * MI },
    ]);
  });

  it('leaves a core whole, and keeps its memory if it stays on its node', async () => {
    const topology = await discover({ synthetic: 'package:1 numa:1(memory=8GB) core:3 pu:2' });
    const world = new RepackingWorld(topology);
    // Two of one core, one of another, and the core of these is never whole again.
    const admit = (uid: string) => world.admit(uid, [{ cpu: 1 }], SINGLE, { movable: [] });
    for (const uid of ['a', 'b', 'c', 'd', 'e']) admit(uid);
    world.release('b', 'd');
    const repacking = foundFor(world, [{ cpu: 2 }], WHOLE);
    expect(repacking).toMatchObject({ bytes: 0, cpus: 1 });
    const [{ before, after }] = repacking.moves as [Repacking['moves'][0]];
    expect(memoryOf(after)).toEqual(memoryOf(before));
  });

  it('has its parts at the new place, too', async () => {
    const world = await worldOf([6, 7]);
    const question = world.question('p', [{ cpu: 3 }], SINGLE);
    world.admitQuestion(
      { ...question, request: { ...question.request, parts: [{ name: 'io', cpu: 1 }] } },
      [],
    );
    fill(world, { b: { on: 1, cpu: 3, movable: null } });
    const [move] = foundFor(world, [{ cpu: 6 }]).moves;
    expect(hasParts(move!.after)).toBe(true);
    expect(move!.after.containers.map(({ name, cpus }) => [name, cpus.size])).toEqual([
      ['io', 1],
      ['.shared', 2],
    ]);
    expect(move!.after.booking!.memory).toEqual([{ nodes: [1], type: 'memory', bytes: 64 * MI }]);
  });

  it('stays while it is about to change', async () => {
    const world = await worldOf([6, 7]);
    fill(world, { a: { on: 0, cpu: 2 }, b: { on: 1, cpu: 4, movable: [0] } });
    const { movable } = world;
    const busy = movable.map((pod) => {
      const { name, cpus, held } = pod.containers[0]!;
      return { ...pod, upcoming: { container: name, cpus, held, by: '' } };
    });
    expect(repack(world.question('new', [{ cpu: 5 }], SINGLE), busy, LIMITS).isFound).toBe(false);
    expect(repack(world.question('new', [{ cpu: 5 }], SINGLE), movable, LIMITS).isFound).toBe(true);
  });
});

describe('nothing is searched', () => {
  it('if the request is admitted unchanged', async () => {
    const world = await worldOf([6, 7]);
    fill(world, { a: { on: 0, cpu: 2 } });
    expect(ask(world, [{ cpu: 5 }])).toMatchObject({ isFound: true, moves: [], bytes: 0, cpus: 0 });
  });

  it('if too little is free in total, or a CPU must stay shared', async () => {
    const world = await worldOf([6, 7]);
    fill(world, { a: { on: 0, cpu: 4 }, b: { on: 1, cpu: 4 } });
    expect(ask(world, [{ cpu: 6 }])).toEqual({ isFound: false, reason: 'sum', isBounded: false });
    expect(ask(world, [{ cpu: 5 }])).toEqual({ isFound: false, reason: 'sum', isBounded: false });
  });

  it('if no node would ever suffice, since devices stay', async () => {
    const world = await worldOf([6, 7], { x: [0], y: [1] });
    fill(world, { a: { on: 0, cpu: 2, more: { 'example.com/gpu': 1 } }, b: { on: 1, cpu: 3 } });
    expect(ask(world, [{ cpu: 1, 'example.com/gpu': 2 }])).toMatchObject({ isFound: false, reason: 'place' });
  });

  it('if a custom hint provider takes part, which cannot be tried', async () => {
    const world = await worldOf([6, 7]);
    fill(world, { a: { on: 0, cpu: 2 }, b: { on: 1, cpu: 4 } });
    const provider: HintProvider = { name: 'mine', hints: () => null, allocate: () => {}, release: () => {} };
    const question = { ...world.question('new', [{ cpu: 5 }], SINGLE), providers: [provider] };
    expect(repack(question, world.movable, LIMITS)).toMatchObject({ isFound: false, reason: 'unknown' });
  });
});

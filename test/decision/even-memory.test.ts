// needs: nothing
// Memory that is booked evenly over the NUMA nodes of a grant.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bookedOn, bookMemory, type MemoryBlock, releaseMemory } from '../../lib/account/booked-memory.js';
import type { ManagerView } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { GI, MI, machineOf } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

const EVEN = { evenMemory: true } as const;
const HUGE = 'hugepages-2Mi';
const machine = (...memory: number[]) =>
  machineOf(memory.map((gib) => ({ cpus: 4, memory: gib * GI, hugepages: { 2048: 100 } })));

// Two NUMA nodes have six CPUs only together.
const wide = (name: string, amounts: Record<string, string>) => ({
  name,
  containers: [guaranteed('main', { cpu: 3, ...amounts }), guaranteed('second', { cpu: 3, ...amounts })],
});
const POD = { ...EVEN, scope: 'pod' } as const;

const bookedBy = (manager: Pick<ManagerView, 'memory'>, type = 'memory') =>
  manager
    .memory()
    .filter((table) => table.type === type)
    .map(({ reserved }) => reserved);

describe('even memory', () => {
  it('is booked in equal parts, and free again after it', async () => {
    const manager = await simulate(await machine(8, 8));
    const pod = await manager.admit(wide('one', { memory: '3Gi' }), POD);
    expect(bookedBy(manager)).toEqual([3 * GI, 3 * GI]);
    await pod.release();
    expect(bookedBy(manager)).toEqual([0, 0]);
  });

  it('is booked node after node unless asked', async () => {
    const manager = await simulate(await machine(8, 8));
    await manager.admit(wide('one', { memory: '3Gi' }), { scope: 'pod' });
    expect(bookedBy(manager)).toEqual([6 * GI, 0]);
  });

  it('is what a node lacks more on the others', async () => {
    const manager = await simulate(await machine(2, 8));
    await manager.admit(wide('one', { memory: '3Gi' }), POD);
    const [small, large] = bookedBy(manager);
    expect(small).toBe(2 * GI - 200 * MI);
    expect(small! + large!).toBe(6 * GI);
  });

  it('is in whole hugepages', async () => {
    const manager = await simulate(await machine(8, 8));
    await manager.admit(wide('one', { memory: '1Gi', [HUGE]: '10Mi' }), POD);
    expect(bookedBy(manager, HUGE)).toEqual([10 * MI, 10 * MI]);
  });

  it('stays even on record, beside that of others', async () => {
    const topology = await machineOf([0, 1].map(() => ({ cpus: 8, memory: 8 * GI })));
    const manager = await simulate(topology);
    const pod = (cpu: number, memory: string) => ({ containers: [guaranteed('main', { cpu, memory })] });
    const one = await manager.admit(pod(10, '4Gi'), EVEN);
    const other = await simulate(topology, { stateDir: manager.stateDir });
    await other.admit(pod(4, '2Gi'), EVEN);
    expect(bookedBy(other)).toEqual([3 * GI, 3 * GI]);
    await other.release(one.uid);
    expect(bookedBy(other)).toEqual([GI, GI]);
  });
});

const UNIT = 4;
const machines = fc.array(fc.nat(20), { minLength: 2, maxLength: 5 });

describe('blocks of even memory', () => {
  it('are booked as evenly as the nodes have room, and come back whole', () => {
    fc.assert(
      fc.property(machines, fc.nat(100), (free, wish) => {
        const total = free.reduce((sum, units) => sum + units, 0);
        const bytes = Math.min(wish, total) * UNIT;
        const block: MemoryBlock = { nodes: free.map((_, node) => node), type: HUGE, bytes, evenBy: UNIT };
        const booked = bookMemory({}, block, (node) => free[node]! * UNIT);
        const parts = free.map((_, node) => bookedOn(booked, node, HUGE) / UNIT);
        expect(parts.reduce((sum, units) => sum + units, 0)).toBe(bytes / UNIT);
        expect(parts.every(Number.isInteger)).toBe(true);
        const most = Math.max(...parts);
        for (const [node, part] of parts.entries())
          expect(part).toBeGreaterThanOrEqual(Math.min(free[node]!, most - 1));
        expect(releaseMemory(booked, block)).toEqual({});
      }),
      { numRuns: budget({ all: 5000, usual: 300 }) },
    );
  });

  it('leave the parts of another alone, where both have room for equal parts', () => {
    fc.assert(
      fc.property(fc.nat(10), fc.nat(10), (a, b) => {
        const blockOf = (units: number): MemoryBlock => ({
          ...{ nodes: [0, 1], type: HUGE },
          ...{ bytes: 2 * units * UNIT, evenBy: UNIT },
        });
        const room = () => 1000;
        const first = bookMemory({}, blockOf(a), room);
        expect(releaseMemory(bookMemory(first, blockOf(b), room), blockOf(b))).toEqual(first);
      }),
      { numRuns: budget({ all: 1000, usual: 100 }) },
    );
  });
});

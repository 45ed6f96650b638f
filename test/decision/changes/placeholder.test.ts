// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MemoryBlock } from '../../../lib/account/booked-memory.js';
import { memoryOf, poolOf } from '../../../lib/account/pod-holdings.js';
import {
  isEmpty,
  memoryInTheWay,
  memoryToYield,
  placeholder,
  withLessRoom,
  withRoom,
  withTarget,
} from '../../../lib/decision/changes/placeholder.js';
import { CpuSet } from '../../../lib/index.js';

const OWNER = { kind: 'process', uuid: 'a5', pid: 1, command: 'x', cgroup: null, unknown: {} } as const;
const NOW = '2024-05-01T10:00:00.000Z';

const block = fc.record({
  nodes: fc.constantFrom([0], [1], [2, 3]),
  type: fc.constantFrom('memory', 'hugepages-2Mi'),
  bytes: fc.integer({ min: 1, max: 8 }),
});
const anyOf = fc.array(block, { maxLength: 4 });

/** Room that several grants have left, one after the other. */
const roomOf = (blocks: readonly MemoryBlock[], cpus = CpuSet.EMPTY) =>
  blocks.reduce(
    (pod, each) => withRoom(withTarget(pod, [each]), CpuSet.EMPTY),
    withRoom(placeholder('room', OWNER, 'ordinary', NOW), cpus),
  );

const sumOn = (blocks: readonly MemoryBlock[], nodes: readonly number[], type: string) =>
  blocks.reduce(
    (sum, each) => sum + (String(each.nodes) === String(nodes) && each.type === type ? each.bytes : 0),
    0,
  );

describe('room that is kept for a request', () => {
  it('yields as much as is lacking, of what it has there, and keeps the rest', () => {
    fc.assert(
      fc.property(anyOf, block, (blocks, lacking) => {
        const room = roomOf(blocks);
        const parts = memoryToYield(room, lacking);
        const had = sumOn(memoryOf(room), lacking.nodes, lacking.type);
        expect(sumOn(parts, lacking.nodes, lacking.type)).toBe(Math.min(had, lacking.bytes));
        const left = memoryOf(parts.reduce(withLessRoom, room));
        for (const nodes of [[0], [1], [2, 3]]) {
          for (const type of ['memory', 'hugepages-2Mi']) {
            const yielded = sumOn(parts, nodes, type);
            expect(sumOn(left, nodes, type)).toBe(sumOn(blocks, nodes, type) - yielded);
          }
        }
      }),
    );
  });

  it('yields memory of some of the nodes on which it is lacking', () => {
    const room = roomOf([{ nodes: [2], type: 'memory', bytes: 3 }]);
    expect(memoryToYield(room, { nodes: [2, 3], type: 'memory', bytes: 5 })).toMatchObject([{ bytes: 3 }]);
    expect(memoryToYield(room, { nodes: [3], type: 'memory', bytes: 5 })).toEqual([]);
  });

  it('is in the way where its nodes are allocated together with others', () => {
    const [alone, both] = [
      { nodes: [0], type: 'memory', bytes: 3 },
      { nodes: [2, 3], type: 'memory', bytes: 4 },
    ];
    const room = roomOf([alone, both]);
    const inTheWay = (nodes: number[]) =>
      memoryInTheWay(room, [{ nodes, type: 'hugepages-2Mi', bytes: 1 }]).map((block) => block.nodes);
    expect(inTheWay([0, 1])).toEqual([alone.nodes]);
    expect(inTheWay([3])).toEqual([both.nodes]);
    expect([inTheWay([0]), inTheWay([2, 3]), inTheWay([1])]).toEqual([[], [], []]);
  });

  it('is of the pool that its CPUs are of, and has exclusive ones only where it has some', () => {
    expect(poolOf(placeholder('room', OWNER, 'isolated', NOW))).toBe('isolated');
    const [none, some] = [roomOf([]), roomOf([], CpuSet.of(1))];
    expect([isEmpty(none), none.containers[0]!.isolation]).toEqual([true, 'host']);
    expect([isEmpty(some), some.containers[0]!.isolation]).toEqual([false, 'container']);
  });
});

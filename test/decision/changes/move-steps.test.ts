// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Assignments, emptyAssignments, findPod } from '../../../lib/account/assignments.js';
import {
  bookMemory,
  type MemoryBlock,
  memoryBlocks,
  NOTHING_BOOKED,
} from '../../../lib/account/booked-memory.js';
import type { OwnerRecord, PodAssignment } from '../../../lib/account/pod-assignment.js';
import { replacePod } from '../../../lib/account/pod-changes.js';
import { allCpus, cpusOf, type MovingPod } from '../../../lib/account/pod-holdings.js';
import { exclusiveCpus } from '../../../lib/account/pools.js';
import { moveTime } from '../../../lib/admission/transact.js';
import {
  announceMove,
  beginMove,
  callOffMove,
  finishMove,
  isAt,
  type MoveOrder,
  placeOf,
  recentMoves,
  undoMove,
  withoutAim,
  withoutPlaceholder,
} from '../../../lib/decision/changes/move-steps.js';
import { placeholder } from '../../../lib/decision/changes/placeholder.js';
import { CpuSet, NodeSet } from '../../../lib/index.js';
import { checkHoldings } from '../../../lib/state/format/holdings-check.js';
import { podsText } from '../../../lib/state/format/pod-text.js';

const CPUS = 12;
const ROOMY = 2 ** 40;

const owner = (uuid: string): OwnerRecord => ({
  ...{ kind: 'process', uuid, pid: 1, command: 'x', cgroup: null, unknown: {} },
});

const TIME = moveTime(new Date('2024-05-01T10:00:00.000Z'));

const ASKER: Omit<MoveOrder, 'target'> = { request: 'room', owner: owner('a5'), deadline: TIME.now, ...TIME };

const block = fc.record({
  nodes: fc.constantFrom([0], [1], [2, 3]),
  type: fc.constantFrom('memory', 'hugepages-2Mi'),
  bytes: fc.integer({ min: 0, max: 8 }),
});

const blocks = fc.uniqueArray(block, { selector: ({ type }) => type, maxLength: 2 });

function podOf(uid: string, cpus: CpuSet, memory: readonly MemoryBlock[]): PodAssignment {
  const pod = placeholder(uid, owner('0e'), 'ordinary', TIME.now);
  const hint = { nodes: NodeSet.of(0), preferred: true };
  return {
    ...pod,
    containers: [{ ...pod.containers[0]!, name: 'main', isolation: 'container', cpus, memory, hint }],
  };
}

const spread =
  ({ nodes, bytes }: MemoryBlock) =>
  (node: number) =>
    node === nodes.at(-1) ? bytes : Math.floor(bytes / 3);

/** A pod that moves, another that does not, and where the first goes: CPUs of its own and free ones. */
const moves = fc
  .record({
    order: fc.shuffledSubarray([...Array(CPUS).keys()], { minLength: CPUS, maxLength: CPUS }),
    count: fc.integer({ min: 1, max: 4 }),
    overlap: fc.nat(4),
    memory: blocks,
    other: blocks,
    nodes: fc.constantFrom([0], [1], [2, 3]),
  })
  .map(({ order, count, overlap, memory, other, nodes }) => {
    const own = order.slice(0, count);
    const target = [...own.slice(0, Math.min(overlap, count)), ...order.slice(count)].slice(0, count);
    const pod = podOf('mover', CpuSet.from(own), memory);
    const pods = [pod, podOf('other', CpuSet.from(order.slice(10)), other)];
    const booked = memoryBlocks(pods).reduce(
      (sum, each) => bookMemory(sum, each, spread(each)),
      NOTHING_BOOKED,
    );
    const state: Assignments = {
      ...emptyAssignments({} as never),
      ...{ pods, memory: booked },
    };
    const moved = memory.map((each) => ({ ...each, nodes }));
    const place = placeOf(pod, podOf('mover', CpuSet.from(target), moved));
    return { state, pod, place };
  });

const mover = (state: Assignments) => findPod(state, 'mover') as MovingPod;
const checked = (state: Assignments): Assignments => {
  checkHoldings(state);
  return state;
};
const sum = ({ memory }: Assignments) =>
  Object.values(memory)
    .flatMap((types) => Object.values(types))
    .reduce((all, bytes) => all + bytes, 0);

const NOTHING = { cpus: CpuSet.EMPTY, held: CpuSet.EMPTY };

const announced = ({
  state,
  pod,
  place,
}: {
  state: Assignments;
  pod: PodAssignment;
  place: ReturnType<typeof placeOf>;
}) => checked(announceMove(state, pod, { ...ASKER, target: place }, () => ROOMY));

describe('the steps of a move', () => {
  it('hold both places until it is done, and then the new one and the room', () => {
    fc.assert(
      fc.property(moves, (move) => {
        const first = announced(move);
        const begun = checked(beginMove(first, mover(first), 'b0'));
        const done = checked(finishMove(begun, mover(begun), TIME));
        const both = cpusOf(move.pod).union(move.place.containers[0]!.cpus);
        for (const state of [first, begun]) expect(cpusOf(mover(state)).equals(both)).toBe(true);
        for (const state of [begun, done]) {
          expect(isAt(mover(state), move.place)).toBe(true);
          expect(exclusiveCpus(state).equals(exclusiveCpus(first))).toBe(true);
          expect(sum(state)).toBe(sum(first));
        }
        expect(mover(done)).toMatchObject({ upcoming: null, moves: [TIME.now] });
        const left = checked(withoutPlaceholder(done, 'room'));
        expect(cpusOf(mover(left)).equals(move.place.containers[0]!.cpus)).toBe(true);
        expect(sum(left)).toBe(sum(move.state));
      }),
    );
  });

  it('say where it goes until it is done', () => {
    fc.assert(
      fc.property(moves, (move) => {
        const first = announced(move);
        const begun = beginMove(first, mover(first), 'b0');
        const done = finishMove(begun, mover(begun), TIME);
        const to = String(move.place.containers[0]!.cpus);
        expect([first, begun, done].map((state) => String(mover(state).upcoming?.cpus))).toEqual([
          to,
          to,
          'undefined',
        ]);
      }),
    );
  });

  it('say what it leaves from its beginning until it is done', () => {
    fc.assert(
      fc.property(moves, (move) => {
        const first = announced(move);
        const begun = beginMove(first, mover(first), 'b0');
        const done = finishMove(begun, mover(begun), TIME);
        const from = String(cpusOf(move.pod));
        const formerOf = (state: Assignments) => String(allCpus(mover(state).former ?? NOTHING));
        expect([first, begun, done].map((state) => formerOf(state))).toEqual(['', from, '']);
      }),
    );
  });

  it('leave everything unchanged if it is called off, or undone and called off', () => {
    fc.assert(
      fc.property(moves, (move) => {
        const first = announced(move);
        const begun = beginMove(first, mover(first), 'b0');
        const undone = checked(undoMove(begun, mover(first), 'ERR_SYSCALL'));
        for (const state of [first, undone]) {
          const off = checked(callOffMove(state, mover(state)));
          expect(podsText(off.pods)).toBe(podsText(move.state.pods));
          expect(sum(off)).toBe(sum(move.state));
        }
      }),
    );
  });

  it('leave nothing behind for a grant that has ended, but the room of others', () => {
    fc.assert(
      fc.property(moves, (move) => {
        const first = announced(move);
        const ended = { ...first, pods: first.pods.filter(({ uid }) => uid !== 'mover') };
        const memory = memoryBlocks(ended.pods).reduce(
          (all, each) => bookMemory(all, each, spread(each)),
          NOTHING_BOOKED,
        );
        const left = checked(withoutAim({ ...ended, memory }, 'room'));
        expect(left.pods.map(({ uid }) => uid)).toEqual(['other']);
      }),
    );
  });

  it('forget moves of more than an hour ago, and keep those since', () => {
    const { state, pod, place } = fc.sample(moves, 1)[0]!;
    const since = '2024-05-01T09:00:00.001Z';
    const moved = { ...pod, moves: ['2024-05-01T08:00:00.000Z', TIME.hourAgo, since] };
    const first = announced({ state: replacePod(state, moved), pod: moved, place });
    const begun = beginMove(first, mover(first), 'b0');
    expect(mover(finishMove(begun, mover(begun), TIME)).moves).toEqual([since, TIME.now]);
  });

  it.each([
    ['forward', '2023-05-01T10:00:00.000Z'],
    ['back', '2025-05-01T10:00:00.000Z'],
  ])('count no move of before the clock was set %s by a year', (_, before) => {
    const pod = { ...fc.sample(moves, 1)[0]!.pod, moves: [before] };
    expect(recentMoves(pod, TIME)).toEqual([]);
  });

  it('count a move of the last hour also after the clock was set back a little', () => {
    const pod = { ...fc.sample(moves, 1)[0]!.pod, moves: ['2024-05-01T10:00:05.000Z'] };
    expect(recentMoves(pod, TIME)).toHaveLength(1);
  });

  it('never count an admitted pod as kept room', () => {
    const { state } = fc.sample(moves, 1)[0]!;
    expect(withoutPlaceholder(state, 'other')).toBe(state);
  });
});

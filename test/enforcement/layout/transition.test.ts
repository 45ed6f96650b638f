// needs: machine
// The changes of a commit, without a kernel.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Assignments } from '../../../lib/account/assignments.js';
import type { PodAssignment, UpcomingCpus } from '../../../lib/account/pod-assignment.js';
import {
  grownPods,
  podsNotIn,
  refits,
  transitionOf,
  without,
} from '../../../lib/enforcement/layout/transition.js';
import { CpuSet } from '../../../lib/index.js';

interface GrantParts {
  readonly admittedAt?: string;
  readonly target?: string | null;
  readonly upcoming?: string;
  /** The NUMA nodes of booked memory. */
  readonly memory?: readonly number[];
}

// A grant of one container, with the members that a transition reads.
function grant(uid: string, cpus: string, parts: GrantParts = {}): PodAssignment {
  const { admittedAt = '2026-01-01T00:00:00.000Z', target = null, upcoming, memory = [] } = parts;
  const running = CpuSet.parse(cpus);
  const blocks = memory.length > 0 ? [{ nodes: memory, type: 'memory', bytes: 1 }] : [];
  const container = {
    name: uid,
    cpus: running,
    held: running,
    reusable: { cpus: CpuSet.EMPTY },
    memory: blocks,
  };
  const change: UpcomingCpus | null =
    upcoming === undefined
      ? null
      : { container: uid, cpus: CpuSet.parse(upcoming), held: CpuSet.parse(upcoming), by: 'x' };
  return {
    uid,
    admittedAt,
    containers: [container],
    upcoming: change,
    enforcement: { level: 'cpuset', target },
  } as unknown as PodAssignment;
}

const state = (...pods: PodAssignment[]) => ({ pods, kubelet: null }) as unknown as Assignments;

/** In short: the uids that are added and that end, and the direction of the CPUs. */
function summary(before: Assignments, next: Assignments) {
  const transition = transitionOf(before, next);
  if (!transition) return undefined;
  const { added, ended, isTaken, isGivenBack } = transition;
  const uids = (pods: readonly PodAssignment[]) => pods.map(({ uid }) => uid).join();
  return [uids(added), uids(ended), isTaken ? 'taken' : '', isGivenBack ? 'back' : ''];
}

const a = grant('a', '1');
const b = grant('b', '2-3');

describe('a transition between states', () => {
  it.each([
    { title: 'admits', before: state(a), next: state(a, b), found: ['b', '', 'taken', ''] },
    { title: 'releases', before: state(a, b), next: state(b), found: ['', 'a', '', 'back'] },
    {
      title: 'admits while others end',
      before: state(a),
      next: state(b),
      found: ['b', 'a', 'taken', 'back'],
    },
    {
      title: 'takes the CPUs of a dead owner',
      before: state(a),
      next: state(grant('b', '1')),
      found: ['b', 'a', 'taken', 'back'],
    },
    {
      title: 'treats another grant with the same uid as a new one',
      before: state(a),
      next: state(grant('a', '1', { admittedAt: '2026-01-02T00:00:00.000Z' })),
      found: ['a', 'a', 'taken', 'back'],
    },
    { title: 'grows', before: state(a), next: state(grant('a', '1-2')), found: ['', '', 'taken', ''] },
    { title: 'shrinks', before: state(b), next: state(grant('b', '2')), found: ['', '', '', 'back'] },
    { title: 'moves', before: state(a), next: state(grant('a', '4')), found: ['', '', 'taken', 'back'] },
    {
      title: 'takes the CPUs that a resize announces',
      before: state(a),
      next: state(grant('a', '1', { upcoming: '4' })),
      found: ['', '', 'taken', ''],
    },
  ])('$title', ({ before, next, found }) => {
    expect(summary(before, next)).toEqual(found);
  });

  it('is none if no CPU changes hands', () => {
    const same = state(a, b);
    expect(summary(same, same)).toBeUndefined();
    expect(summary(state(a), state(a, grant('shared', '')))).toBeUndefined();
    expect(summary(state(a, grant('shared', '')), state(a))).toBeUndefined();
    // The grant is another object, for example with a transfer token.
    expect(summary(state(a), state({ ...a, transfer: 'token' }))).toBeUndefined();
  });

  it('is one if a grant without CPUs ends that had groups', () => {
    const shrunk = grant('shrunk', '', { target: '/groups/shrunk' });
    expect(summary(state(a, shrunk), state(a))).toEqual(['', 'shrunk', '', 'back']);
  });

  it('is one if an announced resize is done, since the groups have yet to follow', () => {
    const announced = state(grant('a', '1', { upcoming: '4', target: '/groups/a' }));
    const done = state(grant('a', '4', { upcoming: '1', target: '/groups/a' }));
    expect(summary(announced, done)).toEqual(['', '', '', '']);
  });
});

describe('a transition between lists that share grants', () => {
  const pods = Array.from({ length: 6 }, (_, i) => grant(`${i}`, `${i}`, { target: `/groups/${i}` }));
  const changed = (pod: PodAssignment) => grant(pod.uid, '6-9', { target: pod.enforcement.target });
  // Some are removed, some are other objects with the same uids, some are added.
  const lists = fc.tuple(fc.subarray(pods), fc.subarray(pods), fc.subarray(pods));
  const derived = lists.map(([before, kept, other]) => ({
    before,
    after: kept.map((pod) => (other.includes(pod) ? changed(pod) : pod)),
  }));

  it('is the same as between copies without common objects', () => {
    fc.assert(
      fc.property(derived, ({ before, after }) => {
        const [old, now] = [state(...before), state(...after)];
        const copies = state(...before.map((pod) => ({ ...pod })));
        expect(summary(old, now)).toEqual(summary(copies, now));
        expect(podsNotIn(now, old)).toEqual(podsNotIn(now, copies));
        expect(refits(old, now)).toEqual(refits(copies, now));
        expect(grownPods(old, now)).toEqual(grownPods(copies, now));
      }),
    );
  });
});

describe('groups of a grant', () => {
  it('are fitted if their CPUs change', () => {
    const before = state(grant('a', '1', { target: '/groups/a' }), grant('b', '2', { target: '/groups/b' }));
    const next = state(grant('a', '4', { target: '/groups/a' }), grant('b', '2', { target: '/groups/b' }));
    expect(refits(before, next)).toEqual([{ pod: next.pods[0], earlier: before.pods[0] }]);
    expect(refits(before, before)).toEqual([]);
  });

  it('are fitted if the nodes of their memory change, even without a change of CPUs', () => {
    const target = '/groups/a';
    const before = state(grant('a', '1', { target, memory: [0] }));
    const next = state(grant('a', '1', { target, memory: [0, 1] }));
    expect(refits(before, next)).toEqual([{ pod: next.pods[0], earlier: before.pods[0] }]);
    expect(summary(before, next)).toEqual(['', '', '', '']);
    const without = [state(grant('a', '1', { memory: [0] })), state(grant('a', '1', { memory: [1] }))];
    expect(summary(without[0]!, without[1]!)).toBeUndefined();
  });

  it('do not exist without a cgroup, nor for a new grant', () => {
    expect(refits(state(grant('a', '1')), state(grant('a', '4')))).toEqual([]);
    expect(refits(state(), state(grant('a', '4', { target: '/groups/a' })))).toEqual([]);
  });
});

describe('grants that have grown', () => {
  it('have new CPUs', () => {
    const next = state(grant('a', '1,5'), grant('b', '2'), grant('c', '6'));
    expect(grownPods(state(a, b), next).map(({ uid }) => uid)).toEqual(['a']);
  });
});

describe('a state without grants', () => {
  it('keeps the others and everything else', () => {
    const before = { ...state(a, b), lastCpus: [] };
    expect(without(before, [a])).toEqual({ ...before, pods: [b] });
  });
});

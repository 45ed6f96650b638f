// needs: nothing
// What a recovery makes of the last good state and of owners' files, and what a state lacks.
import { describe, expect, it } from 'vitest';
import { type Assignments, emptyAssignments } from '../../lib/account/assignments.js';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { NumalignError } from '../../lib/base/errors.js';
import { DEFAULT_SETTINGS } from '../../lib/decision/machine-settings.js';
import { CpuSet } from '../../lib/index.js';
import { type FoundOwners, NO_OWNERS, type UnknownOwner } from '../../lib/state/files/owner-claims.js';
import type { Checkpoint } from '../../lib/state/format/checkpoint.js';
import type { OwnerFile } from '../../lib/state/format/owner-file.js';
import { type Clues, flawOf, rebuild } from '../../lib/state/owners/recovery.js';
import { thrownBy } from '../support/error-of.js';
import { kubeletRecord } from '../support/kubelet-records.js';
import { quiet } from '../support/quiet.js';
import { podOf } from '../support/quiet-world.js';

const BOOT = 'this boot';
const { request } = quiet('0');

const pod = (uid: string, owner = 'a', cpu = Number(uid), more: Partial<PodAssignment> = {}) => ({
  ...podOf(uid, owner, CpuSet.of(cpu), request),
  quiet: undefined,
  ...more,
});

const file = (uuid: string, generation: number, pods: PodAssignment[] = [], more: Partial<OwnerFile> = {}) =>
  ({
    ...{ uuid, kind: 'process', pid: 1, command: 'test', cgroup: null, bootId: BOOT },
    ...{ generation, settings: DEFAULT_SETTINGS, kubelet: null, pods },
    ...more,
  }) as OwnerFile;

const state = (generation: number, pods: PodAssignment[] = [], more: Partial<Assignments> = {}) =>
  ({
    ...{ generation, bootId: BOOT, writtenAt: '2026-01-01T00:00:00.000Z' },
    assignments: { ...emptyAssignments(DEFAULT_SETTINGS), pods, ...more },
  }) as Checkpoint;

const cause = new NumalignError('ERR_STATE_CORRUPT', 'unreadable');
const unknownOwner = (uuid: string, more: Partial<UnknownOwner> = {}): UnknownOwner => ({
  ...{ uuid, isFileLost: true, since: 0, error: cause },
  ...more,
});

const found = (living: OwnerFile[], more: Partial<FoundOwners> = {}): FoundOwners => ({
  ...NO_OWNERS,
  living,
  latest: living.toSorted((a, b) => b.generation - a.generation)[0],
  ...more,
});

describe('a state lacks', () => {
  const ONE = pod('1');
  const kubelet = kubeletRecord('3');

  it.each<[string, Checkpoint, FoundOwners]>([
    ['what its owners have', state(5, [ONE]), found([file('a', 5, [ONE])])],
    ['claims that were given back since', state(5, [ONE]), found([file('a', 4, [ONE, pod('2')])])],
    ['a claim for another owner', state(5, [ONE]), found([file('b', 5, [pod('2')], { kind: 'persistent' })])],
    ['the kubelet’s record', state(5, [], { kubelet }), found([file('a', 5, [], { kubelet })])],
    [
      'owners on record of which one is without its file',
      state(5, [pod('1', 'abc'), pod('2', 'bcd')]),
      found([], { unknown: [unknownOwner('ab')] }),
    ],
    [
      'the kubelet’s keeper without its file',
      state(5, [], { kubelet }),
      found([], { unknown: [unknownOwner(kubelet.keeper.uuid.slice(0, 4))] }),
    ],
    [
      'an owner whose file is damaged',
      state(5),
      found([], { unknown: [unknownOwner('b', { isFileLost: false })] }),
    ],
  ])('nothing with %s', (_, checkpoint, owners) => {
    expect(flawOf(checkpoint, owners)).toBeUndefined();
  });

  it.each<[string, Checkpoint, FoundOwners, RegExp]>([
    [
      'a generation that an owner names',
      state(5),
      found([file('a', 3), file('b', 9)]),
      /older than generation 9,/,
    ],
    [
      'a generation that a seal names',
      state(5),
      found([], { unknown: [unknownOwner('b', { since: 7 })] }),
      /older than generation 7,/,
    ],
    [
      'a grant of a process',
      state(5, [ONE]),
      found([file('a', 5, [ONE, pod('2')])]),
      /commit for .* owner a$/,
    ],
    ['a change of a grant', state(5, [ONE]), found([file('a', 5, [pod('1', 'a', 3)])]), /later commit/],
    ['the kubelet’s record', state(5), found([file('a', 5, [], { kubelet })]), /later commit/],
    [
      'a later record of the kubelet',
      state(5, [], { kubelet: kubeletRecord('2') }),
      found([file('a', 5, [], { kubelet })]),
      /later commit/,
    ],
    [
      'an owner without its file',
      state(5, [ONE]),
      found([], { unknown: [unknownOwner('b')] }),
      /not know .* b…/,
    ],
  ])('%s', (_, checkpoint, owners, flaw) => {
    expect(flawOf(checkpoint, owners)).toMatch(flaw);
  });
});

const missing = { kind: 'missing' } as const;

/** The rebuilt state of 8 GiB on each node. */
function rebuilt(base: Checkpoint | undefined, owners: FoundOwners, more: Partial<Clues> = {}) {
  const clues: Clues = { found: missing, previous: missing, base, owners, highest: 0, ...more };
  return rebuild(clues, BOOT, () => 2 ** 33);
}

/** Its grants, by their CPUs, and why it is refused. */
function outcome(base: Checkpoint | undefined, owners: FoundOwners, more: Partial<Clues> = {}) {
  const { assignments, refusal } = rebuilt(base, owners, more)!;
  const grants = assignments.pods.map(({ uid, containers }) => `${uid}: ${containers[0]!.cpus}`);
  return refusal ? [...grants, refusal.message] : grants;
}

describe('a recovery', () => {
  it('knows nothing without a state and owners, and says so if an owner’s file cannot be read', () => {
    expect(rebuilt(undefined, NO_OWNERS)).toBeUndefined();
    expect(thrownBy(() => rebuilt(undefined, { ...NO_OWNERS, unknown: [unknownOwner('a')] }))).toBe(cause);
  });

  it('takes the settings of the newest file or state', () => {
    const settings = { ...DEFAULT_SETTINGS, strictCPUReservation: true };
    const strict = (generation: number) =>
      rebuilt(state(5), found([file('a', generation, [], { settings })]))!.assignments.settings;
    expect([strict(5), strict(6)]).toEqual([DEFAULT_SETTINGS, settings]);
    expect(rebuilt(undefined, found([file('a', 0, [], { settings })]))!.assignments.settings).toEqual(
      settings,
    );
  });

  it('keeps grants whose owner has them, and ends the others, whose CPUs stay known by name', () => {
    const [one, two] = [pod('1'), pod('2', 'b', 2, { name: 'two' })];
    const base = state(5, [one, two]);
    const owners = found([file('a', 4, [one])]);
    expect(outcome(base, owners)).toEqual(['1: 1']);
    expect(rebuilt(base, owners)!.assignments.lastCpus).toMatchObject([{ name: 'two', cpus: CpuSet.of(2) }]);
  });

  it('keeps a grant as it is on record if its owner’s file is older, and as claimed if not', () => {
    const base = state(5, [pod('1')]);
    expect(outcome(base, found([file('a', 4, [pod('1', 'a', 7)])]))).toEqual(['1: 1']);
    expect(outcome(base, found([file('a', 5, [pod('1', 'a', 7)])]))).toEqual(['1: 7']);
  });

  describe('that knows a state before the one in the files', () => {
    const [LATER, SAME] = ['2026-01-02T00:00:00.000Z', state(5).writtenAt];
    const settings = { ...DEFAULT_SETTINGS, strictCPUReservation: true };
    const kubelet = { ...kubeletRecord('3'), since: LATER, updatedAt: SAME };
    const damaged = (writtenAt: string, more: Partial<Assignments> = {}) => {
      const checkpoint = { ...state(1, [], { settings, ...more }), writtenAt };
      return { kind: 'damaged', why: 'old', generation: 1, checkpoint } as const;
    };
    const outcomeOf = (
      name: 'found' | 'previous',
      file: ReturnType<typeof damaged>,
      living: OwnerFile[] = [],
    ) => rebuilt(state(5), found(living), { [name]: file })!.assignments;

    it.each([
      ['keeps settings and the kubelet’s record of one that began again', LATER, settings, kubelet],
      ['keeps its own settings and record if that was put back', SAME, DEFAULT_SETTINGS, null],
    ])('%s', (_, writtenAt, ...kept) => {
      for (const name of ['found', 'previous'] as const) {
        const { settings, kubelet: record } = outcomeOf(name, damaged(writtenAt, { kubelet }));
        expect([settings, record]).toEqual(kept);
      }
    });

    it('keeps what the later of two that began again says', () => {
      const [older, newer] = [damaged(LATER), damaged(LATER, { settings: DEFAULT_SETTINGS, kubelet })];
      const second = { ...newer, checkpoint: { ...newer.checkpoint, generation: 2 } };
      for (const more of [
        { found: older, previous: second },
        { found: second, previous: older },
      ])
        expect(rebuilt(state(5), NO_OWNERS, more)!.assignments.kubelet).toBe(kubelet);
    });

    it('keeps a record of the kubelet that only its keeper has so far', () => {
      const keeperSince = (since: string) =>
        outcomeOf('found', damaged(LATER), [file('b', 1, [], { kubelet: { ...kubelet, since } })]).kubelet;
      expect([keeperSince(LATER)?.since, keeperSince(SAME)]).toEqual([LATER, null]);
    });
  });

  it('keeps grants of owners whose file it does not know, and of those that may still run there', () => {
    const refusal = { unknown: [unknownOwner('abc')] };
    const base = state(5, [pod('1', 'abcd'), pod('2', 'b', 2, { formerOwner: 'abce' }), pod('3', 'c')]);
    expect(outcome(base, found([], refusal))).toEqual(['1: 1', '2: 2', 'unreadable']);
  });

  it('adds claims that the state has lost, the oldest first, and none that was given back', () => {
    const claim = (uid: string, admittedAt: string) => pod(uid, 'a', Number(uid), { admittedAt });
    const claims = [claim('2', '2025-02'), claim('1', '2025-01')];
    expect(outcome(state(5), found([file('a', 5, claims)]))).toEqual(['1: 1', '2: 2']);
    expect(outcome(state(5), found([file('a', 4, claims)]))).toEqual([]);
    // Admitted after the state that is known: another has begun meanwhile.
    expect(outcome(state(5), found([file('a', 4, [...claims, claim('3', '2026-02')])]))).toEqual(['3: 3']);
  });

  it('gives a grant that two owners claim to the newer claim', () => {
    const [former, taker] = [pod('1', 'a', 1), pod('1', 'b', 1)];
    const ownerOf = (...files: OwnerFile[]) => {
      const { assignments, refusal } = rebuilt(state(5, [former]), found(files))!;
      return [refusal, ...assignments.pods.map(({ owner }) => owner.uuid)];
    };
    for (const files of [
      [file('a', 5, [former]), file('b', 6, [taker])],
      [file('b', 6, [taker]), file('a', 5, [former])],
      // Taken over before the state says so.
      [file('a', 5, [former]), file('b', 5, [taker])],
      [file('b', 5, [taker]), file('a', 5, [former])],
    ])
      expect(ownerOf(...files)).toEqual([undefined, 'b']);
  });

  it('grants nothing while two owners claim one grant, or one CPU, with equal right', () => {
    const same = found([file('a', 6, [pod('1', 'a')]), file('b', 6, [pod('1', 'b')])]);
    expect(outcome(state(5), same).at(-1)).toContain('grant 1 is claimed by both owners/a and owners/b');
    const cpu = found([file('a', 6, [pod('1', 'a')]), file('b', 6, [pod('2', 'b', 1)])]);
    expect(outcome(state(5), cpu).at(-1)).toMatch(/CPU 1 is claimed by both owners\/a and owners\/b/);
  });

  it('frees CPUs that a former owner has left', () => {
    const given = pod('1', 'b', 1, { formerOwner: 'a' });
    const formerOwner = (...pods: PodAssignment[]) => {
      const files = [file('a', 5, pods), file('b', 5, [given]), file('c', 5)];
      return rebuilt(state(5, [given]), found(files))!.assignments.pods[0]!.formerOwner;
    };
    expect([formerOwner(), formerOwner(given)]).toEqual([null, 'a']);
    expect(rebuilt(state(5, [given]), found([file('b', 5, [given])]))!.assignments.pods).toEqual([given]);
  });

  it('leaves a state of an earlier boot as it is until an owner lives in this one, and then voids its grants', () => {
    const base = { ...state(5, [pod('1')]), bootId: 'earlier' };
    expect(rebuilt(base, NO_OWNERS)).toEqual({ bootId: 'earlier', assignments: base.assignments });
    expect(rebuilt(base, { ...NO_OWNERS, unknown: [unknownOwner('b')] })).toMatchObject({
      ...{ bootId: 'earlier', refusal: cause },
    });
    const after = rebuilt(base, found([file('b', 6, [pod('2', 'b')])]))!;
    expect(after.bootId).toBe(BOOT);
    expect(after.assignments.pods.map(({ uid }) => uid)).toEqual(['2']);
  });

  it('books the memory of what it adds, and frees that of what it ends', () => {
    const withMemory = (uid: string, owner: string, bytes: number) => {
      const plain = pod(uid, owner);
      const memory = [{ nodes: [0], type: 'memory', bytes }];
      return { ...plain, containers: [{ ...plain.containers[0]!, memory }] };
    };
    const booked = (base: Checkpoint, owners: FoundOwners) => rebuilt(base, owners)!.assignments.memory;
    const claimed = found([file('a', 6, [withMemory('1', 'a', 4096)])]);
    expect(JSON.stringify(booked(state(5), claimed))).toBe('{"0":{"memory":4096}}');
    const before = { pods: [withMemory('1', 'a', 4096)], memory: { 0: { memory: 4096 } } };
    expect(JSON.stringify(booked(state(5, [], before as never), found([file('b', 6)])))).toBe('{}');
  });

  it('is refused if what is booked contradicts what the grants hold', () => {
    const memory = { 0: { memory: 4096 } };
    expect(outcome(state(5, [], { memory }), found([file('b', 6)]))).toEqual([
      'the state is damaged and cannot be recovered: the booked memory of NUMA nodes 0 differs from what the grants hold by 4096 bytes; numalign grants nothing until one of them ends',
    ]);
  });

  it('takes the kubelet’s record of the newest keeper, unless the state is newer', () => {
    const [older, newer] = [kubeletRecord('2'), kubeletRecord('3')];
    const kept = (...files: OwnerFile[]) =>
      rebuilt(state(5, [], { kubelet: older }), found(files))!.assignments.kubelet;
    expect(kept(file('a', 6, [], { kubelet: older }), file('b', 7, [], { kubelet: newer }))).toBe(newer);
    expect(kept(file('a', 4, [], { kubelet: newer }))).toBe(older);
    expect(kept(file('a', 9))).toBe(older);
  });
});

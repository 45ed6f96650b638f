// needs: nothing
// Which owners are checked while the kernel reports the end of each.
import { describe, expect, it, vi } from 'vitest';
import type { OwnerRecord } from '../../lib/account/pod-assignment.js';
import { LivingOwners } from '../../lib/state/owners/living-owners.js';
import type { NoticeEra } from '../../lib/state/owners/owner-watch.js';

const ownerOf = (uuid: string): OwnerRecord => ({
  ...{ uuid, pid: 1, command: 'test', cgroup: null, unknown: {} },
  kind: uuid.startsWith('cgroup') ? 'cgroup' : 'process',
});

/** Owners, and the kernel's notices of an era that began at 10 s; it is 100 s now. */
function owners(...uuids: string[]) {
  const notices = { era: { begin: 10 } as NoticeEra | undefined };
  const clock = { now: 100, isComplete: true };
  const ended = new Set<string>();
  const hasEnded = vi.fn((uuid: string) => ended.has(uuid));
  const living = new LivingOwners(notices, {
    areNoticesComplete: () => clock.isComplete,
    hasEnded,
    now: () => clock.now,
  });
  const look = vi.fn(({ uuid }: OwnerRecord) => !ended.has(uuid));
  let records = uuids.map(ownerOf);
  /** Checks the owners on record, after a commit by default: in a new list. */
  const check = (isSameList = false) => {
    look.mockClear();
    if (!isSameList) records = [...records];
    const dead = living.deadAmong(records, look).map(({ uuid }) => uuid);
    return { checked: look.mock.calls.map(([{ uuid }]) => uuid), dead };
  };
  return { notices, clock, ended, hasEnded, living, check };
}

describe('an owner that lived at a check', () => {
  it('is not checked again while no notice comes', () => {
    const { check } = owners('a', 'b');
    expect(check()).toEqual({ checked: ['a', 'b'], dead: [] });
    expect(check()).toEqual({ checked: [], dead: [] });
  });

  it('is not even looked up in the list of which all lived', () => {
    const { check, living } = owners('a');
    check();
    const list = [ownerOf('b')];
    expect(living.deadAmong(list, () => true)).toEqual([]);
    expect(living.deadAmong(list, () => false)).toEqual([]);
    expect(check(true).checked).toEqual([]);
  });

  it('is checked again after a notice that leaves its end open, until its file is back', () => {
    const { check, living } = owners('a', 'b');
    check();
    living.doubt('a');
    expect([check(true).checked, check(true).checked]).toEqual([['a'], ['a']]);
    living.settle('a');
    expect([check(true).checked, check(true).checked]).toEqual([['a'], []]);
  });

  it('is checked each time if the kernel reports nothing, or not yet long enough, or not all', () => {
    const { check, notices, clock } = owners('a');
    notices.era = undefined;
    expect([check().checked, check(true).checked]).toEqual([['a'], ['a']]);
    notices.era = { begin: 99.5 };
    expect([check().checked, check(true).checked]).toEqual([['a'], ['a']]);
    clock.now = 100.5;
    clock.isComplete = false;
    expect([check().checked, check(true).checked]).toEqual([['a'], ['a']]);
    notices.era = { begin: 99.5 };
    clock.isComplete = true;
    expect([check().checked, check(true).checked]).toEqual([['a'], []]);
  });

  it('is checked again in another era', () => {
    const { check, notices } = owners('a');
    expect([check().checked, check(true).checked]).toEqual([['a'], []]);
    notices.era = { begin: 20 };
    expect([check(true).checked, check(true).checked]).toEqual([['a'], []]);
    notices.era = { begin: 30 };
    expect([check().checked, check().checked]).toEqual([['a'], []]);
  });

  it('is checked each time beside one that is dead, which is too', () => {
    const { check, ended } = owners('a', 'b');
    ended.add('b');
    expect(check(true)).toEqual({ checked: ['a', 'b'], dead: ['b'] });
    expect(check(true)).toEqual({ checked: ['b'], dead: ['b'] });
  });

  it('is checked each time if it is a cgroup', () => {
    const { check, ended } = owners('a', 'cgroup-1');
    expect(check(true).checked).toEqual(['a', 'cgroup-1']);
    expect(check(true).checked).toEqual(['cgroup-1']);
    ended.add('cgroup-1');
    expect(check(true)).toEqual({ checked: ['cgroup-1'], dead: ['cgroup-1'] });
  });
});

describe('owners in doubt', () => {
  const MANY = 256;

  it('are remembered up to a number: beyond it the oldest that have ended are forgotten', () => {
    const names = Array.from({ length: MANY + 2 }, (_, i) => `owner-${i}`);
    const { check, living, ended, hasEnded } = owners(...names.slice(0, 2));
    check();
    for (const name of names.slice(0, MANY)) living.doubt(name);
    expect(hasEnded).not.toHaveBeenCalled();
    ended.add('owner-0');
    living.doubt(names[MANY]!);
    expect(hasEnded.mock.calls).toEqual([['owner-0']]);
    living.doubt(names[MANY + 1]!);
    expect(hasEnded.mock.calls).toEqual([['owner-0'], ['owner-1']]);
    expect([check(true), check(true)]).toEqual([
      { checked: ['owner-0', 'owner-1'], dead: ['owner-0'] },
      { checked: ['owner-0', 'owner-1'], dead: ['owner-0'] },
    ]);
  });
});

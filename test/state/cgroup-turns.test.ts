// needs: nothing
// Owners that are cgroups, of which one step checks a few.
import { expect, it, vi } from 'vitest';
import type { OwnerRecord } from '../../lib/account/pod-assignment.js';
import { LivingOwners } from '../../lib/state/owners/living-owners.js';

const MOST = 2;

const ownerOf = (uuid: string): OwnerRecord => ({
  ...{ uuid, pid: 1, command: 'test', cgroup: null, unknown: {} },
  kind: uuid.startsWith('cgroup') ? 'cgroup' : 'process',
});

/** Owners of which some have ended; the kernel reports nothing. */
function owners(...uuids: string[]) {
  const looks = { areNoticesComplete: () => true, hasEnded: () => false, now: () => 0 };
  const living = new LivingOwners({ era: undefined }, looks);
  const ended = new Set<string>();
  let records = uuids.map(ownerOf);
  const look = vi.fn(({ uuid }: OwnerRecord) => !ended.has(uuid));
  const step = (most?: number) => {
    look.mockClear();
    const dead = living.deadAmong(records, look, most).map(({ uuid }) => uuid);
    return { checked: look.mock.calls.map(([{ uuid }]) => uuid), dead };
  };
  const forget = (uuid: string) => {
    records = records.filter((owner) => owner.uuid !== uuid);
  };
  return { ended, step, forget };
}

const FIVE = ['cgroup-1', 'cgroup-2', 'cgroup-3', 'cgroup-4', 'cgroup-5'];

it('are checked in turns, round and round, and processes each time', () => {
  const { step } = owners(...FIVE, 'process');
  expect(Array.from({ length: 4 }, () => step(MOST).checked)).toEqual([
    ['cgroup-1', 'cgroup-2', 'process'],
    ['cgroup-3', 'cgroup-4', 'process'],
    ['cgroup-1', 'cgroup-5', 'process'],
    ['cgroup-2', 'cgroup-3', 'process'],
  ]);
});

it('are all checked if there are no more than a step checks, or if it checks all', () => {
  const { step } = owners(...FIVE);
  expect(step(FIVE.length).checked).toEqual(FIVE);
  expect(step(FIVE.length).checked).toEqual(FIVE);
  step(MOST);
  expect(step().checked).toEqual(FIVE);
});

it('are checked in each step once they were found dead, until they are off the record', () => {
  const { ended, step, forget } = owners(...FIVE);
  ended.add('cgroup-1');
  expect(step(MOST)).toEqual({ checked: ['cgroup-1', 'cgroup-2'], dead: ['cgroup-1'] });
  expect(step(MOST)).toEqual({ checked: ['cgroup-1', 'cgroup-3', 'cgroup-4'], dead: ['cgroup-1'] });
  forget('cgroup-1');
  expect(step(MOST)).toEqual({ checked: ['cgroup-2', 'cgroup-3'], dead: [] });
});

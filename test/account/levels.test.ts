// needs: nothing
import { describe, expect, it } from 'vitest';
import {
  BY_CGROUPS,
  BY_MASKS,
  BY_RECORD,
  ENFORCEMENT_LEVELS,
  LEVELS,
  strongestLevel,
} from '../../lib/account/levels.js';
import { AIMED_LEVELS } from '../../lib/input/enforcement-options.js';

const meansOf = (level: keyof typeof LEVELS) =>
  Object.entries(LEVELS[level]).flatMap(([name, isTaken]) => (isTaken ? [name] : []));

describe('an enforcement level', () => {
  it('takes all that the weaker one takes, and more', () => {
    for (const [i, level] of ENFORCEMENT_LEVELS.slice(1).entries()) {
      const weaker = meansOf(ENFORCEMENT_LEVELS[i]!);
      expect(meansOf(level)).toEqual(expect.arrayContaining(weaker));
      expect(meansOf(level).length).toBeGreaterThan(weaker.length);
    }
  });

  it('is the strongest with its own means', () => {
    for (const level of ENFORCEMENT_LEVELS) expect(strongestLevel(LEVELS[level])).toBe(level);
  });

  it('is not reached without what the weaker ones take', () => {
    expect(strongestLevel({ usesCgroups: true, inPartition: true, isolatesCpus: true })).toBe('recorded');
    expect(strongestLevel({ movesMembers: true, isolatesCpus: true })).toBe('members');
  });
});

it('levels are named by what they take', () => {
  expect([BY_RECORD, BY_MASKS, BY_CGROUPS]).toEqual(['recorded', 'members', 'cpuset']);
});

it('a request can aim at each level that keeps processes off', () => {
  expect(AIMED_LEVELS).toEqual(['members', 'cpuset', 'partition', 'isolated']);
});

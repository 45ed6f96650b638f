// The masks of threads after any sequence of operations on grants, at each level of enforcement:
// test/threads/masks.mjs on the real cgroup v2 of a machine with 16 CPUs (0-15) and nothing else on
// it, as root. Run by node --test.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import fc from 'fast-check';
import { budget } from '../../support/budget.mjs';
import { MaskProgram, sequences } from '../../threads/masks.mjs';
import { removeCgroup } from './cgroup-removal.mjs';

const MOUNT = '/sys/fs/cgroup';
const ROOT = '/numalign-masks';
const HOME = join(MOUNT, ROOT, 'work');

// By the level that grants reach.
const LEVELS = [
  ['members', { cgroupRoot: null }],
  ['members', { cgroupRoot: ROOT, enforcement: 'members' }],
  ['cpuset', { cgroupRoot: ROOT, enforcement: 'cpuset' }],
  ['partition', { cgroupRoot: ROOT, enforcement: 'partition' }],
  ['isolated', { cgroupRoot: ROOT, enforcement: 'isolated' }],
];

// Counterexamples of earlier runs, which are always tried.
const FOUND = [
  // All CPUs that the main thread has chosen are taken while it runs on a grant, and come back only
  // after it has left that grant.
  {
    chosen: { 0: '4-7' },
    steps: [
      ['acquire', 0, 1],
      ['pin', 0, 'process', false],
      ['acquire', 1, 4],
    ],
  },
  // It chooses CPUs of the grant other than those that it was placed on.
  {
    chosen: {},
    steps: [
      ['acquire', 0, 1],
      ['resize', 0, 4],
      ['placeThreads', 0, true, false],
      ['choose', 0, '2-3'],
    ],
  },
  // Other threads have chosen nothing when its choice is taken: nothing needs repair.
  { chosen: { 0: '0' }, steps: [['acquire', 0, 1], ['spawn', 0], ['reconcile']] },
  // A part of its choice is taken while it runs on a grant.
  {
    chosen: { 0: '1,4' },
    steps: [
      ['acquire', 0, 1],
      ['pin', 0, 'process', false],
      ['acquire', 1, 1],
    ],
  },
  // It chooses the CPUs of its choice that the partition has left; another process gives back.
  {
    chosen: { 0: '0-1', 1: '1,4' },
    steps: [
      ['acquire', 0, 1],
      ['choose', 1, '1'],
      ['transfer', 0],
    ],
  },
  // The same, where it has chosen nothing before.
  {
    chosen: { 0: '0-1' },
    steps: [
      ['acquire', 0, 1],
      ['choose', 1, '1'],
      ['transfer', 0],
    ],
  },
  // It chooses all CPUs that a partition leaves, which the next one cuts.
  {
    chosen: {},
    steps: [
      ['acquire', 0, 1],
      ['choose', 0, '0-15'],
      ['acquire', 1, 1],
    ],
  },
];

afterEach(() => {
  for (const name of readdirSync(MOUNT)) if (`/${name}` === ROOT) removeCgroup(join(MOUNT, name));
});

function homeBelowRoot() {
  if (!existsSync(join(MOUNT, ROOT))) mkdirSync(join(MOUNT, ROOT));
  writeFileSync(join(MOUNT, ROOT, 'cgroup.subtree_control'), '+cpuset');
  mkdirSync(HOME);
  return HOME;
}

describe('the masks of threads', () => {
  for (const [level, options] of LEVELS) {
    const where = options.cgroupRoot ? 'with cgroups' : 'without cgroups';
    it(`are the original ones after any sequence of operations on grants (${level}, ${where})`, async () => {
      const program = new MaskProgram(level === 'cpuset' ? homeBelowRoot() : '');
      try {
        await fc.assert(
          fc.asyncProperty(
            sequences(['0', '1', '0-1', '2-3', '1,4', '4-7', '0-15'], [1, 2, 4]),
            async (sequence) => {
              assert.deepEqual(await program.run({ level, options, ...sequence }), []);
            },
          ),
          {
            numRuns: budget({ all: 100, usual: 10 }),
            includeErrorInReport: true,
            examples: FOUND.map((sequence) => [sequence]),
          },
        );
      } finally {
        await program.end();
      }
    });
  }
});

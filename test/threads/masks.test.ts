// needs: machine
// The masks of threads after any sequence of operations on grants, on the real kernel.
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { isUsable, ROOT, removeAll } from '../cgroups/own-root.js';
import { groupPath } from '../enforcement/members.js';
import { budget } from '../support/budget.mjs';
// @ts-expect-error without declarations
import { MaskProgram, sequences } from './masks.mjs';

// By the level that grants reach.
const LEVELS = [
  ['members', { cgroupRoot: null }],
  ['cpuset', { cgroupRoot: ROOT }],
  // Others are kept off by weaker means, but this process is in cgroups even so.
  ['members', { cgroupRoot: ROOT, enforcement: 'members' }],
] as const;

// A grant of one of two CPUs, CPU 0. `chosen`: by the main thread (0) and by Workers (1, 2).
const FOUND: Record<string, { chosen?: Record<string, string>; steps: readonly (readonly unknown[])[] }> = {
  'a thread that has started a program': { steps: [['spawn', 0]] },
  'a thread that has started a Worker': { steps: [['worker', 0]] },
  'a thread that has started a Worker and was pinned then': {
    steps: [
      ['worker', 0],
      ['pin', 0, 'process', false],
    ],
  },
  'a thread that had chosen the CPU of the grant, and was pinned': {
    chosen: { 0: '0' },
    steps: [['pin', 0, 'process', false]],
  },
  'a Worker that had chosen what was left to share': {
    chosen: { 1: '1' },
    steps: [['placeThreads', 0, false, false]],
  },
  'a thread that had chosen the CPU of the grant, and has started a program': {
    chosen: { 0: '0' },
    steps: [['spawn', 0]],
  },
  'libuv’s threads, after a thread that had made a choice has started a Worker': {
    chosen: { 0: '0' },
    steps: [
      ['worker', 0],
      ['prewarmPool', 0, false],
    ],
  },
  'a thread that had chosen the CPU of a grant that was handed over': {
    chosen: { 0: '0' },
    steps: [
      ['pin', 0, 'process', false],
      ['transfer', 0],
    ],
  },
};

describe.skipIf(!isUsable)('the masks of threads', () => {
  const programs = new Set<{ end(): Promise<void> }>();
  afterAll(async () => {
    for (const program of programs) await program.end();
    removeAll(groupPath());
  });

  for (const [level, options] of LEVELS) {
    const where = `${level}, ${options.cgroupRoot ? 'with cgroups' : 'without cgroups'}`;
    const program = new MaskProgram();
    programs.add(program);
    const wrongAfter = (sequence: object) => program.run({ level, options, ...sequence });

    for (const [who, { chosen = {}, steps }] of Object.entries(FOUND)) {
      it(`are restored after a grant, of ${who} (${where})`, async () => {
        expect(await wrongAfter({ chosen, steps: [['acquire', 0, 1], ...steps] })).toEqual([]);
      });
    }

    it(`are restored after any sequence of operations on grants (${where})`, async () => {
      await fc.assert(
        fc.asyncProperty(sequences(['0', '1', '0-1'], [1]), async (sequence: object) => {
          expect(await wrongAfter(sequence)).toEqual([]);
        }),
        { numRuns: budget({ all: 2_000, usual: 15 }) },
      );
    });
  }
});

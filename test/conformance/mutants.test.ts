// needs: nothing
// Altered answers: the runner fails each, unless the altered record still satisfies a letter. The
// number of these is bounded: a wider condition lets more pass.
import { describe, expect, it } from 'vitest';
import { budget } from '../support/budget.mjs';
import * as numalign from '../support/package.js';
import { type CaseFile, readCases, replay } from './replay.js';
import { vectors } from './support/cases.js';
import { type Alteration, mutantsOf } from './support/mutants.js';

const COUNT = budget({ all: 200, usual: 10 });

// By file: read once.
const files = new Map<string, CaseFile>();

function casesOf(name: string): CaseFile {
  const file = files.get(name) ?? readCases(vectors(name))!;
  files.set(name, file);
  return file;
}

describe('altered answers', () => {
  // How many of all 200, and of the 10 of a short run, which are the same each time. Most of a
  // scenario's are of steps that differ on purpose unaltered, and of pods that are admitted again (B).
  it.each<[string, Alteration, number, number]>([
    ['scenario', 'CPUs', 62, 4],
    ['scenario', 'node', 69, 5],
    ['scenario', 'size', 35, 0],
    ['scenario', 'preferred', 71, 5],
    ['scenario', 'admission', 35, 1],
    ['scenario', 'checkpoint', 6, 0],
    ['newer/scenario-136', 'CPUs', 66, 4],
    // All that are not noticed are of pods that are rejected here (P3, P4), or admitted again (P1).
    ['newer/scenario-136', "CPU of a pod's set", 41, 2],
    ['newer/scenario-136', 'node', 59, 2],
    ['newer/scenario-136', 'size', 67, 6],
    ['newer/scenario-136', 'preferred', 76, 5],
    ['newer/scenario-136', 'admission', 40, 1],
    ['newer/scenario-136', 'checkpoint', 12, 1],
    ['newer/cpu-take-136', 'CPUs', 42, 1],
    ['newer/cpu-take-136', 'admission', 0, 0],
    ['cpu-take', 'CPUs', 19, 0],
    ['cpu-take', 'admission', 6, 0],
    ['checkpoint', 'checkpoint', 0, 0],
    ['newer/checkpoint-136', 'checkpoint', 0, 0],
    ['cpu-hints', 'node', 0, 0],
    ['cpu-hints', 'preferred', 0, 0],
  ])('of %s, another %s, fail or satisfy a letter', async (name, what, ofAll, ofSome) => {
    const file = casesOf(name);
    const cases = mutantsOf(what, file.cases, COUNT);
    const { passed, diverged } = await replay({ ...file, cases }, numalign);
    expect(cases).toHaveLength(COUNT);
    expect(passed).toBe(0);
    expect(diverged).toBeLessThanOrEqual(budget({ all: ofAll, usual: ofSome }));
  });
});

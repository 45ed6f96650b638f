// Altered answers: the runner fails each, unless what is recorded still satisfies a letter. How many
// may do that is bounded: a condition that becomes wider lets more pass.
import { describe, expect, it } from 'vitest';
import { budget } from '../support/budget.mjs';
import * as numalign from '../support/package.js';
import { readCases, replay } from './replay.js';
import { vectors } from './support/cases.js';
import { type Alteration, mutantsOf } from './support/mutants.js';

const ALL = 200;
const COUNT = budget(ALL, 25);

describe('altered answers', () => {
  // Of all 200. Most of a scenario's are of steps that differ on purpose unaltered, and of pods that
  // are admitted again (B).
  it.each<[string, Alteration, number]>([
    ['scenario', 'CPUs', 70],
    ['scenario', 'node', 75],
    ['scenario', 'size', 45],
    ['scenario', 'preferred', 75],
    ['scenario', 'admission', 40],
    ['scenario', 'checkpoint', 10],
    ['newer/scenario-136', 'CPUs', 110],
    ['newer/scenario-136', 'node', 110],
    ['newer/scenario-136', 'size', 110],
    ['newer/scenario-136', 'preferred', 110],
    ['newer/scenario-136', 'admission', 110],
    ['newer/scenario-136', 'checkpoint', 60],
    ['newer/cpu-take-136', 'CPUs', 30],
    ['newer/cpu-take-136', 'admission', 12],
    ['cpu-take', 'CPUs', 22],
    ['cpu-take', 'admission', 8],
    ['cpu-hints', 'node', 0],
    ['cpu-hints', 'preferred', 0],
  ])('of %s, another %s, fail or satisfy a letter', async (name, what, most) => {
    const file = readCases(vectors(name))!;
    const cases = mutantsOf(what, file.cases, COUNT);
    const { passed, diverged } = await replay({ ...file, cases }, numalign);
    expect(cases.length).toBeGreaterThanOrEqual(COUNT * 0.9);
    expect(passed).toBe(0);
    // A part of them may have more than its share.
    expect(diverged).toBeLessThanOrEqual(COUNT === ALL ? most : Math.ceil((most * COUNT * 2) / ALL));
  });
});

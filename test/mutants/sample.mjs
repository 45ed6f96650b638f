// A sample of mutants that follows from a seed, whichever process asks. As a checker of Stryker's
// it refuses the others before any test runs.
import { createHash } from 'node:crypto';
import { relative } from 'node:path';

/** Whether a mutant is in the sample: `percent` of all are. `key` names the mutant. */
export function isSampled(key, { percent, seed }) {
  const number = createHash('sha256').update(`${seed} ${key}`).digest().readUInt32BE();
  return number / 2 ** 32 < percent / 100;
}

/** Names a mutant of Stryker's report, which counts lines and columns from 1. */
export const keyOf = (file, { mutatorName, replacement, location: { start, end } }) =>
  `${file}:${start.line}:${start.column}-${end.line}:${end.column} ${mutatorName} ${replacement}`;

// Stryker's plugins count them from 0.
const fromOne = ({ line, column }) => ({ line: line + 1, column: column + 1 });

class SampleChecker {
  #sample = JSON.parse(process.env.NUMALIGN_MUTANTS_SAMPLE);

  async init() {}

  async check(mutants) {
    const answer = ({ fileName, location: { start, end }, ...mutant }) => {
      const file = relative(process.cwd(), fileName);
      const key = keyOf(file, { ...mutant, location: { start: fromOne(start), end: fromOne(end) } });
      const status = isSampled(key, this.#sample) ? 'passed' : 'compileError';
      return status === 'passed' ? { status } : { status, reason: 'not in the sample' };
    };
    return Object.fromEntries(mutants.map((mutant) => [mutant.id, answer(mutant)]));
  }

  // All at once: it costs nothing.
  async group(mutants) {
    return [mutants.map(({ id }) => id)];
  }
}

export const strykerPlugins = [{ kind: 'Checker', name: 'sample', injectableClass: SampleChecker }];

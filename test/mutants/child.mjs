// Loaded into each process that a test starts, while Stryker looks which mutants a test runs: each
// is a line of a file, written at once, since many such processes are killed.
import { appendFileSync } from 'node:fs';

const file = process.env.NUMALIGN_MUTANTS_COVERAGE;
function write(mutant) {
  try {
    appendFileSync(file, `${mutant}\n`);
  } catch {
    // A process that sees another file system.
  }
}

const counts = new Proxy(
  {},
  {
    set(known, mutant, count) {
      if (!(mutant in known)) write(mutant);
      known[mutant] = count;
      return true;
    },
  },
);
globalThis.__stryker__ = { mutantCoverage: { static: counts, perTest: {} } };

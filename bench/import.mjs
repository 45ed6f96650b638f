// What the package costs a program before it does anything: at its import, and at the first
// openManager. Uses the CPU time of the process, which is more reliable than elapsed time if other
// processes run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { medianOf, row } from './support/measure.mjs';
import { MACHINES } from './support/nodes.mjs';
import { emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'CPU time of a new process that imports the package, beside an empty module; and that opens a machine in a new state folder, beside the import';

const [empty, whole, opened] = ['empty-module.mjs', 'package-module.mjs', 'open-module.mjs'].map((name) =>
  fileURLToPath(new URL(`support/${name}`, import.meta.url)),
);

/** The CPU time of a process, in nanoseconds. */
function start(module, ...args) {
  const { status, stdout } = spawnSync(process.execPath, [module, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${module} ended with ${status}`);
  return Number(stdout) * 1000;
}

function open(parent, ...machine) {
  const folder = mkdtempSync(join(parent, 'numalign-bench-'));
  try {
    return start(opened, folder, ...machine);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** `[name, yardstick, process, process of the yardstick]`: the two functions return CPU times. */
function subjectsIn(parent) {
  const { simulated } = MACHINES;
  const imported = () => start(whole);
  return [
    ['import', 'empty module', imported, () => start(empty)],
    ['first open, this machine', 'import', () => open(parent), imported],
    // A separate call makes the machine before.
    ['first open, simulated', 'import', () => open(parent, simulated), () => start(whole, simulated)],
  ];
}

export async function run({ check }) {
  // In memory, if there is such a folder.
  const subjects = subjectsIn(stateParents().at(-1).path);
  const found = subjects.map(() => ({ samples: [], others: [], more: [] }));
  for (let i = -2; i < (check ? 16 : 40); i++) {
    for (const [at, [, , subject, other]] of subjects.entries()) {
      const before = emptyNow();
      const [ns, otherNs] = [subject(), other()];
      if (i < 0) continue;
      const { samples, others, more } = found[at];
      samples.push(ns);
      others.push(otherNs);
      more.push({ ns: ns - otherNs, emptyNs: (before + emptyNow()) / 2 });
    }
  }
  return subjects.map(([name, yardstick], at) => {
    const { more, ...times } = found[at];
    const moreE = medianOf(more.map(({ ns, emptyNs }) => ns / emptyNs));
    const remark = `${(medianOf(more.map(({ ns }) => ns)) / 1e6).toFixed(1)} ms more`;
    return row(name, times, { yardstick, moreE, remark });
  });
}

// What the package costs a program before it does anything: at its import, and at the first
// openManager. CPU time of the process, which tells more than elapsed time where others run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { medianOf, row } from './support/measure.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'CPU time of a new process that imports the package, beside an empty module; and that opens the machine in a new state folder, beside the import';

const RUNS = 40;
const [empty, whole, opened] = ['empty-module.mjs', 'package-module.mjs', 'open-module.mjs'].map((name) =>
  fileURLToPath(new URL(`support/${name}`, import.meta.url)),
);

/** The CPU time of a process, in nanoseconds. */
function start(module, ...args) {
  const { status, stdout } = spawnSync(process.execPath, [module, ...args], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${module} ended with ${status}`);
  return Number(stdout) * 1000;
}

function open(parent) {
  const folder = mkdtempSync(join(parent, 'numalign-bench-'));
  try {
    return start(opened, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function besideOther(name, samples, others, yardstick, mostMs) {
  const alone = medianOf(others);
  return row(
    name,
    { samples, others },
    {
      yardstick,
      limitNs: alone + mostMs * 1e6,
      remark: `${((medianOf(samples) - alone) / 1e6).toFixed(1)} ms more`,
    },
  );
}

export async function run() {
  // In memory, where there is such a folder.
  const { path: parent } = stateParents().at(-1);
  const [withOpen, withImport, without] = [[], [], []];
  for (let i = -2; i < RUNS; i++) {
    const times = [open(parent), start(whole), start(empty)];
    if (i < 0) continue;
    for (const [at, samples] of [withOpen, withImport, without].entries()) samples.push(times[at]);
  }
  return [
    besideOther('import', withImport, without, 'empty module', 10),
    besideOther('first-open', withOpen, withImport, 'import', 5),
  ];
}

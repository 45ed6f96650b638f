// How long the package takes to load, beside a module that is empty.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { medianOf, row } from './support/measure.mjs';

export const description = 'import of the package in a new process, beside an empty module';

const RUNS = 40;
const MOST_MS = 15;
const [empty, whole] = ['empty-module.mjs', 'package-module.mjs'].map((name) =>
  fileURLToPath(new URL(`support/${name}`, import.meta.url)),
);

function start(module) {
  const begin = performance.now();
  const { status } = spawnSync(process.execPath, [module]);
  if (status !== 0) throw new Error(`${module} ended with ${status}`);
  return (performance.now() - begin) * 1e6;
}

export async function run() {
  const [with_, without] = [[], []];
  for (let i = -2; i < RUNS; i++) {
    const times = [start(whole), start(empty)];
    if (i < 0) continue;
    with_.push(times[0]);
    without.push(times[1]);
  }
  const alone = medianOf(without);
  return [
    row(
      'import',
      { samples: with_, others: without },
      {
        yardstick: 'empty module',
        limitNs: alone + MOST_MS * 1e6,
        remark: `${((medianOf(with_) - alone) / 1e6).toFixed(1)} ms more`,
      },
    ),
  ];
}

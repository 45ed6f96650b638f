// What cpusets cost a process: its first calls, and hot ones, with a cgroup root and without.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openManager } from '../dist/index.js';
import { cgroupRoot } from './support/aggressors.mjs';
import { medianOf } from './support/measure.mjs';
import { removeCgroups } from './support/remove-cgroups.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'CPU time of a process with a cgroup root beside one without: its first calls, and the same once all is hot';
export const explanation = `
As in *first*, on this machine. Processes with and without a cgroup root take turns; *ratio* is the
median of the turns.`;

const PROGRAM = fileURLToPath(new URL('support/first-calls.mjs', import.meta.url));
const TURNS = 11;

async function newFolder(root) {
  const stateDir = mkdtempSync(join(stateParents().at(-1).path, 'numalign-bench-'));
  (await openManager({ stateDir, reservedSystemCPUs: '0', cgroupRoot: root })).close();
  return stateDir;
}

function timesIn(stateDir) {
  const order = JSON.stringify({ stateDir, machine: null });
  return JSON.parse(execFileSync(process.execPath, [PROGRAM, order], { encoding: 'utf8' }));
}

export async function run() {
  if (process.geteuid() !== 0) return [{ name: 'every call', skipped: 'only root has cpusets' }];
  const folders = [];
  try {
    for (const root of [null, cgroupRoot]) folders.push(await newFolder(root));
    const turns = Array.from({ length: TURNS }, () => folders.map(timesIn));
    return Object.keys(turns[0][0]).map((name) => ({
      name,
      cpuNs: medianOf(turns.map(([, own]) => own[name])),
      ratio: medianOf(turns.map(([without, own]) => own[name] / without[name])),
      yardstick: 'without',
      yardstickNs: medianOf(turns.map(([without]) => without[name])),
    }));
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true });
    removeCgroups(cgroupRoot);
  }
}

// System calls of an operation, by strace: all that its process makes from the start to the end of
// the operation, on any thread, except those by which threads of Node wait for each other and V8
// gets memory.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MACHINES } from './support/nodes.mjs';
import { stateParents } from './support/state-parents.mjs';
import { callsOf } from './support/strace-text.mjs';
import { counted } from './support/targets.mjs';

export const description = 'system calls of one operation, counted by strace: the least of 10 times';
export const explanation = `
Counted between two marks in the log of \`strace -f\`, on all threads of the process. Calls by which
threads of Node wait for and wake each other, and those of V8's memory, do not count; writes that
wake up the event loop do.`;

const OPERATIONS = fileURLToPath(new URL('support/operations.mjs', import.meta.url));
const GRANTS = [1, 64];
const TIMES = 10;
const SHOWN = 5;

function trace(path, machine, grants) {
  const folder = mkdtempSync(join(path, 'numalign-trace-'));
  const log = join(folder, 'log');
  try {
    const order = JSON.stringify({ path, machine, grants, times: TIMES });
    const args = ['-f', '-qq', '-s', '64', '-o', log, process.execPath, OPERATIONS, order];
    const { status, stderr } = spawnSync('strace', args, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`strace ended with ${status}: ${stderr}`);
    return callsOf(readFileSync(log, 'utf8'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function rowOf(name, counts) {
  const total = (count) => [...count.values()].reduce((sum, calls) => sum + calls, 0);
  const least = counts.reduce((a, b) => (total(b) < total(a) ? b : a));
  const most = [...least].sort(([, a], [, b]) => b - a).slice(0, SHOWN);
  return { name, calls: total(least), remark: most.map(([call, calls]) => `${calls} ${call}`).join(', ') };
}

export async function run() {
  if (spawnSync('strace', ['-V']).status !== 0) {
    return [{ name: 'every operation', skipped: 'strace is not installed' }];
  }
  const { path } = stateParents().at(-1);
  const rows = [];
  for (const [machineName, machine] of Object.entries(MACHINES)) {
    for (const grants of GRANTS) {
      for (const [operation, counts] of trace(path, machine, grants)) {
        rows.push(rowOf(`${operation}, ${machineName}, ${counted(grants)}`, counts));
      }
    }
  }
  return rows;
}

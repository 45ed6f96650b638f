// Processes that acquire and release in one state folder as fast as they can.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MACHINES } from './support/nodes.mjs';
import { emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'acquire and release by 1, 8 and 32 processes at once in one state folder: how many pairs, their CPU time, and how fair';
export const explanation = `
*Pairs* are those of all processes together in a second, *pair* the time that each of them takes
so, *CPU* the CPU time of all processes for each. *Fairness* is the number of pairs of the slowest
process over that of the fastest.`;
export const options = {
  contend: { type: 'string', help: 'contention: for how many seconds (default 5)' },
};

const COUNTS = [1, 8, 32];
const CONTENDER = fileURLToPath(new URL('support/contender.mjs', import.meta.url));

async function message(child) {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`a process that contends ended with ${code}`);
  });
  const [sent] = await Promise.race([once(child, 'message'), ended]);
  return sent;
}

async function measure(count, { where, path, fileSystem }, seconds) {
  const stateDir = mkdtempSync(join(path, 'numalign-bench-'));
  const order = JSON.stringify({ stateDir, machine: MACHINES.simulated, seconds });
  const children = Array.from({ length: count }, () => fork(CONTENDER, [order]));
  const exits = children.map((child) => once(child, 'exit'));
  try {
    await Promise.all(children.map(message));
    const emptyNs = emptyNow();
    const answers = children.map(message);
    for (const child of children) child.send('go');
    const found = await Promise.all(answers);
    const sum = (of) => found.reduce((total, each) => total + of(each), 0);
    const all = sum(({ pairs }) => pairs);
    const pairNs = (seconds * 1e9) / all;
    const counts = found.map(({ pairs }) => pairs);
    return {
      name: `${count} process${count === 1 ? '' : 'es'}, ${where}`,
      pairs: all / seconds,
      pairNs,
      pairE: pairNs / emptyNs,
      cpuNs: sum(({ cpuNs }) => cpuNs) / all,
      fairness: Math.min(...counts) / Math.max(...counts),
      remark: fileSystem,
    };
  } finally {
    for (const child of children) child.kill();
    await Promise.all(exits);
    rmSync(stateDir, { recursive: true });
  }
}

export async function run({ check, contend = check ? '2' : '5' }) {
  const seconds = Number(contend);
  if (!(seconds > 0)) throw new Error(`--contend ${contend}: a number above 0`);
  const rows = [];
  for (const parent of stateParents())
    for (const count of COUNTS) rows.push(await measure(count, parent, seconds));
  return rows;
}

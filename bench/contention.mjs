// Several processes that admit and release in one state folder, in which many grants live.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { row } from './support/measure.mjs';
import { MACHINES, newNode } from './support/nodes.mjs';
import { emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';
import { number, percent } from './support/units.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description =
  'admit with 512 live grants and 8 processes that contend: how long beside one append, and how fair';
export const options = {
  admits: { type: 'string', help: 'contention: how many admissions at least (default 600)' },
  contend: { type: 'string', help: 'contention: for how many seconds at most (default 20)' },
};

const GRANTS = 512;
const PROCESSES = 8;
// Of each process on average, before shares say anything.
const ENOUGH = 10;
const CONTENDER = fileURLToPath(new URL('support/contender.mjs', import.meta.url));
const MACHINE = MACHINES.simulated;

// All begin together, and end when together they have done enough or the time is over.
async function contend(stateDir, { admits, seconds }) {
  const children = Array.from({ length: PROCESSES }, () =>
    fork(CONTENDER, [JSON.stringify({ stateDir, machine: MACHINE })]),
  );
  const exits = children.map((child) => once(child, 'exit'));
  await Promise.all(children.map((child) => once(child, 'message')));
  const stop = () => {
    for (const child of children) child.send('stop');
  };
  let done = 0;
  const results = children.map(
    (child) =>
      new Promise((resolve, reject) => {
        child.once('exit', (code) => reject(new Error(`a process that contends ended with ${code}`)));
        child.on('message', (message) => {
          if (message.times) resolve(message.times);
          else if (++done === admits) stop();
        });
      }),
  );
  const timer = setTimeout(stop, seconds * 1000);
  for (const child of children) child.send('go');
  try {
    const times = await Promise.all(results);
    await Promise.all(exits);
    return times;
  } finally {
    clearTimeout(timer);
    for (const child of children) child.kill();
  }
}

// An append of what a record has to say of a grant at the least.
function appends(stateDir, manager) {
  const times = new Float64Array(100);
  yardstick.append(times, join(stateDir, 'raw'), Buffer.from(JSON.stringify(manager.grants()[0])));
  return times;
}

async function measure({ where, path, fileSystem }, limits) {
  const { stateDir, manager, close } = await newNode(path, MACHINE, GRANTS);
  try {
    const others = [...appends(stateDir, manager)];
    const emptyBefore = emptyNow();
    const begin = performance.now();
    const times = await contend(stateDir, limits);
    const seconds = (performance.now() - begin) / 1000;
    const emptyNs = (emptyBefore + emptyNow()) / 2;
    others.push(...appends(stateDir, manager));
    const samples = times.flat();
    const share = samples.length / PROCESSES;
    const slowest = Math.min(...times.map(({ length }) => length));
    const measured = row(`admit, 8 processes, ${where}`, { samples, others }, { yardstick: 'append' });
    return {
      ...measured,
      costE: measured.medianNs / emptyNs,
      admitsASecond: samples.length / seconds,
      // How many times as many as the slowest process the average has had.
      unfairness: share < ENOUGH ? 0 : share / slowest,
      remark: `${number(samples.length / seconds)} admissions a second; slowest process ${percent(slowest / share)} of its share; ${fileSystem}`,
    };
  } finally {
    close();
  }
}

export async function run({ check, admits = '600', contend: seconds = check ? '8' : '20' }) {
  const limits = { admits: Number(admits), seconds: Number(seconds) };
  if (!(Number.isInteger(limits.admits) && limits.admits > 0))
    throw new Error(`--admits ${admits}: a whole number above 0`);
  if (!(limits.seconds > 0)) throw new Error(`--contend ${seconds}: a number above 0`);
  const rows = [];
  for (const parent of stateParents()) rows.push(await measure(parent, limits));
  return rows;
}

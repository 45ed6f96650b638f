// Several processes that admit and release in one state folder with many grants, compared with one
// process that does so alone.
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
  'admit with 512 live grants and 8 processes that contend: how long beside one append, how many beside one process alone, and how fair';
export const explanation = `
Eight processes admit and release as fast as they can; one process does so alone before and after.
*Ratio* compares the median admission with one append of a process alone. *Alone over sum* is how
many times as many admissions a second one process makes as all eight together. *Unfairness* is the
average number of admissions of a process over that of the slowest; 0 with fewer than 80 admissions.`;
export const options = {
  admits: { type: 'string', help: 'contention: how many admissions at least (default 600)' },
  contend: { type: 'string', help: 'contention: for how many seconds at most (default 20)' },
};

const GRANTS = 512;
const PROCESSES = 8;
// Admissions per process on average before shares are meaningful.
const ENOUGH = 10;
// One process alone, before and after: this part of the time each.
const ALONE = 4;
const CONTENDER = fileURLToPath(new URL('support/contender.mjs', import.meta.url));
const MACHINE = MACHINES.simulated;

// All start together, and stop when they have done enough together or the time is over.
async function contend(stateDir, processes, { admits, seconds }) {
  const children = Array.from({ length: processes }, () =>
    fork(CONTENDER, [JSON.stringify({ stateDir, machine: MACHINE })]),
  );
  const exits = children.map((child) => once(child, 'exit'));
  await Promise.all(children.map((child) => once(child, 'message')));
  let isStopped = false;
  // Sent once, to the processes that still run. The results tell what became of the others.
  const stop = () => {
    if (isStopped) return;
    isStopped = true;
    for (const child of children) if (child.connected) child.send('stop', () => {});
  };
  let done = 0;
  const results = children.map(
    (child) =>
      new Promise((resolve, reject) => {
        child.once('exit', (code) => reject(new Error(`a process that contends ended with ${code}`)));
        child.on('message', (message) => {
          if (message.times) resolve(message.times);
          else if (++done >= admits) stop();
        });
      }),
  );
  const timer = setTimeout(stop, seconds * 1000);
  const begin = performance.now();
  for (const child of children) child.send('go');
  try {
    const times = await Promise.all(results);
    const took = (performance.now() - begin) / 1000;
    await Promise.all(exits);
    return { times, admitsASecond: times.flat().length / took };
  } finally {
    clearTimeout(timer);
    for (const child of children) child.kill();
  }
}

const ofOne = ({ admits, seconds }) => ({ admits: Math.ceil(admits / ALONE), seconds: seconds / ALONE });

// An append of the least that a record says about a grant.
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
    const alone = [await contend(stateDir, 1, ofOne(limits))];
    const { times, admitsASecond } = await contend(stateDir, PROCESSES, limits);
    alone.push(await contend(stateDir, 1, ofOne(limits)));
    const emptyNs = (emptyBefore + emptyNow()) / 2;
    others.push(...appends(stateDir, manager));
    // The better of both turns: what it can do.
    const aloneASecond = Math.max(...alone.map((one) => one.admitsASecond));
    const samples = times.flat();
    const share = samples.length / PROCESSES;
    const slowest = Math.min(...times.map(({ length }) => length));
    const measured = row(`admit, 8 processes, ${where}`, { samples, others }, { yardstick: 'append' });
    return {
      ...measured,
      costE: measured.medianNs / emptyNs,
      admitsASecond,
      // How many times the sum of all processes one process does alone.
      aloneOverSum: aloneASecond / admitsASecond,
      // How many times the slowest process's share the average is.
      unfairness: share < ENOUGH ? 0 : share / slowest,
      remark: `${number(admitsASecond)} admissions a second, ${number(aloneASecond)} of one process alone; slowest process ${percent(slowest / share)} of its share; ${fileSystem}`,
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

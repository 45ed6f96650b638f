// Several processes that admit and release in one state folder, in which many grants live.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { discover } from '../dist/entries/topology.js';
import { openManager } from '../dist/index.js';
import { row } from './support/measure.mjs';
import { stateParents } from './support/state-parents.mjs';
import { percent } from './support/units.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description = 'admit with 512 live grants and 8 processes that contend: how long, and how fair';
export const options = {
  admits: { type: 'string', help: 'contention: how many admissions at least (default 600)' },
  contend: { type: 'string', help: 'contention: for how many seconds at most (default 45)' },
};

const GRANTS = 512;
const PROCESSES = 8;
const LEAST_SHARE = 0.5;
// Of each process on average, before shares say anything.
const ENOUGH = 10;
const CONTENDER = fileURLToPath(new URL('support/contender.mjs', import.meta.url));

/** A simulated machine with room for all of them. */
const MACHINE = 'package:2 numa:4 core:96 pu:1';

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

async function measure({ where, path, fileSystem }, limits) {
  const stateDir = mkdtempSync(join(path, 'numalign-bench-'));
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }), stateDir });
  try {
    for (let i = 0; i < GRANTS; i++) await manager.acquire({ cpu: 1, name: `service-${i}` });
    const { size } = statSync(join(stateDir, 'state.json'));
    const others = new Float64Array(50);
    yardstick.durableWrite(others, stateDir, Buffer.alloc(size, 'x'));
    const times = await contend(stateDir, limits);
    const samples = times.flat();
    const slowestShare = Math.min(...times.map(({ length }) => length)) / (samples.length / PROCESSES);
    return {
      ...row(`admit, 8 processes, ${where}`, { samples, others }, { yardstick: 'raw write' }),
      slowestShare,
      ...(samples.length >= ENOUGH * PROCESSES && { met: slowestShare >= LEAST_SHARE }),
      remark: `slowest process ${percent(slowestShare)} of its share; ${size.toLocaleString('en')} bytes on ${fileSystem}`,
    };
  } finally {
    manager.close();
    rmSync(stateDir, { recursive: true });
  }
}

export async function run({ admits = '600', contend: seconds = '45' }) {
  const limits = { admits: Number(admits), seconds: Number(seconds) };
  if (!(Number.isInteger(limits.admits) && limits.admits > 0))
    throw new Error(`--admits ${admits}: a whole number above 0`);
  if (!(limits.seconds > 0)) throw new Error(`--contend ${seconds}: a number above 0`);
  const rows = [];
  for (const parent of stateParents()) rows.push(await measure(parent, limits));
  return rows;
}

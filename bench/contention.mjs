// Several processes that admit and release in one state folder, in which many grants live.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { discover, openManager } from '../dist/index.js';
import { row } from './support/measure.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description = 'admit with 512 live grants and 8 processes that contend: how long, and how fair';
export const options = { contend: { type: 'string', help: 'contention: for how many seconds (default 10)' } };

const GRANTS = 512;
const PROCESSES = 8;
const LEAST_SHARE = 0.5;
const CONTENDER = fileURLToPath(new URL('support/contender.mjs', import.meta.url));

/** A simulated machine with room for all of them. */
export const MACHINE = 'package:2 numa:4 core:96 pu:1';

async function contend(stateDir, seconds) {
  const children = Array.from({ length: PROCESSES }, () =>
    fork(CONTENDER, [JSON.stringify({ stateDir, machine: MACHINE, seconds })]),
  );
  const exits = children.map((child) => once(child, 'exit'));
  const messages = children.map((child) => once(child, 'message'));
  await Promise.all(messages);
  const results = children.map(async (child) => (await once(child, 'message'))[0]);
  for (const child of children) child.send('go');
  const all = await Promise.all(results);
  await Promise.all(exits);
  return all;
}

export async function run({ contend: text = '10' }) {
  const seconds = Number(text);
  if (!(seconds > 0)) throw new Error(`--contend ${text}: a number above 0`);
  const stateDir = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }), stateDir });
  try {
    for (let i = 0; i < GRANTS; i++) await manager.acquire({ cpu: 1, name: `service-${i}` });
    const { size } = statSync(join(stateDir, 'state.json'));
    const others = new Float64Array(50);
    yardstick.durableWrite(others, stateDir, Buffer.alloc(size, 'x'));
    const results = await contend(stateDir, seconds);
    const counts = results.map(({ times }) => times.length);
    const admits = counts.reduce((sum, count) => sum + count, 0);
    const slowest = Math.min(...counts) / (admits / PROCESSES);
    const samples = results.flatMap(({ times }) => times);
    const remark = `${admits} admits, slowest process ${(100 * slowest).toFixed(0)} % of its share; ${size} bytes`;
    return [
      {
        ...row('admit, 8 processes', { samples, others }, { yardstick: 'raw write' }),
        ...{ slowestShare: slowest, met: slowest >= LEAST_SHARE, remark },
      },
    ];
  } finally {
    manager.close();
    rmSync(stateDir, { recursive: true });
  }
}

// What isolation is worth: a process that spins on one CPU beside three that take whatever they get. All figures are of grant.audit().
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeCgroups } from './support/remove-cgroups.mjs';

export const description = 'run delay of a spinning process beside three others, by how it is kept from them';
export const options = {
  seconds: { type: 'string', help: 'isolation: how long each way is measured (default 3)' },
};

const VICTIM = fileURLToPath(new URL('support/victim.mjs', import.meta.url));
const AGGRESSORS = 3;
// Nobody is asked to leave.
const recorded = { sharedMember: false, cgroupRoot: null };
const cgroupRoot = `/numalign-bench-${process.pid}`;

const WAYS = [
  { name: 'idle machine', aggressors: 0, pin: true, manager: recorded },
  { name: 'left alone', aggressors: AGGRESSORS, pin: false, manager: recorded },
  { name: 'taskset', aggressors: AGGRESSORS, pin: true, manager: recorded },
  { name: 'members moved', aggressors: AGGRESSORS, pin: true, manager: { cgroupRoot: null }, members: true },
  { name: 'cpuset', aggressors: AGGRESSORS, pin: true, manager: { cgroupRoot }, members: true },
];

export async function run({ seconds = '3' }) {
  if (!(Number(seconds) > 0)) throw new Error(`--seconds ${seconds}: a number above 0`);
  const rows = [];
  for (const way of WAYS) rows.push(await measure(way, Number(seconds)));
  return rows;
}

async function measure({ name, aggressors, pin, manager, members = false }, seconds) {
  const stateDir = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
  const others = Array.from({ length: aggressors }, () =>
    spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }),
  );
  try {
    await Promise.all(others.map((other) => once(other, 'spawn')));
    const pids = members ? others.map(({ pid }) => pid) : [];
    return rowOf(name, await victim({ manager: { ...manager, stateDir }, members: pids, pin, seconds }));
  } finally {
    for (const other of others) {
      const ended = once(other, 'exit');
      other.kill('SIGKILL');
      await ended;
    }
    rmSync(stateDir, { recursive: true });
    removeCgroups(cgroupRoot);
  }
}

async function victim(order) {
  const child = spawn(process.execPath, [VICTIM, JSON.stringify(order)], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the measured process ended with ${code}`);
  return JSON.parse(text);
}

const ms = (ns) => (ns === null ? null : Math.round(ns / 1e5) / 10);

function rowOf(name, { level, elapsedMs, threads, totals }) {
  const main = threads.find(({ role }) => role === 'main');
  return {
    name,
    level,
    'elapsed ms': Math.round(elapsedMs),
    'ran ms': ms(main.runTimeNs),
    'run delay ms': ms(main.runDelayNs),
    involuntary: main.involuntarySwitches,
    migrations: main.migrations,
    'foreign tasks': totals.foreignTasks,
    interrupts: totals.interrupts,
  };
}

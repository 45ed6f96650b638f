// What isolation is worth: a process on one CPU beside three that take whatever they get. Run delay, switches and the like are of grant.audit(), the rest is what the process itself
// feels: gaps while it spins, how late it wakes up, how late its event loop is; p50, p99, p99.9 and the greatest of each. And how long garbage collections take by where V8's helpers run.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { affinity, CpuSet } from '../dist/index.js';
import { removeCgroups } from './support/remove-cgroups.mjs';

export const description = 'a process beside three others, by how it is kept from them: µs at p50 / p99 / p99.9 / most';
export const options = {
  seconds: { type: 'string', help: 'isolation: how long each way is measured (default 3)' },
};

const [VICTIM, GC_VICTIM] = ['victim.mjs', 'gc-victim.mjs'].map((name) =>
  fileURLToPath(new URL(`support/${name}`, import.meta.url)),
);
const AGGRESSORS = 3;
// Nobody is asked to leave.
const recorded = { sharedMember: false, cgroupRoot: null };
const cgroupRoot = `/numalign-bench-${process.pid}`;
const slice = `${cgroupRoot}-slice`;
// The lowest is the first to be granted.
const [own, ...others] = affinity();
const isV2 = existsSync('/sys/fs/cgroup/cgroup.controllers');

const WAYS = [
  { name: 'idle machine', aggressors: 0, pin: true, manager: recorded },
  { name: 'left alone', aggressors: AGGRESSORS, pin: false, manager: recorded },
  { name: 'taskset', aggressors: AGGRESSORS, pin: true, manager: recorded },
  { name: 'taskset, others in a slice', aggressors: AGGRESSORS, pin: true, manager: recorded, slice: true },
  { name: 'members moved', aggressors: AGGRESSORS, pin: true, manager: { cgroupRoot: null }, members: true },
  { name: 'cpuset or partition', aggressors: AGGRESSORS, pin: true, manager: { cgroupRoot }, members: true },
];

const COLLECTIONS = [
  { name: 'collections, helpers with the others', threads: 'current', flags: [] },
  { name: 'collections, helpers beside the main thread', threads: 'process', flags: [] },
  { name: 'collections without helpers', threads: 'process', flags: ['--single-threaded-gc'] },
];

export async function run({ seconds = '3' }) {
  if (!(Number(seconds) > 0)) throw new Error(`--seconds ${seconds}: a number above 0`);
  const rows = [];
  for (const way of WAYS) rows.push(await measure(way, Number(seconds)));
  for (const way of COLLECTIONS) rows.push(await collections(way, Number(seconds)));
  return rows;
}

/** Runs `action` with a new state folder, beside aggressors. */
async function beside(count, action) {
  const stateDir = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
  const aggressors = Array.from({ length: count }, () =>
    spawn('sh', ['-c', 'while :; do :; done'], { stdio: 'ignore' }),
  );
  try {
    await Promise.all(aggressors.map((other) => once(other, 'spawn')));
    return await action(
      stateDir,
      aggressors.map(({ pid }) => pid),
    );
  } finally {
    for (const other of aggressors) {
      const ended = once(other, 'exit');
      other.kill('SIGKILL');
      await ended;
    }
    rmSync(stateDir, { recursive: true });
    for (const root of [cgroupRoot, slice]) removeCgroups(root);
  }
}

// As AllowedCPUs= of a slice does it.
function putIntoSlice(pids) {
  const folder = isV2 ? `/sys/fs/cgroup${slice}` : `/sys/fs/cgroup/cpuset${slice}`;
  if (isV2) writeFileSync('/sys/fs/cgroup/cgroup.subtree_control', '+cpuset');
  mkdirSync(folder);
  writeFileSync(`${folder}/cpuset.cpus`, CpuSet.from(others).toString());
  if (!isV2) writeFileSync(`${folder}/cpuset.mems`, readFileSync(`${folder}/../cpuset.mems`, 'utf8'));
  for (const pid of pids) writeFileSync(`${folder}/cgroup.procs`, String(pid));
}

function measure({ name, aggressors, pin, manager, members = false, slice: isInSlice = false }, seconds) {
  return beside(aggressors, async (stateDir, pids) => {
    if (isInSlice) putIntoSlice(pids);
    const order = { manager: { ...manager, stateDir }, members: members ? pids : [], pin, seconds };
    const answer = await victim(VICTIM, order);
    if (isInSlice && answer.cpus !== String(own)) throw new Error(`CPU ${answer.cpus} was granted, not ${own}`);
    return rowOf(name, answer);
  });
}

function collections({ name, threads, flags }, seconds) {
  return beside(AGGRESSORS, async (stateDir, pids) => {
    // The aggressors are where the shared pool is: off the granted CPU.
    putIntoSlice(pids);
    const order = { manager: { ...recorded, stateDir }, threads, seconds };
    const { count, mean, p99, max } = await victim(GC_VICTIM, order, flags);
    return { name, collections: count, 'mean ms': mean, 'p99 ms': p99, 'most ms': max };
  });
}

async function victim(program, order, flags = []) {
  const child = spawn(process.execPath, ['--expose-gc', ...flags, program, JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`the measured process ended with ${code}`);
  return JSON.parse(text);
}

const ms = (ns) => (ns === null ? null : Math.round(ns / 1e5) / 10);

function rowOf(name, { audit: { level, elapsedMs, threads, totals }, felt }) {
  const main = threads.find(({ role }) => role === 'main');
  return {
    name,
    level,
    'elapsed ms': Math.round(elapsedMs),
    'run delay ms': ms(main.runDelayNs),
    involuntary: main.involuntarySwitches,
    migrations: main.migrations,
    'foreign tasks': totals.foreignTasks,
    'gaps µs': felt.gaps.join(' / '),
    'wake-up µs': felt.wakeUps.join(' / '),
    'event loop µs': felt.eventLoop.join(' / '),
  };
}

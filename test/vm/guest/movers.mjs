// Grants that move, and what runs on them: processes of their own and attached ones, each with
// memory that it has touched and a thread that records its longest gap. All of them end after a
// test. At least 4 nodes of 4 CPUs each, root, cgroup v2.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach } from 'node:test';
import { affinity } from '../../../dist/entries/diagnostics.js';
import { CpuSet } from '../../../dist/index.js';
import { moveReally } from '../../support/moves.mjs';
import { Actor } from './actors.mjs';
import { removeCgroup } from './cgroup-removal.mjs';
import * as kernel from './kernel-view.mjs';
import { newStateDir } from './state-folders.mjs';

export const MI = 2 ** 20;
const CGROUP_ROOT = '/numalign-moves';
export const FOLDER = join('/sys/fs/cgroup', CGROUP_ROOT);
/**
 * Of a manager whose groups are in {@link FOLDER}. Beside other machines, a step that sets cgroups may
 * take long.
 */
export const newSettings = () => ({
  stateDir: newStateDir(),
  cgroupRoot: CGROUP_ROOT,
  lockTimeoutMs: 60_000,
});

const OWN_CPUS = affinity();
export const nodes = kernel.wholeNodes();
// Enough CPUs to fill one node with each grant.
const CPUS = 3;
const LAST = nodes.at(-1);
/** The initial places. */
export const ROOM = { cpus: String(CpuSet.from(kernel.cpusOfNode(LAST).slice(0, CPUS))), node: LAST };

const processes = new Set();
const actors = new Set();

// Before Linux 6.2 a partition that comes or goes gives this process all CPUs, and its children
// inherit them.
const takeOwnMask = () => spawnSync('taskset', ['-apc', String(OWN_CPUS), String(process.pid)]);

export function start(program, ...args) {
  takeOwnMask();
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  processes.add(child);
  return child;
}

// For each thread of a process whose group goes to other memory nodes the kernel waits for all
// CPUs, and emulated ones are late.
const FEW_THREADS = { UV_THREADPOOL_SIZE: '2' };

export function actor(variables) {
  takeOwnMask();
  const env = { ...process.env, ...FEW_THREADS, ...variables };
  const started = new Actor({ env, execArgv: ['--v8-pool-size=1'] });
  actors.add(started);
  return started;
}

afterEach(async () => {
  for (const each of actors) await each.kill();
  actors.clear();
  for (const child of processes) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  processes.clear();
  if (existsSync(FOLDER)) removeCgroup(FOLDER);
});

// Spins, or wakes again and again, with memory that it has touched; reports its longest gap on
// request.
const SPINNER = `use Time::HiRes 'time'; $| = 1; my $rest = $ARGV[1];
  print "here\\n"; <STDIN>; my $memory; vec($memory, $ARGV[0] - 1, 8) = 1; print "begun\\n";
  my ($last, $longest) = (time, 0); $SIG{USR1} = sub { printf "%.3f\\n", 1000 * $longest; $longest = 0 };
  while (1) { my $now = time; $longest = $now - $last if $now - $last > $longest; $last = $now;
    select(undef, undef, undef, $rest) if $rest }`;

/** A program that spins once it receives a line. */
async function spinner(bytes, rests) {
  const child = start('perl', '-e', SPINNER, String(bytes), rests ? '0.005' : '0');
  await once(child.stdout, 'data');
  return {
    pid: child.pid,
    begin: async () => {
      child.stdin.write('\n');
      await once(child.stdout, 'data');
    },
    gap: async () => {
      child.kill('SIGUSR1');
      return Number((await once(child.stdout, 'data'))[0]);
    },
  };
}

const SPINNING_WORKER = `
  const { gap, rests } = require('node:worker_threads').workerData;
  const rest = new Int32Array(new SharedArrayBuffer(4));
  for (let last = performance.now(); ; ) {
    const now = performance.now();
    if (now - last > gap[0]) gap[0] = now - last;
    last = now;
    if (rests) Atomics.wait(rest, 0, 0, 5);
  }`;

/** A process has a grant of its own, a spinning thread and touched memory. */
export async function occupy(process, request, { bytes, rests }, pinning = 'pin') {
  const { uid } = await process.acquire(request);
  await process.do(
    async (_, mine, size, code, method, rests) => {
      const { Worker } = globalThis.process.getBuiltinModule('node:worker_threads');
      mine.gap = new Float64Array(new SharedArrayBuffer(8));
      mine.worker = new Worker(code, { eval: true, workerData: { gap: mine.gap, rests } });
      await new Promise((resolve) => mine.worker.once('online', resolve));
      mine.grants.a[method](method === 'pin' ? undefined : {});
      mine.memory = new Uint8Array(size).fill(1);
    },
    bytes,
    SPINNING_WORKER,
    pinning,
    rests,
  );
  return uid;
}

export async function owner(settings, request, work, pinning) {
  const process = actor();
  await process.open(settings);
  const uid = await occupy(process, request, work, pinning);
  const gap = () =>
    process.do((_, mine) => {
      const longest = mine.gap[0];
      mine.gap[0] = 0;
      return longest;
    });
  return { uid, pid: process.pid, gap };
}

/** A grant without a process, to which one is attached. */
export async function attached(manager, request, { bytes, rests }) {
  const grant = await manager.acquire({ ...request, owner: 'persistent' });
  const child = await spinner(bytes, rests);
  await grant.attach(child.pid);
  await child.begin();
  return { ...child, uid: grant.uid };
}

export const MOVABLE = { cpu: CPUS, policy: 'single-numa-node', movable: { notice: '120s' } };
export const memoryFor = (bytes) => bytes + 64 * MI;
// What a process had before it was attached, and what the kernel was about to use when it moved the
// rest.
const MOST_LEFT = 2 * MI;

export const move = (manager, uid, place) => moveReally(manager, uid, place, { for: 'asker' });

/**
 * Checks that processes of a grant are on its CPUs, and their pages on its node; returns the bytes
 * on the other one.
 */
export function assertAt({ pid, bytes }, { cpus, node }, other) {
  for (const mask of kernel.masks(pid))
    assert.ok(CpuSet.from(mask).isSubsetOf(CpuSet.parse(cpus)), `on ${mask} instead of ${cpus}`);
  const sums = kernel.anonymousBytes(pid);
  const [here, there] = [node, other].map((each) => sums.get(each) ?? 0);
  assert.ok(here >= bytes && there < MOST_LEFT, `${here} bytes on node ${node}, ${there} on ${other}`);
  return there;
}

// Grants that move between NUMA nodes while what runs on them works: at least 4 nodes of 4 CPUs each,
// root, cgroup v2. Run by node --test.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { affinity } from '../../../dist/entries/diagnostics.js';
import { CpuSet } from '../../../dist/index.js';
import { budget, isLong } from '../../support/budget.mjs';
import { moveReally, releaseReally } from '../../support/moves.mjs';
import { shimEnvironment } from '../../torture/shim.mjs';
import { Actor } from './actors.mjs';
import { removeCgroup } from './cgroup-removal.mjs';
import * as trace from './kernel-trace.mjs';
import * as kernel from './kernel-view.mjs';
import { RecordWatch } from './record-watch.mjs';
import { newStateDir, open } from './state-folders.mjs';

const MI = 2 ** 20;
const CGROUP_ROOT = '/numalign-moves';
const FOLDER = join('/sys/fs/cgroup', CGROUP_ROOT);
const OWN_CPUS = affinity();
const nodes = kernel.wholeNodes();
const BYTES = budget(256, 8) * MI;
// So many that each grant is one node's.
const CPUS = 3;
const LAST = nodes.at(-1);
/** Where there is room at first. */
const ROOM = { cpus: String(CpuSet.from(kernel.cpusOfNode(LAST).slice(0, CPUS))), node: LAST };
const TRACED = [...nodes.slice(0, 2), LAST].flatMap(kernel.cpusOfNode);

const processes = new Set();
const actors = new Set();
let watch;

// Before Linux 6.2 a partition that comes or goes gives this process all CPUs, and those that it
// starts inherit that.
const takeOwnMask = () => spawnSync('taskset', ['-apc', String(OWN_CPUS), String(process.pid)]);

function start(program, ...args) {
  takeOwnMask();
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  processes.add(child);
  return child;
}

// For each thread of a process whose group goes to other memory nodes the kernel waits for all CPUs,
// and emulated ones are late.
const FEW_THREADS = { UV_THREADPOOL_SIZE: '2' };

function actor(variables) {
  takeOwnMask();
  const env = { ...process.env, ...FEW_THREADS, ...variables };
  const started = new Actor({ env, execArgv: ['--v8-pool-size=1'] });
  actors.add(started);
  return started;
}

before(() => trace.open(TRACED));
after(() => trace.close(kernel.possible()));
afterEach(async () => {
  trace.pause();
  await watch?.end();
  for (const each of actors) await each.kill();
  actors.clear();
  for (const child of processes) {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  }
  processes.clear();
  if (existsSync(FOLDER)) removeCgroup(FOLDER);
});

// Wakes wherever the kernel likes, again and again.
const WANDERER = 'while (1) { select(undef, undef, undef, 0.01); for (my $i = 0; $i < 500; $i++) {} }';

// Spins, or wakes again and again, with memory that it has touched; tells its longest gap when it is asked.
const SPINNER = `use Time::HiRes 'time'; $| = 1; my $rest = $ARGV[1];
  print "here\\n"; <STDIN>; my $memory; vec($memory, $ARGV[0] - 1, 8) = 1; print "begun\\n";
  my ($last, $longest) = (time, 0); $SIG{USR1} = sub { printf "%.3f\\n", 1000 * $longest; $longest = 0 };
  while (1) { my $now = time; $longest = $now - $last if $now - $last > $longest; $last = $now;
    select(undef, undef, undef, $rest) if $rest }`;

/** A program that spins once it is told to begin. */
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

/** A process has a grant of its own, a thread that spins and memory that it has touched. */
async function occupy(process, request, { bytes, rests }, pinning = 'pin') {
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

async function owner(settings, request, work, pinning) {
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

/** A grant of no process, to which one is attached. */
async function attached(manager, request, { bytes, rests }) {
  const grant = await manager.acquire({ ...request, owner: 'persistent' });
  const child = await spinner(bytes, rests);
  await grant.attach(child.pid);
  await child.begin();
  return { ...child, uid: grant.uid };
}

/**
 * What ran where others had the CPUs by the record. `owners`: uids by pid; `isBound`: whether a process
 * has to keep off what is not its own.
 */
function intrusions(runs, periods, owners, isBound) {
  const found = new Set();
  for (const { cpu, command, tid, from, to, pid } of runs) {
    // They are in order, and so many that each run is held against its own alone.
    for (let i = firstIndex(periods, (period) => period.to > from); periods[i]?.from < to; i++) {
      const [holder] = Object.entries(periods[i].held).find(([, cpus]) => cpus.includes(cpu)) ?? [];
      const own = owners.get(pid);
      const isRight = own === undefined ? holder === undefined || !isBound(pid) : holder === own;
      if (!isRight) found.add(`${command} (${tid}) of process ${pid} on CPU ${cpu} of ${holder ?? 'nobody'}`);
    }
  }
  return [...found];
}

/** In a list, the first part of which is not so: where it begins to be. */
function firstIndex(list, isSo) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isSo(list[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** `moves`: by both grants together, 200 over all levels in a long run. */
const LEVELS = [
  { level: 'members', request: { enforcement: 'members' }, moves: budget(80, 2) },
  { level: 'partition', request: {}, moves: budget(80, 2) },
  // The kernel spreads no threads over isolated CPUs.
  { level: 'isolated', request: { require: 'isolated' }, pinning: 'placeThreads', moves: budget(40, 2) },
];
/** Of so many moves one is of the first grant: of a process with many threads it takes long. */
const PERIOD = budget(20, 2);
const MOVABLE = { cpu: CPUS, policy: 'single-numa-node', movable: { notice: '120s' } };
const memoryFor = (bytes) => bytes + 64 * MI;
// What a process had before it was attached, and what the kernel was about to use when it moved the rest.
const MOST_LEFT = 2 * MI;

const move = (manager, uid, place) => moveReally(manager, uid, place, { for: 'asker' });

/** What runs on a grant is on its CPUs, and its pages on its node; answers the bytes on the other one. */
function assertAt({ pid, bytes }, { cpus, node }, other) {
  for (const mask of kernel.masks(pid))
    assert.ok(CpuSet.from(mask).isSubsetOf(CpuSet.parse(cpus)), `on ${mask} instead of ${cpus}`);
  const sums = kernel.anonymousBytes(pid);
  const [here, there] = [node, other].map((each) => sums.get(each) ?? 0);
  assert.ok(here >= bytes && there < MOST_LEFT, `${here} bytes on node ${node}, ${there} on ${other}`);
  return there;
}

/** The kernel's trace of one step after the other; of tasks that are not its own. */
class Recorder {
  #isOfKernel = trace.kernelTasks();
  runs = [];

  async during(step) {
    trace.clear();
    trace.record();
    await step();
    trace.pause();
    assert.equal(trace.lost(TRACED), 0, 'events were lost');
    this.runs.push(...trace.runs().filter(({ command, tid }) => !this.#isOfKernel(command, tid)));
  }
}

/** Of some durations, in milliseconds. */
function spread(times) {
  const sorted = times.toSorted((a, b) => a - b);
  const [median, p99, most] = [0.5, 0.99, 1].map((part) => sorted[Math.ceil(part * sorted.length) - 1]);
  return `${sorted.length} moves, median ${Math.round(median)} ms, p99 ${Math.round(p99)} ms, most ${Math.round(most)} ms`;
}

describe('grants that move', () => {
  for (const { level, request: more, pinning, moves } of LEVELS) {
    it(`of the level ${level} have their pages follow, and no CPU ever has two owners`, async (t) => {
      const settings = { stateDir: newStateDir(), cgroupRoot: CGROUP_ROOT };
      const manager = await open({ ...settings, sharedMember: true });
      const wanderer = start('perl', '-e', WANDERER);
      await manager.addSharedMember({ pid: wanderer.pid });
      const works = [
        { isOwned: isLong || level !== 'partition', bytes: BYTES, rests: true },
        { isOwned: false, bytes: BYTES, rests: !isLong || level !== 'members' },
      ];
      const movers = [];
      for (const work of works) {
        const request = { ...MOVABLE, memory: memoryFor(work.bytes), ...more };
        const mover = work.isOwned
          ? await owner(settings, request, work, pinning)
          : await attached(manager, request, work);
        movers.push({ ...work, ...mover, gaps: [] });
      }
      assert.deepEqual(
        manager.grants().map(({ enforcement }) => enforcement),
        [level, level],
      );
      const pids = movers.map(({ uid, pid }) => [uid, pid]);
      watch = await new RecordWatch(settings.stateDir, pids).start();
      const recorder = new Recorder();
      let place = ROOM;
      let most = 0;
      for (let i = 0; i < moves; i++) {
        const mover = movers[i % PERIOD === 0 ? 0 : 1];
        const { cpus, memoryNodes } = manager.grant(mover.uid);
        const left = { cpus: String(cpus), node: memoryNodes.first };
        await mover.gap();
        await recorder.during(async () => {
          await move(manager, mover.uid, place);
          await releaseReally(manager, 'asker');
        });
        mover.gaps.push(await mover.gap());
        most = Math.max(most, assertAt(mover, place, left.node));
        // The other one goes where this one was.
        place = left;
      }
      const { periods, strays } = await watch.stop();
      const known = periods.reduce((sum, { from, to }) => sum + to - from, 0);
      for (const { isOwned, bytes, rests, gaps } of movers)
        t.diagnostic(
          `a grant of ${bytes / MI} MiB ${isOwned ? 'of a process' : 'with an attached process'}, longest gap of a thread that ${rests ? 'wakes all the time' : 'spins'}: ${spread(gaps)}`,
        );
      t.diagnostic(
        `${recorder.runs.length} runs against ${periods.length} periods of the record, of ${Math.round(known / 1e6)} s; at most ${most / 1024} KiB left behind`,
      );
      assert.deepEqual(strays, []);
      const owners = new Map(movers.map(({ uid, pid }) => [pid, uid]));
      const members = [process.pid, wanderer.pid];
      const isBound = (pid) => level !== 'members' || members.includes(pid);
      assert.deepEqual(intrusions(recorder.runs, periods, owners, isBound), []);
      for (const { isOwned, uid } of movers) if (!isOwned) await manager.release(uid);
    });
  }
});

const MOVES_MODULE = new URL('../../support/moves.mjs', import.meta.url).href;
const ALL_CPUS = CpuSet.from(kernel.online());
const KILLED = { bytes: 4 * MI, rests: true };
const COMMIT = 'fsync state.json';

/** What must be so whoever has died at whichever step, once somebody has made the next one. */
async function assertOnePlace(manager, level, uid, { pid: tenant, home }) {
  await releaseReally(manager, 'asker');
  const grants = manager.grants();
  assert.deepEqual(
    grants.map((grant) => grant.uid),
    uid === undefined ? [] : [uid],
  );
  const held = grants.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
  assert.equal(String(manager.sharedPool()), String(ALL_CPUS.difference(held)));
  if (level === 'partition' && existsSync(FOLDER))
    assert.equal(kernel.read(FOLDER, 'cpuset.cpus'), String(held));
  for (const { cpus, upcoming } of grants) {
    assert.deepEqual([cpus.size, upcoming], [MOVABLE.cpu, null]);
    const [node] = manager.grant(uid).memoryNodes;
    assert.deepEqual(kernel.nodesOf(cpus.toArray()), [node]);
    const other = node === ROOM.node ? home.node : ROOM.node;
    assertAt({ ...KILLED, pid: tenant }, { cpus: String(cpus), node }, other);
  }
  // Nothing of memory is lost either.
  const booked = manager.memory().reduce((sum, { reserved }) => sum + reserved, 0);
  assert.equal(booked, grants.length * memoryFor(KILLED.bytes));
}

const placeOf = ({ cpus, memoryNodes }) => ({ cpus: String(cpus), node: memoryNodes.first });

/** A persistent grant with a process; whoever is killed moves it. Answers how that one gets ready. */
async function askers(settings, manager, request) {
  const { uid, pid } = await attached(manager, request, KILLED);
  return async (victim) => {
    await victim.open(settings);
    const ask = (to) =>
      victim.do(
        async ({ importModule }, { manager: opened }, moves, id, place) => {
          const { moveReally } = await importModule(moves);
          await moveReally(opened, id, place, { for: 'asker' });
        },
        MOVES_MODULE,
        uid,
        to,
      );
    return { uid, pid, remaining: uid, ask };
  };
}

/** The one that is killed owns the grant, which this process asks to move. */
const owners = (settings, manager, request) => async (victim) => {
  await victim.open(settings);
  const uid = await occupy(victim, request, KILLED);
  return { uid, pid: victim.pid, remaining: undefined, ask: (to) => move(manager, uid, to) };
};

/** Steps of its that are in a file of the shim, without those that change nothing. */
const stepsIn = (path) =>
  existsSync(path)
    ? readFileSync(path, 'utf8')
        .split('\n')
        .filter((line) => line && JSON.parse(line).op !== 'close').length
    : 0;

// `commits`: which of its it makes for a move, as the first of its life or after others.
const KILLS = [
  {
    who: 'the process that asks',
    prepare: askers,
    where: 'state folder',
    level: 'partition',
    commits: [1, 3],
  },
  { who: 'the owner', prepare: owners, where: 'state folder', level: 'members', commits: [2, 3] },
  { who: 'the process that asks', prepare: askers, where: 'cgroups', level: 'partition' },
  { who: 'the process that asks', prepare: askers, where: 'state folder', level: 'members' },
  { who: 'the owner', prepare: owners, where: 'state folder', level: 'partition' },
];

describe('a move', { skip: nodes.length > 4 && 'of another machine' }, () => {
  for (const { who, prepare, where, level, commits } of KILLS) {
    // Just after each commit; in a long run after each step.
    const skip = !isLong && !commits && 'of a long run';
    it(`of the level ${level} is done or undone whole where ${who} is killed at a step on the ${where}`, {
      skip,
    }, async (t) => {
      const settings = { stateDir: newStateDir(), cgroupRoot: CGROUP_ROOT };
      const manager = await open(settings);
      const folder = where === 'cgroups' ? FOLDER : settings.stateDir;
      const { request: more } = LEVELS.find((each) => each.level === level);
      const ready = await prepare(settings, manager, {
        ...MOVABLE,
        memory: memoryFor(KILLED.bytes),
        ...more,
      });
      let home;
      // Answers whether it has died in the move, or undefined where it has before.
      async function kill(victim, begun = () => {}) {
        const scene = await ready(victim).catch(() => undefined);
        if (!scene) return undefined;
        const at = placeOf(manager.grant(scene.uid));
        if (at.node !== ROOM.node) home = at;
        begun();
        await scene.ask(at.node === ROOM.node ? home : ROOM).catch(() => {});
        const hasDied = await victim.endsWithin(2_000);
        await assertOnePlace(manager, level, hasDied ? scene.remaining : scene.uid, { ...scene, home });
        await victim.kill();
        return hasDied;
      }
      const victimWith = (shim) => actor(shimEnvironment({ folder, ...shim }));
      let [first, last] = commits ?? [];
      if (isLong) {
        const trace = join(settings.stateDir, '..', `steps of ${who} on ${where} of ${level}`);
        await kill(victimWith({ trace }), () => (first = stepsIn(trace) + 1));
        last = Infinity;
      }
      const victimAt = (nth) =>
        victimWith({ fail: { nth, when: 'after', ...(!isLong && { kind: COMMIT }) } });
      let deaths = 0;
      let next = victimAt(first);
      for (let nth = first; nth <= last; nth++) {
        const victim = next;
        // It starts meanwhile.
        if (nth < last) next = victimAt(nth + 1);
        const hasDied = await kill(victim);
        // Steps that fail are in no trace: some of these are before the move.
        if (hasDied === false) break;
        if (hasDied) deaths++;
      }
      t.diagnostic(`killed ${deaths} times`);
      if (isLong) assert.ok(deaths > 3);
      else assert.equal(deaths, last - first + 1);
      for (const { uid } of manager.grants()) await manager.release(uid);
    });
  }
});

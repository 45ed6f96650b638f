// Grants that move between NUMA nodes while what runs on them works: at least 4 nodes of 4 CPUs each,
// root, cgroup v2. Run by node --test.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
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
const BYTES = budget(kernel.bytesOfNode(nodes.at(-1)) > 700 * MI ? 256 : 96, 8) * MI;
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

function actor(options) {
  takeOwnMask();
  const started = new Actor(options);
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
  const child = start('perl', '-e', SPINNER, String(bytes), rests ? '0.002' : '0');
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
    if (rests) Atomics.wait(rest, 0, 0, 2);
  }`;

/** A process with a grant of its own, a thread that spins and memory that it has touched. */
async function owner(settings, request, { bytes, rests }, pinning = 'pin', options = {}) {
  const process = actor(options);
  await process.open(settings);
  const { uid } = await process.acquire(request);
  await process.do(
    async (_, mine, size, code, method, rests) => {
      const { Worker } = globalThis.process.getBuiltinModule('node:worker_threads');
      mine.gap = new Float64Array(new SharedArrayBuffer(8));
      mine.worker = new Worker(code, { eval: true, workerData: { gap: mine.gap, rests } });
      await new Promise((resolve) => mine.worker.once('online', resolve));
      mine.grants.a[method](method === 'pin' ? undefined : {});
      mine.memory = new Uint8Array(size).fill(1);
      mine.ends = [];
      mine.grants.a.on('moveEnd', ({ isMoved, error, memory }) =>
        mine.ends.push(isMoved ? memory : String(error)),
      );
    },
    bytes,
    SPINNING_WORKER,
    pinning,
    rests,
  );
  const gap = () =>
    process.do((_, mine) => {
      const longest = mine.gap[0];
      mine.gap[0] = 0;
      return longest;
    });
  const ends = () => process.do((_, mine) => mine.ends.splice(0));
  return { uid, pid: process.pid, actor: process, gap, ends };
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
  const found = [];
  for (const { cpu, command, tid, from, to, pid } of runs) {
    for (const { held, ...period } of periods) {
      if (Math.min(to, period.to) - Math.max(from, period.from) <= 0) continue;
      const [holder] = Object.entries(held).find(([, cpus]) => cpus.includes(cpu)) ?? [];
      const own = owners.get(pid);
      const isRight = own === undefined ? holder === undefined || !isBound(pid) : holder === own;
      if (!isRight)
        found.push(`${command} (${tid}) of process ${pid} on CPU ${cpu} of ${holder ?? 'nobody'}`);
    }
  }
  return [...new Set(found)];
}

const LEVELS = [
  { level: 'members', request: { enforcement: 'members' } },
  { level: 'partition', request: {} },
  { level: 'isolated', request: { require: 'isolated' }, pinning: 'placeThreads' },
];
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

for (const { level, request: more, pinning } of LEVELS) {
  describe(`grants of the level ${level}`, () => {
    for (const isAttached of level === 'isolated' ? [false] : [false, true]) {
      const who = isAttached ? 'an attached process' : 'the process that owns them';
      it(`move with ${who}: pages follow, and no CPU ever has two owners`, async (t) => {
        const settings = { stateDir: newStateDir(), cgroupRoot: CGROUP_ROOT };
        const manager = await open({ ...settings, sharedMember: true });
        const wanderer = start('perl', '-e', WANDERER);
        await manager.addSharedMember({ pid: wanderer.pid });
        const movers = [];
        for (const work of [
          { bytes: BYTES, rests: !isAttached && !isLong },
          { bytes: BYTES / 4, rests: true },
        ]) {
          const request = { ...MOVABLE, memory: memoryFor(work.bytes), ...more };
          const mover = isAttached
            ? await attached(manager, request, work)
            : await owner(settings, request, work, pinning);
          movers.push({ ...work, ...mover });
        }
        assert.deepEqual(
          manager.grants().map(({ enforcement }) => enforcement),
          [level, level],
        );
        const pids = movers.map(({ uid, pid }) => [uid, pid]);
        watch = await new RecordWatch(settings.stateDir, pids).start();
        const recorder = new Recorder();
        const gaps = [];
        let place = ROOM;
        let most = 0;
        for (let i = 0; i < budget(40, isAttached ? 4 : 2); i++) {
          const mover = movers[i % 2];
          const { cpus, memoryNodes } = manager.grant(mover.uid);
          const left = { cpus: String(cpus), node: memoryNodes.first };
          await mover.gap();
          await recorder.during(async () => {
            await move(manager, mover.uid, place);
            await releaseReally(manager, 'asker');
          });
          most = Math.max(most, assertAt(mover, place, left.node));
          if (mover === movers[0]) gaps.push(await mover.gap());
          // The other one goes where this one was.
          place = left;
        }
        const { periods, strays } = await watch.stop();
        const known = periods.reduce((sum, { from, to }) => sum + to - from, 0);
        t.diagnostic(
          `longest gaps of a thread while it moved: ${gaps.map((gap) => `${Math.round(gap)} ms`).join(', ')}`,
        );
        t.diagnostic(
          `${recorder.runs.length} runs against ${periods.length} periods of the record, of ${Math.round(known / 1e6)} s; at most ${most / 1024} KiB left behind`,
        );
        assert.deepEqual(strays, []);
        const owners = new Map(movers.map(({ uid, pid }) => [pid, uid]));
        const members = [process.pid, wanderer.pid];
        const isBound = (pid) => level !== 'members' || members.includes(pid);
        assert.deepEqual(intrusions(recorder.runs, periods, owners, isBound), []);
        for (const { uid } of movers) if (isAttached) await manager.release(uid);
      });
    }
  });
}

const MOVES_MODULE = new URL('../../support/moves.mjs', import.meta.url).href;
const ALL_CPUS = CpuSet.from(kernel.online());
const KILLED = { bytes: 4 * MI, rests: true };
const KILLS = 3;
// Steps that fail are counted, and in no trace.
const FAILURES = 10;
const COMMIT = 'fsync state.json';

/**
 * The steps that a process is killed at, of those that came before a move and those after it: in a long
 * run all of them, else just after each commit, or some on cgroups.
 */
function killPoints(before, after) {
  const range = (first, last, stride) =>
    Array.from({ length: Math.ceil((last - first + 1) / stride) }, (_, i) => first + i * stride);
  const [first, last] = [before.length + 1, after.length + FAILURES];
  if (isLong)
    return range(first, last, 1).flatMap((nth) => ['before', 'after'].map((when) => ({ nth, when })));
  const commits = (kinds) => kinds.filter((kind) => kind === COMMIT).length;
  if (commits(after) > 0)
    return range(commits(before) + 1, commits(after), 1).map((nth) => ({ nth, when: 'after', kind: COMMIT }));
  return range(first, after.length, Math.ceil((after.length - first) / KILLS)).map((nth) => ({
    nth,
    when: 'after',
  }));
}

/** What must be so whoever has died at whichever step, once somebody has made the next one. */
async function assertOnePlace(manager, level, uid, { pid: tenant, first }) {
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
    assertAt(
      { ...KILLED, pid: tenant },
      { cpus: String(cpus), node },
      node === ROOM.node ? first : ROOM.node,
    );
  }
  // Nothing of memory is lost either.
  const booked = manager.memory().reduce((sum, { reserved }) => sum + reserved, 0);
  assert.equal(booked, grants.length * memoryFor(KILLED.bytes));
}

for (const { level, request: more } of LEVELS.slice(0, 2)) {
  describe(`a move of a grant of the level ${level}`, {
    skip: nodes.length > 4 && 'of another machine',
  }, () => {
    const request = { ...MOVABLE, memory: memoryFor(KILLED.bytes), ...more };
    let manager;
    const stage = async () => {
      const settings = { stateDir: newStateDir(), cgroupRoot: CGROUP_ROOT };
      manager = await open(settings);
      return { settings, manager };
    };
    /** What is on record, and whatever runs, ends. */
    async function tidy() {
      for (const each of actors) await each.kill();
      actors.clear();
      for (const { uid } of manager.grants()) await manager.release(uid).catch(() => {});
      for (const child of processes) child.kill('SIGKILL');
    }

    /** A persistent grant with a process, and one that is to move it. */
    async function withAsker(environment) {
      const { settings, manager } = await stage();
      const { uid, pid } = await attached(manager, request, KILLED);
      const { stateDir } = settings;
      const asker = actor({ env: { ...process.env, ...environment(stateDir) } });
      await asker.open(settings);
      const ask = () =>
        asker.do(
          async ({ importModule }, { manager: opened }, moves, id, to) => {
            const { moveReally } = await importModule(moves);
            await moveReally(opened, id, to, { for: 'asker' });
          },
          MOVES_MODULE,
          uid,
          ROOM,
        );
      return {
        manager,
        uid,
        pid,
        victim: asker,
        ask,
        first: manager.grant(uid).memoryNodes.first,
        remaining: uid,
      };
    }

    /** A process that owns a grant, and is to move it. */
    async function withOwner(environment) {
      const { settings, manager } = await stage();
      const env = { ...process.env, ...environment(settings.stateDir) };
      const { uid, pid, actor: victim } = await owner(settings, request, KILLED, 'pin', { env });
      const ask = () => move(manager, uid, ROOM);
      return {
        manager,
        uid,
        pid,
        victim,
        ask,
        first: manager.grant(uid).memoryNodes.first,
        remaining: undefined,
      };
    }

    for (const [who, prepare, where] of [
      ['the process that asks', withAsker, 'state folder'],
      ['the process that asks', withAsker, 'cgroups'],
      ['the owner', withOwner, 'state folder'],
    ]) {
      if (where === 'cgroups' && level === 'members') continue;
      it(`is done or undone whole where ${who} is killed at a step on the ${where}`, async (t) => {
        const folderOf = (stateDir) => (where === 'cgroups' ? FOLDER : stateDir);
        const steps = join(newStateDir(), '..', `steps-${who}-${where}-${level}`.replaceAll(' ', '-'));
        const kinds = () =>
          kernel
            .read(steps)
            .split('\n')
            .map((line) => JSON.parse(line))
            .filter(({ op }) => op !== 'close')
            .map(({ op, path }) => `${op} ${path}`);
        const whole = await prepare((stateDir) =>
          shimEnvironment({ folder: folderOf(stateDir), trace: steps }),
        );
        const before = existsSync(steps) && kernel.read(steps) !== '' ? kinds() : [];
        await whole.ask();
        const after = kinds();
        await assertOnePlace(whole.manager, level, whole.uid, whole);
        await tidy();
        const points = killPoints(before, after);
        let deaths = 0;
        for (const fail of points) {
          // Steps that fail are in no trace: some of these are before the move.
          const scene = await prepare((stateDir) =>
            shimEnvironment({ folder: folderOf(stateDir), fail }),
          ).catch(() => undefined);
          if (!scene) {
            await tidy();
            continue;
          }
          await scene.ask().catch(() => {});
          if (await scene.victim.endsWithin(2_000)) deaths++;
          await assertOnePlace(scene.manager, level, scene.remaining, scene);
          await tidy();
        }
        t.diagnostic(`killed ${deaths} times in ${after.length - before.length} steps`);
        assert.ok(deaths > 0);
      });
    }
  });
}

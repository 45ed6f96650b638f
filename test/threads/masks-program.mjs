// A process that runs sequences of operations on grants, and compares the masks of its threads with
// a model after each. Each line of its input is a JSON sequence { level, options, chosen, steps }
// (see masks.mjs); each line of its output is the problem, as JSON.
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { threads } from '../../dist/entries/diagnostics.js';
import { CpuSet, openManager, pin } from '../../dist/index.js';
import { Successor } from './masks-successor.mjs';

const IDLE = `
  const { readlinkSync } = require('node:fs');
  require('node:worker_threads').parentPort.postMessage(Number(readlinkSync('/proc/thread-self').split('/').at(-1)));
  setInterval(() => {}, 100_000);`;
// Expected refusals: nothing may have changed.
const REFUSALS = [
  'ERR_ALREADY_PINNED',
  'ERR_ENFORCEMENT',
  'ERR_INSUFFICIENT_CPUS',
  'ERR_ISOLATED_NEEDS_PLACEMENT',
  'ERR_SCHEDULING',
];

const listOf = (text, field) => CpuSet.parse(new RegExp(`^${field}:\\s*(\\S+)$`, 'm').exec(text)[1]);
const maskOf = (tid) => listOf(readFileSync(`/proc/self/task/${tid}/status`, 'utf8'), 'Cpus_allowed_list');
// A thread that closes what the manager before had open ends meanwhile.
function pinIfThere(tid) {
  try {
    pin(ALL, { threads: tid });
  } catch (error) {
    if (error.errnoName !== 'ESRCH') throw error;
  }
}

const cgroupOf = () => readFileSync('/proc/self/cgroup', 'utf8');
const cut = (chosen, pool) => (chosen.intersects(pool) ? chosen.intersection(pool) : pool);

const [home] = process.argv.slice(2);
if (home) writeFileSync(join(home, 'cgroup.procs'), String(process.pid));
// Moves no threads, and a child only once it is there.
const MOVES_PROCESSES = existsSync('/sys/fs/cgroup/cgroup.controllers');

const idle = async (start) => {
  const worker = start(IDLE, { eval: true });
  const [tid] = await once(worker, 'message');
  return { worker, tid };
};
const plain = (await Promise.all([0, 1].map(() => idle((...args) => new Worker(...args))))).map(
  ({ tid }) => tid,
);
// Starts libuv's pool.
await Promise.all([0, 1, 2, 3, 4].map(() => stat('.')));
const ALL = maskOf(process.pid);
const HOME = cgroupOf();
const MAIN = process.pid;
const SLOTS = [MAIN, ...plain];
// What else appears without a step closes what a manager had open, with the mask of the thread that
// started it, and ends.
const LASTING = new Set(threads().map(({ tid }) => tid));
let successor;

class Sequence {
  #level;
  #options;
  #manager;
  // The two grants: { grant, cpus, isGone }, the latter once they were handed over.
  #held = [];
  // The choice of each thread: one of these, if the kernel does not reveal which.
  #chosen = new Map();
  #pinned = new Map();
  #workers = [];
  wrong = [];

  async run({ level, options, chosen, steps }) {
    this.#level = level;
    const stateDir = mkdtempSync(join(tmpdir(), 'numalign-masks-'));
    for (const { tid } of threads()) pinIfThere(tid);
    for (const [slot, list] of Object.entries(chosen)) this.#choose(SLOTS[slot], CpuSet.parse(list));
    this.#options = { ...options, stateDir, cpuManagerReconcilePeriod: 0 };
    this.#manager = await openManager(this.#options);
    if (home) await this.#manager.addSharedMember({ cgroup: home });
    try {
      this.#check('open');
      for (const [i, [verb, ...args]] of steps.entries()) {
        await this.#step(verb, args);
        this.#check(`step ${i}, ${verb}`);
        if (this.wrong.length > 0) break;
      }
      for (const held of [0, 1]) await this.#step('release', [held]);
      this.#check('all released');
      for (const { worker } of this.#workers) await worker.terminate();
    } finally {
      this.#manager.close();
      await successor?.reset();
      rmSync(stateDir, { recursive: true });
    }
    this.#check('close');
    if (cgroupOf() !== HOME) this.wrong.push(`close: in another cgroup: ${cgroupOf()}`);
    return this.wrong;
  }

  #choose(tid, cpus) {
    pin(cpus, { threads: tid });
    this.#chosen.set(tid, [cpus]);
  }

  get #pool() {
    return this.#held.reduce((left, held) => (held ? left.difference(held.cpus) : left), ALL);
  }

  async #step(verb, args) {
    try {
      await this[verb](...args);
    } catch (error) {
      if (!REFUSALS.includes(error.code)) throw error;
    }
  }

  async acquire(at, cpu) {
    if (this.#held[at]) return;
    const grant = await this.#manager.acquire({ cpu });
    this.#held[at] = { grant, cpus: grant.cpus };
    if (grant.enforcement !== this.#level) this.wrong.push(`only ${grant.enforcement} is reached`);
  }

  // Threads of this process can run on it.
  #own(at) {
    const held = this.#held[at];
    return held && !held.isGone ? held : undefined;
  }

  // `who`: 'process', or the number of a thread.
  pin(at, who, replace) {
    const held = this.#own(at);
    const which = who === 'process' ? who : this.#tid(who);
    if (!held || which === undefined) return;
    held.grant.pin({ threads: which, replace, memory: 'none' });
    for (const tid of which === 'process' ? threads().map((each) => each.tid) : [which])
      this.#pinned.set(tid, held);
  }

  async placeThreads(at, isOneToOne, replace) {
    const held = this.#own(at);
    if (!held) return;
    await held.grant.placeThreads({
      replace,
      ...(isOneToOne && { main: 'one-to-one', workers: 'one-to-one' }),
    });
    for (const { tid } of threads()) this.#pinned.set(tid, held);
  }

  async prewarmPool(at, replace) {
    const held = this.#own(at);
    if (!held) return;
    const { moved } = await held.grant.prewarmPool({ replace });
    for (const { tid } of moved) this.#pinned.set(tid, held);
  }

  async unpin(at) {
    const held = this.#own(at);
    if (!held) return;
    await held.grant.unpin();
    this.#free(held);
  }

  #free(held) {
    for (const [tid, grant] of this.#pinned) if (grant === held) this.#pinned.delete(tid);
  }

  async spawn(at) {
    const held = this.#own(at);
    if (!held) return;
    const child = held.grant.spawn('grep', ['Cpus_allowed_list', '/proc/self/status']);
    const exit = once(child, 'exit');
    let text = '';
    for await (const chunk of child.stdout) text += chunk;
    await exit;
    const isBornThere = !MOVES_PROCESSES || held.grant.enforcement === 'members';
    if (isBornThere && !listOf(text, 'Cpus_allowed_list').isSubsetOf(held.cpus))
      this.wrong.push(`a child was born on ${text}`);
  }

  async worker(at) {
    const held = this.#own(at);
    if (!held || this.#workers.length === 2) return;
    const { worker, tid } = await idle((...args) => held.grant.worker(...args));
    this.#workers.push({ worker, tid });
    this.#chosen.set(tid, this.#chosenBy(MAIN));
    this.#pinned.set(tid, held);
  }

  async endWorker() {
    const ended = this.#workers.pop();
    if (!ended) return;
    await ended.worker.terminate();
    this.#chosen.delete(ended.tid);
    this.#pinned.delete(ended.tid);
  }

  #tid(who) {
    return [...SLOTS, ...this.#workers.map(({ tid }) => tid)][who];
  }

  schedule(at, who) {
    const tid = this.#tid(who);
    if (tid !== undefined) this.#own(at)?.grant.schedule({ nice: 1, threads: tid });
  }

  async resize(at, cpu) {
    const held = this.#own(at);
    if (!held) return;
    await held.grant.resize({ cpu });
    held.cpus = held.grant.cpus;
  }

  async transfer(at) {
    const held = this.#own(at);
    if (!held) return;
    successor ??= new Successor();
    await successor.open(this.#options);
    const transfer = await held.grant.transfer();
    await successor.takeOver(transfer.token);
    if (!(await transfer.accepted)) throw new Error('the successor has not got it');
    held.isGone = true;
    this.#free(held);
  }

  async reconcile() {
    const { drifts } = await this.#manager.reconcile();
    for (const { what } of drifts) this.wrong.push(`there was to repair: ${what}`);
  }

  /** A thread sets its own mask, to CPUs where it may be. */
  choose(who, list) {
    const tid = this.#tid(who);
    if (tid === undefined) return;
    const held = this.#pinned.get(tid);
    const before = maskOf(tid);
    const cpus = CpuSet.parse(list).intersection(held ? held.cpus : this.#pool);
    if (cpus.isEmpty) return;
    pin(cpus, { threads: tid });
    // On a grant's CPUs it is a choice among these, for as long as it is there.
    if (held) return;
    const isAll = cpus.equals(this.#pool);
    const isSame = cpus.equals(before);
    this.#chosen.set(tid, [cpus, ...(isAll ? [ALL] : []), ...(isSame ? this.#chosenBy(tid) : [])]);
  }

  async release(at) {
    const held = this.#held[at];
    if (!held) return;
    if (held.isGone) await successor.release(held.grant.uid);
    else await held.grant.release();
    this.#free(held);
    this.#held[at] = undefined;
  }

  #chosenBy(tid) {
    return this.#chosen.get(tid) ?? [ALL];
  }

  #check(when) {
    const pool = this.#pool;
    const started = new Set(this.#workers.map(({ tid }) => tid));
    for (const { tid } of threads()) {
      if (!LASTING.has(tid) && !started.has(tid)) continue;
      let mask;
      try {
        mask = maskOf(tid);
      } catch {
        continue; // it has ended
      }
      const name = tid === MAIN ? 'the main thread' : `thread ${tid}`;
      const held = this.#pinned.get(tid);
      if (held) {
        if (!mask.isSubsetOf(held.cpus))
          this.wrong.push(`${when}: ${name} is on ${mask}, pinned for ${held.cpus}`);
        continue;
      }
      const expected = this.#chosenBy(tid).map((chosen) => cut(chosen, pool));
      if (!expected.some((each) => each.equals(mask)))
        this.wrong.push(`${when}: ${name} has ${mask}, and should have ${expected.join(' or ')}`);
    }
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = await new Sequence().run(JSON.parse(line));
  } catch (error) {
    answer = [error.stack];
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
process.exit();

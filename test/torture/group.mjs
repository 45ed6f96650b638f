// A group of agents on one state folder, with a checker beside them: it kills, stops, replaces and
// watches, and compares at the end of each round.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { AgentProcess, now } from './agent-process.mjs';
import { Failpoints } from './failpoints.mjs';
import { History } from './history.mjs';
import { MoveWatch } from './move-watch.mjs';
import { isLocked } from './owner-locks.mjs';
import { isEnding, livingThreadsOf, MARK, marked, signal, standsStill } from './processes.mjs';
import { QuietTree, TREE } from './quiet-tree.mjs';
import { Random } from './random.mjs';
import { parseList, readState } from './state-file.mjs';
import { makeSharedFolder, USERS } from './users.mjs';
import { Vandal } from './vandal.mjs';

const AUDIT = fileURLToPath(new URL('audit.mjs', import.meta.url));
const STILL_MS = 3000;
const READ_EVERY_MS = 15;
// On average: about fifty transactions.
const STEPS_TO_LIVE = 600;
const STEPS_TO_ERROR = 150;
// Beginnings of paths on which calls fail again and again, and how often they fail.
const FAULTY_PATHS = ['state', 'lock', 'owners/', 'waiting/', 'members/'];
const STEPS_TO_ERROR_THERE = 5;
// The longest wait, with stops, on a busy machine.
const TICKET_MS = 6000;
// The time that a new process takes to open the folder and to acquire.
const OPENER_MS = 1500;
// Rounds of reconciliation, on a busy machine.
const REST_MS = 30_000;

// Disks give inodes again at once.
function placesIn(folder) {
  try {
    return readdirSync(folder).map((name) => {
      const { ino, birthtimeMs } = statSync(join(folder, name));
      return { name, inode: ino, key: `${name} ${ino} ${birthtimeMs}` };
    });
  } catch {
    // Another process has removed one meanwhile.
    return [];
  }
}

export class Group {
  machine;
  operations = new Map();
  refusals = new Map();
  violations = [];
  failpoints;
  features = new Map();
  counts = {
    started: 0,
    killed: 0,
    failed: 0,
    stopped: 0,
    snapshots: 0,
    states: 0,
    holdings: 0,
    rounds: 0,
    orphans: 0,
    disturbed: 0,
    shared: 0,
    rested: 0,
    moves: 0,
  };
  /** By slot. */
  slots;
  #settings;
  #random;
  #folder;
  #stateDir;
  #agents = new Set();
  #history = new History();
  #children = [];
  #asked = 0;
  #generation = 0;
  #isRunning = false;
  // Places in the queue: when each first appeared.
  #tickets = new Map();
  // A file with a boot id other than the machine's.
  #bootId;
  // Once this file exists, nothing fails any more.
  #calm;
  // In some rounds.
  #vandal;
  #isShared = false;
  #isFaulty = true;
  // The settings that quiet grants change.
  #tree;
  // The moves of each round.
  #watch;
  #quietSnapshots = [];
  #number = 0;

  /**
   * `settings`: { seed, packages, run, canUnshare, hasUsers, pause, disturbed }; `folder`: a folder
   * for this group, without links; `isInMemory`: on a tmpfs.
   */
  constructor(machine, processes, settings, folder, isInMemory) {
    this.machine = machine;
    this.#settings = settings;
    this.#folder = folder;
    this.#stateDir = join(folder, 'state');
    this.#calm = join(folder, 'calm');
    this.#random = new Random(settings.seed, machine.isReal ? 1 : 2);
    this.failpoints = new Failpoints(this.#random, machine.hasMovesAbove ? 5 : 2);
    this.slots = Array.from({ length: processes }, () => ({ operations: 0, acquired: 0, longest: 0 }));
    mkdirSync(folder, { recursive: true });
    this.#makeLogs();
    if (machine.isQuiet) this.#tree = new QuietTree(join(this.#stateDir, TREE), machine.managed.length);
    // A folder on a disk does not show a restart of the machine, so that only holdings last.
    if (!isInMemory) return;
    this.#bootId = join(folder, 'boot-id');
    writeFileSync(this.#bootId, `${randomUUID()}\n`);
  }

  #makeLogs() {
    const logs = join(this.#folder, 'logs');
    rmSync(logs, { recursive: true, force: true });
    mkdirSync(logs);
    chmodSync(logs, 0o777);
  }

  #violation(text) {
    this.violations.push(`${this.machine.name}: ${text}`);
  }

  // ---- agents

  #start(slot) {
    const number = ++this.#number;
    const { packages, seed, run, canUnshare, pause } = this.#settings;
    const setup = {
      package: packages[number % packages.length],
      machine: this.machine,
      stateDir: this.#stateDir,
      seed: String(new Random(seed, this.machine.isReal ? 3 : 4, number).bits()),
      pause,
      isDisturbed: this.#vandal !== undefined,
      // Older packages refuse a state that has records of the kubelet.
      hasKubelet: packages.length === 1 && !this.machine.isReal,
      hasErrors: this.#isFaulty && this.#random.chance(this.machine.hasMovesAbove ? 8 : 3),
    };
    const errors = setup.hasErrors ? this.#errors(seed + number) : undefined;
    const inNamespaces = canUnshare && this.#random.chance(3);
    const agent = new AgentProcess({
      number,
      slot,
      setup,
      // Repeated failures must be visible to the others.
      ...(errors?.path === undefined && this.#fate(seed, number)),
      errors,
      ...(this.#bootId !== undefined && this.#random.chance(3) && { bootId: this.#bootId }),
      log: join(this.#folder, 'logs', String(number)),
      inNamespaces,
      ...(this.#isShared && {
        user: this.#random.pick([undefined, ...USERS]),
        isBlind: canUnshare && !inNamespaces && this.#random.chance(3),
      }),
      environment: { [MARK]: run },
      onEvent: (from, event) => this.#hear(from, event),
    });
    this.counts.started++;
    this.#agents.add(agent);
    agent.ended.then((end) => this.#bury(agent, end));
  }

  // The step at which it dies by itself, if any: a chosen one or a random one.
  #fate(seed, number) {
    const fate = this.#random.weighted({ chosen: this.machine.hasMovesAbove ? 12 : 3, any: 2, none: 3 });
    if (fate === 'chosen') return { fail: this.failpoints.next() };
    return fate === 'any' ? { random: { seed: seed + number, rate: STEPS_TO_LIVE } } : {};
  }

  #errors(seed) {
    const calm = this.#calm;
    if (this.#random.chance(2)) return { seed, calm, rate: STEPS_TO_ERROR };
    const paths = this.#tree ? [...FAULTY_PATHS, `${TREE}/`] : FAULTY_PATHS;
    return { seed, calm, rate: STEPS_TO_ERROR_THERE, path: this.#random.pick(paths) };
  }

  #hear(agent, event) {
    const slot = this.slots[agent.slot];
    switch (event.event) {
      case 'ready':
        for (const [name, has] of Object.entries(event.features))
          this.features.set(name, has || (this.features.get(name) ?? false));
        return;
      case 'did': {
        const { operation, code, took, expected, message } = event;
        this.operations.set(operation, (this.operations.get(operation) ?? 0) + (code === undefined ? 1 : 0));
        slot.operations++;
        slot.longest = Math.max(slot.longest, took);
        if (code === undefined && ['acquire', 'persist', 'wait'].includes(operation)) slot.acquired++;
        if (code !== undefined)
          this.refusals.set(`${operation} ${code}`, (this.refusals.get(`${operation} ${code}`) ?? 0) + 1);
        if (code !== undefined && !expected)
          this.#violation(`agent ${agent.number} (${agent.traits}): ${operation} failed: ${message}`);
        return;
      }
      case 'offers': {
        const others = [...this.#agents].filter((other) => other !== agent && other.isReady);
        if (others.length > 0) this.#random.pick(others).tell({ uid: event.uid, token: event.token });
        return;
      }
      case 'asks':
        if (event.persistent) this.#asked++;
        return;
      case 'child':
        // With the first process of a pid namespace, all others in it die.
        if (agent.inNamespaces) return;
        this.#children.push({ pid: event.pid, agent: agent.number, until: event.until });
    }
    this.#history.add(agent.number, event);
  }

  #bury(agent, { code, killedBy, complaint }) {
    this.#agents.delete(agent);
    const { met, death } = agent.steps();
    for (const kind of met) this.failpoints.met(kind);
    if (death) {
      this.counts.failed++;
      this.failpoints.hit(death.died, death.when);
      this.#history.died(agent.number, death.time);
    } else if (agent.fail) {
      this.failpoints.miss(agent.fail);
    }
    if (agent.killedAt !== undefined) {
      this.counts.killed++;
      this.#history.died(agent.number, agent.killedAt);
    }
    if (!death && agent.killedAt === undefined) {
      this.#history.died(agent.number, now());
      this.#violation(`agent ${agent.number} ended by itself: ${killedBy ?? code}\n${complaint}`);
    }
    if (this.#isRunning) this.#start(agent.slot);
  }

  // ---- events

  async #disturb(until) {
    while (now() < until) {
      await sleep((20 + this.#random.below(160)) * (this.machine.hasMovesAbove ? 3 : 1));
      const agents = [...this.#agents].filter(
        ({ isReady, isStopped, killedAt }) => isReady && !isStopped && killedAt === undefined,
      );
      if (agents.length === 0) continue;
      const victim = this.#random.pick(agents);
      const what = this.#random.weighted({
        // Agents that are to die in the middle of a move must live until then.
        kill: this.machine.hasMovesAbove ? 1 : 2,
        stop: this.machine.hasMovesAbove ? 12 : 8,
        childKill: 2,
        snapshot: this.#tree ? 16 : this.machine.isReal ? 6 : 0,
      });
      if (this.#vandal && this.#random.chance(4)) {
        this.counts.disturbed++;
        const begun = now();
        const action = this.#vandal.act();
        this.#history.disturbed(action, begun);
        // The next process that opens the folder knows nothing of its past.
        if (['putBack', 'restore'].includes(action) && this.#random.chance(3)) {
          // Stopped agents keep their places.
          this.#tickets.clear();
          for (const agent of agents) if (agent !== victim) this.#stopFor(agent, OPENER_MS);
          victim.kill();
          continue;
        }
      }
      if (what === 'kill' && !victim.isFaulty) victim.kill();
      if (what === 'stop') this.#stopFor(victim, 20 + this.#random.below(200));
      if (what === 'childKill') this.#killChild();
      if (what === 'snapshot') await this.#takeSnapshot();
    }
  }

  #stopFor(agent, ms) {
    this.counts.stopped++;
    agent.stop();
    setTimeout(() => agent.continue(), ms);
  }

  #killChild() {
    const living = this.#children.filter(({ until }) => until > now());
    if (living.length === 0) return;
    const child = this.#random.pick(living);
    this.#endChild(child);
  }

  // Not after the end of the process: its pid may be another's then.
  #endChild(child) {
    child.until = now();
    this.#history.childDied(child.pid, child.until);
    if (marked(this.#settings.run).includes(child.pid)) signal(child.pid, 'SIGKILL');
  }

  // Masks of running processes are from different moments: stop them all first.
  async #takeSnapshot() {
    const all = [...this.#agents].filter(
      ({ pid, isStopped, killedAt }) => pid !== undefined && !isStopped && killedAt === undefined,
    );
    for (const agent of all) agent.stop();
    const deadline = now() + STILL_MS * 1e6;
    let still = all;
    for (;;) {
      still = all.filter(({ pid }) => standsStill(pid));
      if (still.length === all.length || now() > deadline) break;
      await sleep(1);
    }
    const time = now();
    // An older state does not know what settings were before.
    if (this.#tree && !this.#vandal && still.length === all.length) this.#lookAtSettings(time);
    const processes = still.map((agent) => ({ agent: agent.number, masks: livingThreadsOf(agent.pid) }));
    const children = this.#children.filter(({ until }) => until > time);
    for (const { pid, agent } of children) processes.push({ agent, child: pid, masks: livingThreadsOf(pid) });
    // An agent that died or continued meanwhile proves nothing.
    const sure = processes.filter(({ agent, child }) => {
      const live = still.find(({ number }) => number === agent);
      return child ? true : live.isStopped && live.killedAt === undefined;
    });
    this.#history.sawMasks({ time, processes: sure });
    this.counts.snapshots++;
    for (const agent of all) agent.continue();
  }

  // A killed or starting agent may still be at work: the moment is the same only if the state is
  // unchanged after it.
  #lookAtSettings(time) {
    const path = join(this.#stateDir, 'state.json');
    const before = readState(path);
    const values = this.#tree.read();
    const after = readState(path);
    const areAllStill = [...this.#agents].every(({ isStopped }) => isStopped);
    if (!before || !areAllStill || before.generation !== after.generation) return;
    this.#quietSnapshots.push({ time, values, state: after });
  }

  // In rounds in which only processes fail, the quiet of every grant is in force.
  #checkSettings() {
    const holdings = this.#isFaulty ? [] : this.#history.holdings();
    for (const { time, values, state } of this.#quietSnapshots) {
      const held = new Map(
        holdings.filter(({ from, to }) => from <= time && time < to).map(({ uid, keys }) => [uid, keys]),
      );
      for (const text of this.#tree.wrong(values, state, held, this.#isFaulty))
        this.#violation(`generation ${state.generation}: ${text}`);
    }
    this.#quietSnapshots = [];
  }

  // No request waits this long: one that stays in the queue holds up all behind it.
  #checkQueue() {
    const folder = join(this.#stateDir, 'waiting');
    const before = this.#tickets;
    // Forget ended places: names and inodes are used again.
    this.#tickets = new Map();
    for (const { name, inode, key } of placesIn(folder)) {
      const since = before.get(key) ?? now();
      this.#tickets.set(key, since);
      if (now() - since > TICKET_MS * 1e6 && isLocked(inode))
        this.#violation(`the place ${name} in the queue is taken and not left`);
    }
  }

  async #observe(until) {
    while (now() < until) {
      await sleep(READ_EVERY_MS);
      this.#checkQueue();
      for (const name of ['state.json', 'state.copy.json']) {
        const begun = now();
        try {
          const isFollowed = name === 'state.json' && !this.#vandal;
          const state = readState(
            join(this.#stateDir, name),
            isFollowed ? (...seen) => this.#watch.sees(...seen) : undefined,
          );
          if (isFollowed) for (const text of this.#watch.flaws(begun / 1e6)) this.#violation(text);
          if (!state || name !== 'state.json') continue;
          this.counts.states++;
          this.#checkCapacity(state);
          this.#history.sawState(begun, now(), state);
        } catch (error) {
          // A state that was put back may be damaged until the next transaction.
          if (!this.#vandal) this.#violation(`${name} does not load: ${error.message}`);
        }
      }
    }
  }

  #checkCapacity({ memory, generation }) {
    for (const [node, types] of Object.entries(memory)) {
      for (const [type, bytes] of Object.entries(types)) {
        const capacity = this.machine.capacity?.[type] ?? 0;
        if (bytes > capacity)
          this.#violation(
            `generation ${generation}: NUMA node ${node} has ${capacity} bytes of ${type}, ${bytes} are booked`,
          );
      }
    }
  }

  // ---- a round

  /** Lets agents work for a time, kills them all, and checks what was promised. */
  async round(seconds) {
    const canRemove = !this.machine.isReal;
    const { disturbed } = this.#settings;
    const isSometimes = this.machine.hasElastic || !(this.#tree || this.machine.hasMovesAbove);
    const isDisturbed = disturbed || (isSometimes && this.#random.chance(this.machine.hasElastic ? 2 : 3));
    this.#vandal = isDisturbed
      ? new Vandal(this.#stateDir, this.#random, canRemove, this.#tree !== undefined)
      : undefined;
    this.#isFaulty = !this.#tree || this.#random.chance(2);
    // If a process removes the folder, it is made again as the folder of one user.
    this.#isShared =
      this.#settings.hasUsers && !this.#tree && !(this.#vandal && canRemove) && this.#random.chance(2);
    // Sometimes from the very first commit on.
    if (this.#isShared || this.#random.chance(2)) {
      rmSync(this.#stateDir, { recursive: true, force: true });
      // Generations begin at 1 again: an owner's claims do not tell a copy of the folder before from what
      // follows them.
      rmSync(`${this.#stateDir}.backup`, { recursive: true, force: true });
      this.#generation = 0;
    }
    if (this.#isShared) {
      makeSharedFolder(this.#stateDir);
      this.counts.shared++;
    }
    this.#tree?.make();
    rmSync(this.#calm, { force: true });
    this.#watch = new MoveWatch(this.#stateDir, this.machine.grantable);
    const until = now() + seconds * 1e9;
    this.#isRunning = true;
    for (let slot = 0; slot < this.slots.length; slot++) this.#start(slot);
    await Promise.all([this.#disturb(until), this.#observe(until)]);
    this.#isRunning = false;
    if (this.#vandal === undefined && (this.#isShared || this.#random.chance(2))) await this.#rest();
    const last = [...this.#agents];
    for (const agent of last) agent.kill();
    await Promise.all(last.map(({ ended }) => ended));
    await this.#clear();
    this.counts.rounds++;
    this.counts.moves += this.#watch.moves;
    this.counts.holdings += this.#history.holdings().length;
    for (const text of new Set(this.#history.violations())) this.#violation(text);
    this.#checkSettings();
    await this.#audit();
    if (this.violations.length > 0)
      writeFileSync(join(this.#folder, 'history.json'), JSON.stringify(this.#history));
    this.#history = new History();
    this.#children = [];
    this.#asked = 0;
    if (this.violations.length > 0) return;
    this.#makeLogs();
  }

  // If no process holds anything or waits, the queue is empty and all processes may run everywhere
  // again, whatever happened and failed meanwhile.
  async #rest() {
    writeFileSync(this.#calm, '');
    for (const agent of this.#agents) agent.tell({ rest: true });
    const isOver = await this.#within(REST_MS, () => [...this.#agents].every(({ isResting }) => isResting));
    const pods = () => readState(join(this.#stateDir, 'state.json'))?.pods ?? new Map();
    const atWork = [...this.#agents].filter(({ isResting }) => !isResting);
    // On this machine a process may have no CPU for long.
    if (!isOver && this.machine.hasMovesAbove)
      for (const { number, traits } of atWork)
        this.#violation(`agent ${number} (${traits}) does not come to rest`);
    if (!isOver) return;
    // Records of requests that are over; a grant may stay if no agent could release it.
    const passing = () => [...pods().values()].filter((pod) => pod.isPlaceholder || pod.upcoming);
    await this.#within(REST_MS, () => passing().length === 0);
    for (const { uid, isPlaceholder } of passing())
      this.#violation(`${isPlaceholder ? 'room' : 'a change'} of ${uid} stays without any request`);
    if (pods().size > 0) return;
    const places = () => placesIn(join(this.#stateDir, 'waiting')).filter(({ inode }) => isLocked(inode));
    await this.#within(REST_MS, () => places().length === 0);
    for (const { name } of places())
      this.#violation(`the place ${name} in the queue is taken, but no request waits`);
    if (!this.machine.isReal) return;
    const all = String(this.machine.allowed);
    const confined = () =>
      [...this.#agents].flatMap(({ pid, number, traits }) =>
        livingThreadsOf(pid)
          .filter(({ cpus }) => String(cpus) !== all)
          .map(({ tid, cpus }) => `thread ${tid} of agent ${number} (${traits}) is left on CPUs ${cpus}`),
      );
    this.counts.rested++;
    await this.#within(REST_MS, () => confined().length === 0);
    for (const text of confined()) this.#violation(`${text} once all was released`);
  }

  async #within(ms, isThere) {
    for (const end = now() + ms * 1e6; !isThere(); await sleep(READ_EVERY_MS)) if (now() > end) return false;
    return true;
  }

  // Children hold the grants of their dead parents.
  async #clear() {
    for (const { pid } of this.#children) this.#history.childDied(pid, now());
    for (;;) {
      const left = marked(this.#settings.run).filter((pid) => this.#isHere(pid));
      if (left.length === 0 && !this.#children.some(({ pid }) => isEnding(pid))) return;
      this.counts.orphans += left.length;
      for (const pid of left) signal(pid, 'SIGKILL');
      await sleep(5);
    }
  }

  // Both groups carry the mark; the folder tells them apart.
  #isHere(pid) {
    return this.#settings.folderOf(pid) === this.#stateDir;
  }

  // Once every owner is dead, a process that opens the folder finds everything free except
  // persistent grants.
  async #audit() {
    const packages = this.#settings.packages;
    const setup = { package: this.#random.pick(packages), machine: this.machine, stateDir: this.#stateDir };
    let answers;
    try {
      const { stdout } = await promisify(execFile)(process.execPath, [AUDIT, JSON.stringify(setup)]);
      answers = stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
    } catch (error) {
      this.#violation(`the state cannot be opened once all are dead: ${error.stderr || error.message}`);
      return;
    }
    const [before, after] = answers;
    if (before.generation < this.#generation && !this.#vandal)
      this.#violation(`generation ${before.generation} after ${this.#generation}`);
    this.#generation = after.generation;
    this.#checkPersistent(before);
    this.#checkKubelet(before);
    const free = parseList(after.free);
    const lost = this.machine.grantable.filter((cpu) => !free.includes(cpu));
    if (lost.length > 0) this.#violation(`CPUs ${lost} are lost once all owners are dead`);
    const state = readState(join(this.#stateDir, 'state.json'));
    if (state.pods.size > 0)
      this.#violation(`the state has ${state.pods.size} grants once all were released`);
    if (state.quiet.length > 0)
      this.#violation(`${state.quiet.length} settings are on record as changed once all were released`);
    for (const text of (!this.#vandal && this.#tree?.changed()) || [])
      this.#violation(`${text} once all were released`);
    if (Object.keys(state.memory).length > 0)
      this.#violation(`memory is lost: ${JSON.stringify(state.memory)}`);
  }

  // Once all are dead, the last record is still there.
  #checkKubelet({ kubelet }) {
    const last = this.#history.kubeletRecords().find(({ to }) => to === Number.POSITIVE_INFINITY);
    if (!last || this.#vandal) return;
    const missing = [...last.keys].filter((key) => !parseList(kubelet).includes(Number(key.slice(4))));
    if (missing.length > 0)
      this.#violation(`of what the kubelet has ${missing.join(', ')} is off the record`);
  }

  #checkPersistent({ grants, free, kubelet }) {
    const { must, ended, known } = this.#history.persistent();
    const there = new Map(
      grants.map(({ uid, cpus }) => [uid, new Set(parseList(cpus).map((cpu) => `cpu ${cpu}`))]),
    );
    for (const [uid, { keys, size }] of must) {
      const has = there.get(uid);
      const missing = [...keys].filter((key) => key.startsWith('cpu ') && !has?.has(key));
      if (!has) this.#violation(`persistent grant ${uid} is lost`);
      else if (missing.length > 0) this.#violation(`persistent grant ${uid} has lost ${missing.join(', ')}`);
      else if (size !== undefined && size !== has.size)
        this.#violation(`persistent grant ${uid} has ${has.size} CPUs, ${size} before it was moved`);
    }
    for (const { uid, kind, upcoming } of grants) {
      if (upcoming !== '')
        this.#violation(`grant ${uid} is still about to have ${upcoming} though all are dead`);
      if (kind !== 'persistent') this.#violation(`grant ${uid} is on record though its owner is dead`);
      if (ended.has(uid)) this.#violation(`grant ${uid} is on record again though it was released`);
    }
    const unreported = grants.filter(({ uid }) => !known.has(uid)).length;
    if (unreported > this.#asked)
      this.#violation(`${unreported} unreported persistent grants, only ${this.#asked} were requested`);
    const given = parseList(kubelet).map((cpu) => `cpu ${cpu}`);
    const taken = new Set([...given, ...[...there.values()].flatMap((keys) => [...keys])]);
    const lost = this.machine.grantable.filter(
      (cpu) => !parseList(free).includes(cpu) && !taken.has(`cpu ${cpu}`),
    );
    if (lost.length > 0) this.#violation(`CPUs ${lost} are lost once their owners are dead`);
  }
}

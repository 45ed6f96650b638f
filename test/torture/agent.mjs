// A process that uses numalign at random and reports what it does, one JSON object a line, before
// it goes on: `holds` after it learns that it has something, `drops` before it begins to give it
// away. Only kill -9 ends it. Its argument is JSON: package, machine, stateDir, seed, pause,
// isDisturbed, hasErrors. Its input: lines { token } of grants that it may take over, and { rest },
// after which it releases everything, persistent grants included, and waits.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerMoves, openMoves } from './moves.mjs';
import { modulesOf } from './package-modules.mjs';
import { openQuietManager, quieterOf } from './quiet-manager.mjs';
import { Random } from './random.mjs';
import { GONE, isExpected, REFUSALS } from './refusals.mjs';
import { randomPod, randomRequest } from './requests.mjs';
import { parseList, readState } from './state-file.mjs';

const CHILD_SECONDS = 2;
const LONGEST_BUSY_MS = 2500;
// A commit that was under way when the process became busy is on record by then.
const COMMIT_MS = 50;
const MAX_GRANTS = 3;

const setup = JSON.parse(process.argv[2]);
const { machine, stateDir } = setup;
const load = modulesOf(setup.package);
const numalign = await load('index');
const { discover } = await load('entries/topology');
const random = new Random(setup.seed);
// For answers to other agents, at any time.
const answers = new Random(setup.seed, 1);

const now = () => Number(process.hrtime.bigint());
function report(event, facts = {}) {
  writeSync(1, `${JSON.stringify({ event, time: now(), ...facts })}\n`);
}

// ---- what this agent holds

/**
 * By uid: { grant, isPersistent, isPinned, child, isMovable, isMoving, isBusy, isRoom, isFixed,
 * isElastic }
 */
const held = new Map();
const tokens = [];

function keysOf({ cpus, held: siblings, devices }) {
  const owned = Object.entries(devices).flatMap(([resource, list]) =>
    list.map(({ id }) => `${resource} ${id}`),
  );
  return [...[cpus, siblings].flatMap((set) => parseList(String(set))).map((cpu) => `cpu ${cpu}`), ...owned];
}

const isCpu = (key) => key.startsWith('cpu ');

// Any agent may release a persistent grant, or move one that consents. Only its devices and its
// number of CPUs are certain; of an elastic one only its devices. A room gets its CPUs from the owner
// that moves: no file of its own owner has them yet if an earlier state is put back.
function factsOf({ grant, isPersistent, isMovable, isElastic, isRoom }) {
  if (isRoom && setup.isDisturbed) return { keys: [] };
  const keys = keysOf(grant);
  if (!isElastic && (!isPersistent || !isMovable)) return { keys };
  const size = isElastic ? {} : { size: keys.filter(isCpu).length };
  return { keys: keys.filter((key) => !isCpu(key)), ...size };
}

// `bridge`: what the agent has now and had when it was dropped, it has had all along. `asked`: the
// decision came after that.
function holds(entry, bridge = false, asked = undefined) {
  const { grant, isPersistent } = entry;
  report('holds', { uid: grant.uid, ...factsOf(entry), persistent: isPersistent, bridge, asked });
}

const mine = (filter = () => true) => [...held.values()].filter(filter);
const isFreeToEnd = ({ child }) => child === undefined;
const isOwn = ({ child, isPersistent, isRoom, isFixed }) =>
  child === undefined && !isPersistent && !isRoom && !isFixed;
// Grants of several containers or parts are neither resized nor handed on.
const isResizable = ({ child, isRoom, isFixed }) => child === undefined && !isRoom && !isFixed;

function entryOf(grant, more) {
  const entry = { grant, isPersistent: false, isPinned: false, child: undefined, ...more };
  if (!entry.isMovable || entry.isPersistent) return entry;
  answerMoves(entry, answers, {
    drops: () => report('drops', { uid: grant.uid }),
    holds: () => held.get(grant.uid) === entry && holds(entry, true),
  });
  return entry;
}

// The grant of the running operation.
let subject;
function choose(filter) {
  subject = random.pick(mine(filter));
  return subject;
}

function unpinned(entry) {
  if (entry.isPinned) report('unpinned', { uid: entry.grant.uid });
  entry.isPinned = false;
}

const NOTHING_TO_DO = Symbol('nothing to do');

// ---- operations. Each returns nothing, or throws an error of numalign.

const request = () => randomRequest(random, machine, moves !== undefined);

async function acquire(options) {
  const isPersistent = options.owner === 'persistent';
  const asked = now();
  report('asks', { persistent: isPersistent });
  const grant = await manager.acquire(options);
  const isElastic = typeof options.cpu === 'object';
  const isFixed = options.parts !== undefined || isElastic;
  const isMovable = options.movable !== undefined;
  keep(entryOf(grant, { isPersistent, isMovable, isFixed, isElastic }), asked);
}

function keep(entry, asked) {
  held.set(entry.grant.uid, entry);
  holds(entry, false, asked);
}

async function releaseBy(uid, isPersistent, release) {
  report('drops', { uid, release: true });
  try {
    await release();
  } catch (error) {
    if (error.code === 'ERR_UNKNOWN_GRANT') held.delete(uid);
    throw error;
  }
  held.delete(uid);
  report('released', { uid, persistent: isPersistent });
}

const operations = {
  acquire: () =>
    acquire({ ...request(), ...(random.chance(8) && { signal: AbortSignal.timeout(random.below(300)) }) }),
  persist() {
    const { weight: _weight, ...options } = request();
    const cpu = options.cpu.max ?? options.cpu;
    return acquire({ ...options, cpu, owner: 'persistent' });
  },
  wait: () => acquire({ ...request(), wait: true, signal: AbortSignal.timeout(50 + random.below(300)) }),

  async admit() {
    const asked = now();
    report('asks', { persistent: false });
    const { pod, options } = randomPod(random, machine);
    const { uid } = await manager.admit(pod, options);
    keep(entryOf(manager.grant(uid), { isMovable: options.movable !== undefined, isFixed: true }), asked);
  },
  async release(entry = choose(isFreeToEnd)) {
    unpinned(entry);
    entry.isBusy = true;
    try {
      await releaseBy(entry.grant.uid, entry.isPersistent, () => entry.grant.release());
    } catch (error) {
      // The grant stays unchanged. A persistent one is uncertain: other agents may release it too.
      entry.isBusy = false;
      if (!entry.isPersistent && !entry.isMoving) holds(entry, true);
      throw error;
    }
  },
  async releaseById() {
    const persistent = manager
      .grants()
      .filter(({ owner, uid }) => owner.kind === 'persistent' && !held.has(uid));
    if (persistent.length === 0) return NOTHING_TO_DO;
    const { uid } = random.pick(persistent);
    await releaseBy(uid, true, () => manager.release(uid));
  },
  // The process itself is pinned for at most one grant at a time.
  async pin() {
    // Another agent may release a persistent grant under the threads that run on it.
    const entry = choose(({ isPersistent }) => !isPersistent);
    for (const other of mine(({ isPinned }) => isPinned)) unpinned(other);
    entry.grant.pin({ replace: true, memory: 'none' });
    entry.isPinned = true;
    report('pinned', { uid: entry.grant.uid, cpus: parseList(String(entry.grant.cpus)) });
  },
  async unpin() {
    const entry = choose(({ isPinned }) => isPinned);
    unpinned(entry);
    await entry.grant.unpin();
  },
  // A child that may outlive this process and everything that this process owns.
  async spawn() {
    const entry = choose(isOwn);
    const begun = now();
    const child = entry.grant.spawn('sleep', [String(CHILD_SECONDS)], { stdio: 'ignore' });
    entry.child = child;
    report('child', {
      uid: entry.grant.uid,
      pid: child.pid,
      until: begun + CHILD_SECONDS * 1e9,
      cpus: parseList(String(entry.grant.cpus)),
    });
    child.once('exit', () => {
      entry.child = undefined;
    });
  },
  async resize() {
    const entry = choose(isResizable);
    const { grant, isPersistent } = entry;
    unpinned(entry);
    report('drops', { uid: grant.uid });
    entry.isBusy = true;
    try {
      const options = { cpu: random.pick(machine.amounts.cpu) };
      if (machine.amounts.memory.length > 0 && random.chance(3))
        options.memory = random.pick(machine.amounts.memory);
      if (random.chance(4)) options.noticeMs = random.below(5);
      await grant.resize(options);
    } catch (error) {
      // Refused: nothing has changed. But a persistent grant may have been released meanwhile, and
      // a moving one may be anywhere.
      const isKnown = !isPersistent && !entry.isMoving && error.code !== 'ERR_GRANT_BUSY';
      entry.isBusy = false;
      if (isKnown && (REFUSALS.has(error.code) || isExpected('resize', error, setup))) holds(entry, true);
      throw error;
    }
    entry.isBusy = false;
    if (!entry.isMoving) holds(entry, true);
  },
  // A grant of any agent makes room; the room is kept here until it is released.
  async move() {
    const asked = now();
    report('asks', { persistent: false });
    const room = await moves.move(manager);
    if (room === undefined) return NOTHING_TO_DO;
    const grant = manager.grant(room);
    const entry = entryOf(grant, { isRoom: true });
    keep(entry, asked);
    // Other requests wait for room that is kept. Some of it is kept for long nevertheless.
    if (!random.chance(4)) await operations.release(entry);
  },
  async defragment() {
    const signal = random.chance(4) ? AbortSignal.timeout(random.below(300)) : undefined;
    await manager.defragment({ dryRun: random.chance(4), signal });
  },
  async transfer() {
    const entry = choose(isOwn);
    const { grant } = entry;
    unpinned(entry);
    report('drops', { uid: grant.uid });
    entry.isBusy = true;
    held.delete(grant.uid);
    const transfer = await grant.transfer().catch((error) => {
      entry.isBusy = false;
      held.set(grant.uid, entry);
      throw error;
    });
    const accepted = transfer.accepted.then(
      () => {
        report('left', { uid: grant.uid });
        return true;
      },
      () => false,
    );
    report('offers', { uid: grant.uid, token: transfer.token });
    if (await Promise.race([accepted, sleep(500 + random.below(1000), false)])) return;
    // No successor came: the grant ends here, unless one comes at the last moment.
    await transfer.cancel();
    await grant.release().catch((error) => {
      if (!GONE.has(error.code)) throw error;
    });
  },
  async takeOver() {
    const { uid, token } = tokens.shift();
    const grant = await manager.takeOver(token);
    if (grant.uid !== uid) throw new Error(`took over ${grant.uid} instead of ${uid}`);
    const entry = entryOf(grant, { isMovable: moves !== undefined });
    held.set(grant.uid, entry);
    holds(entry, true);
  },
  // From now on any agent may release it, under threads that run on it.
  async outlive() {
    const entry = choose(isOwn);
    const { grant } = entry;
    if (entry.isPinned) {
      unpinned(entry);
      await grant.unpin();
    }
    report('asks', { persistent: true });
    report('drops', { uid: grant.uid });
    entry.isBusy = true;
    try {
      await manager.pod(grant.uid).setOwner('persistent');
    } catch (error) {
      // Its owner is unknown.
      held.delete(grant.uid);
      const tell = () => report('released', { uid: grant.uid, persistent: false });
      await grant.release().then(tell, () => {});
      throw error;
    }
    entry.isPersistent = true;
    entry.isBusy = false;
    holds(entry, true);
  },
  // CPUs that a caller claims to have already, wherever they are.
  async adopt() {
    const begin = random.below(machine.managed.length);
    const cpus = machine.managed.slice(begin, begin + 1 + random.below(3)).join(',');
    const asked = now();
    report('asks', { persistent: true });
    const { uid } = await manager.adopt({ containers: [{ name: 'main', cpus }] });
    const keys = parseList(cpus).map((cpu) => `cpu ${cpu}`);
    report('holds', { uid, keys, persistent: true, asked });
  },
  // The kubelet gives out other CPUs, whatever grants have them.
  async kubelet() {
    const cpus = machine.managed.filter(() => random.chance(6));
    const containers = [{ name: 'main', cpus }];
    report('records', { keys: cpus.map((cpu) => `cpu ${cpu}`) });
    try {
      await manager.recordKubelet(
        cpus.length > 0 ? [{ namespace: 'default', name: 'web', containers }] : null,
      );
    } catch (error) {
      if (error.code === 'ERR_OWNER_ALIVE') report('refused');
      throw error;
    }
    report('recorded');
  },
  // While its event loop stands still, no CPU of an elastic grant can be taken.
  async busy() {
    const until = performance.now() + random.below(random.chance(4) ? LONGEST_BUSY_MS : 300);
    const elastic = mine(({ isElastic }) => isElastic);
    const first = performance.now();
    while (performance.now() - first < COMMIT_MS);
    for (const { grant } of elastic) {
      const keys = recordedKeys(grant.uid);
      const all = keysOf(grant).filter((key) => !isCpu(key) || keys.has(key));
      report('holds', { uid: grant.uid, keys: all, persistent: false });
    }
    while (performance.now() < until);
    for (const entry of elastic) holds(entry);
  },
  // A second manager in this process, with the work of its opening.
  async reopen() {
    manager.close();
    await openAtLast();
  },
  async look() {
    const begun = now();
    const generation = manager.generation();
    report('read', { begun, generation });
    manager.sharedPool();
    manager.grants();
  },
};

function recordedKeys(uid) {
  try {
    return readState(`${stateDir}/state.json`)?.pods.get(uid)?.keys ?? new Set();
  } catch {
    // A third party may have damaged it.
    return new Set();
  }
}

// ---- the choice of operations

/** The operations that this package has. Asked once: an unknown option is an error of its own. */
async function features() {
  const has = (name, object) => typeof object.prototype[name] === 'function';
  const waits = await manager.acquire({ cpu: 1, wait: true, signal: AbortSignal.abort() }).then(
    () => true,
    (error) => error.code !== 'ERR_INVALID_OPTION',
  );
  return {
    wait: waits,
    resize: has('resize', numalign.Grant),
    transfer: has('transfer', numalign.Grant),
    takeOver: has('takeOver', numalign.Manager),
    change: has('on', numalign.Manager),
    adopt: has('adopt', numalign.Manager),
    outlive: has('adopt', numalign.Manager),
    kubelet: has('recordKubelet', numalign.Manager) && setup.hasKubelet,
    move: has('on', numalign.Grant),
    defragment: has('defragment', numalign.Manager),
  };
}

function choices(known) {
  // On a full machine nothing can move.
  const room = held.size < (machine.hasMovesAbove ? MAX_GRANTS - 1 : MAX_GRANTS);
  const own = (filter) => mine(filter).length > 0;
  const isReal = machine.isReal;
  return {
    acquire: room ? 30 : 0,
    // No process writes records again that have no owner.
    // The agent that requests such a move also moves it: others must end what the dead began.
    persist: room && !setup.isDisturbed ? (isReal ? 1 : machine.hasMovesAbove ? 20 : 4) : 0,
    wait: room && known.wait ? 10 : 0,
    admit: room && moves ? 6 : 0,
    release: own(isFreeToEnd) ? (machine.hasMovesAbove ? 40 : 25) : 0,
    releaseById: isReal || machine.hasMovesAbove ? 8 : 3,
    pin: isReal && own(({ isPersistent }) => !isPersistent) ? 15 : 0,
    unpin: isReal && own(({ isPinned }) => isPinned) ? 5 : 0,
    spawn: isReal && own(isOwn) ? 2 : 0,
    resize: known.resize && own(isResizable) ? 12 : 0,
    move: moves && room ? (machine.hasMovesAbove ? 60 : 12) : 0,
    defragment: moves ? (machine.hasMovesAbove ? 15 : 3) : 0,
    transfer: known.transfer && own(isOwn) ? 4 : 0,
    takeOver: known.takeOver && tokens.length > 0 ? 100 : 0,
    adopt: known.adopt && !isReal && !setup.isDisturbed ? 4 : 0,
    outlive: known.outlive && own(isOwn) && !setup.isDisturbed ? (isReal ? 1 : 3) : 0,
    kubelet: known.kubelet ? (machine.hasMovesAbove ? 1 : 6) : 0,
    reopen: 2,
    look: 5,
    busy: machine.hasElastic ? 8 : 0,
  };
}

function watch() {
  manager.on?.('change', ({ generation }) => report('read', { begun: 0, generation }));
}

async function open() {
  const topology = machine.isReal ? {} : { topology: await discover({ synthetic: machine.synthetic }) };
  const options = { ...machine.options, ...topology, stateDir, lockTimeoutMs: 3000 };
  if (moves && !random.chance(3)) options.cpuManagerPolicy = 'dynamic';
  return machine.isQuiet ? openQuietManager(setup.package, options) : numalign.openManager(options);
}

let manager;
// The agent waits again for a lock that is held for long: a closed manager is of no use.
async function openAtLast() {
  for (;;) {
    try {
      manager = await open();
      return;
    } catch (error) {
      report('did', {
        operation: 'open',
        code: error.code ?? error.name,
        took: 0,
        expected: isExpected('open', error, setup),
        message: error.message,
      });
      if (!isExpected('open', error, setup)) process.exit(1);
    }
  }
}

const { isReal, isQuiet, options: settings } = machine;
const moves =
  isReal || (isQuiet && !machine.hasElastic)
    ? undefined
    : await openMoves(setup.package, random, settings.reservedSystemCPUs, quieterOf);

await openAtLast();
const known = await features();
for (let isWatching = false; !isWatching; ) {
  try {
    watch();
    isWatching = true;
  } catch (error) {
    if (!isExpected('open', error, setup)) throw error;
    await sleep(10);
  }
}
const lines = createInterface({ input: process.stdin });
let isResting = false;
lines.on('line', (line) => {
  const message = JSON.parse(line);
  if (message.rest) isResting = true;
  else tokens.push(message);
});
lines.on('close', () => process.exit(0));
report('ready', { features: known });

async function rest() {
  // Others wait for the same lock, and some of them fail.
  for (let attempts = 1; attempts <= 20; attempts++) {
    const all = [...held].map(([uid, { isPersistent, grant }]) => [uid, isPersistent, () => grant.release()]);
    for (const { uid, owner } of manager.grants()) {
      if (owner.kind === 'persistent' && !held.has(uid)) all.push([uid, true, () => manager.release(uid)]);
    }
    if (all.length === 0) break;
    for (const entry of held.values()) unpinned(entry);
    for (const each of all) await releaseBy(...each).catch(() => {});
    await sleep(100);
  }
  report('rests');
  await new Promise(() => {});
}

for (;;) {
  if (isResting) await rest();
  const operation = random.weighted(choices(known));
  const begun = now();
  let error;
  let result;
  subject = undefined;
  try {
    result = await operations[operation]();
  } catch (thrown) {
    error = thrown;
    if (subject?.isPersistent && GONE.has(error.code)) held.delete(subject.grant.uid);
  }
  const took = now() - begun;
  if (error) {
    const expected = isExpected(operation, error, setup, subject);
    const message = expected ? undefined : (error.stack ?? String(error));
    // The code of an abort is a number.
    const code = typeof error.code === 'string' ? error.code : (error.name ?? String(error));
    report('did', { operation, took, code, expected, message });
  } else if (result !== NOTHING_TO_DO) {
    report('did', { operation, took });
  }
  await sleep(random.below(setup.pause + 1));
}

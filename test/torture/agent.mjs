// A process that uses numalign at random and reports what it does, one JSON object a line, written
// before it goes on: `holds` after it was told that it has something, `drops` before it begins to
// give it away. Ended by kill -9 only. Its argument is JSON: package, machine, stateDir, seed, pause,
// isDisturbed, hasErrors. Its input: lines { token } of grants that it may take over, and { rest }
// when it is to release everything, what is nobody's too, and to wait.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { openMoves } from './moves.mjs';
import { openQuietManager } from './quiet-manager.mjs';
import { Random } from './random.mjs';
import { parseList } from './state-file.mjs';

const CHILD_SECONDS = 2;
const MAX_GRANTS = 3;

const setup = JSON.parse(process.argv[2]);
const { machine, stateDir } = setup;
const numalign = await import(pathToFileURL(`${setup.package}/dist/index.js`));
const { discover } = await import(pathToFileURL(`${setup.package}/dist/entries/topology.js`));
const random = new Random(setup.seed);

const now = () => Number(process.hrtime.bigint());
function report(event, facts = {}) {
  writeSync(1, `${JSON.stringify({ event, time: now(), ...facts })}\n`);
}

// ---- what this agent has

/** By uid: { grant, isPersistent, isPinned, child, isMovable, isMoving, isBusy, isRoom } */
const held = new Map();
const tokens = [];

function keysOf({ cpus, held: siblings, devices }) {
  const owned = Object.entries(devices).flatMap(([resource, list]) =>
    list.map(({ id }) => `${resource} ${id}`),
  );
  return [...[cpus, siblings].flatMap((set) => parseList(String(set))).map((cpu) => `cpu ${cpu}`), ...owned];
}

// `bridge`: what it has now and had when it was dropped, it has had all the while. `asked`: it was
// decided since then.
function holds(grant, isPersistent, bridge = false, asked = undefined) {
  report('holds', { uid: grant.uid, keys: keysOf(grant), persistent: isPersistent, bridge, asked });
}

const mine = (filter = () => true) => [...held.values()].filter(filter);
const isFreeToEnd = ({ child }) => child === undefined;
const isOwn = ({ child, isPersistent, isRoom }) => child === undefined && !isPersistent && !isRoom;
const isResizable = ({ child, isRoom }) => child === undefined && !isRoom;

// What is nobody's anybody may move, under whoever holds it.
const isLasting = (entry) => isOwn(entry) && !entry.isMovable;

function entryOf(grant, more) {
  const entry = { grant, isPersistent: false, isPinned: false, child: undefined, ...more };
  if (entry.isMovable) listen(entry);
  return entry;
}

// From when it is told of a move it may begin to give away what it has. An operation that is about the
// grant has told so already, and tells afterwards what it has unless a move is still to end.
function listen(entry) {
  const { grant } = entry;
  grant.on('move', () => {
    entry.isMoving = true;
    if (!entry.isBusy) report('drops', { uid: grant.uid });
  });
  grant.on('moveEnd', () => {
    entry.isMoving = false;
    if (!entry.isBusy && held.get(grant.uid) === entry) holds(grant, false, true);
  });
}

// The grant that the running operation is about.
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

// ---- what it does. Each operation answers nothing, or throws what numalign throws.

function request() {
  const { cpu, memory, devices } = machine.amounts;
  const options = { cpu: random.pick(cpu) };
  if (memory.length > 0 && random.chance(2)) options.memory = random.pick(memory);
  if (devices.length > 0 && random.chance(3))
    options.resources = { [machine.resource]: random.pick(devices) };
  if (random.chance(4)) options.name = `name-${random.below(4)}`;
  if (machine.isQuiet && !random.chance(4)) options.quiet = quietParts();
  return options;
}

function quietParts() {
  const [interrupts, workqueues] = [random.chance(2), random.chance(2)];
  return { interrupts, workqueues, idle: random.chance(2) && { maxLatency: random.below(100) } };
}

async function acquire(options) {
  const isPersistent = options.owner === 'persistent';
  const asked = now();
  report('asks', { persistent: isPersistent });
  const isMovable = moves !== undefined && !isPersistent && random.chance(2);
  const grant = await manager.acquire(isMovable ? { ...options, movable: { notice: 200 } } : options);
  held.set(grant.uid, entryOf(grant, { isPersistent, isMovable }));
  holds(grant, isPersistent, false, asked);
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
  acquire: () => acquire(request()),
  persist: () => acquire({ ...request(), owner: 'persistent' }),
  wait: () => acquire({ ...request(), wait: true, signal: AbortSignal.timeout(50 + random.below(300)) }),

  async release() {
    const entry = choose(isFreeToEnd);
    unpinned(entry);
    entry.isBusy = true;
    try {
      await releaseBy(entry.grant.uid, entry.isPersistent, () => entry.grant.release());
    } catch (error) {
      // It stays, with everything it had. Of a persistent one that cannot be known: others may
      // release it too.
      entry.isBusy = false;
      if (!entry.isPersistent && !entry.isMoving) holds(entry.grant, false, true);
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
  // Its own process is pinned for one grant at a time.
  async pin() {
    // A persistent grant may be released by somebody else, under the threads that run on it.
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
  // A child that may outlive this process, and with it everything that this process owns.
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
      // Refused: nothing has changed. But who knows whether a persistent one is still there, or where
      // one is that moves.
      const isKnown = !isPersistent && !entry.isMoving && error.code !== 'ERR_GRANT_BUSY';
      entry.isBusy = false;
      if (isKnown && (REFUSALS.has(error.code) || isExpected('resize', error)))
        holds(grant, isPersistent, true);
      throw error;
    }
    entry.isBusy = false;
    if (!entry.isMoving) holds(grant, isPersistent, true);
  },
  // A grant of anybody's makes room; what it has left is kept here until it is released.
  async move() {
    const asked = now();
    report('asks', { persistent: false });
    const room = await moves.move(manager);
    if (room === undefined) return NOTHING_TO_DO;
    const grant = manager.grant(room);
    held.set(room, entryOf(grant, { isRoom: true }));
    holds(grant, false, false, asked);
  },
  async transfer() {
    const entry = choose(isOwn);
    const { grant } = entry;
    unpinned(entry);
    report('drops', { uid: grant.uid });
    entry.isBusy = true;
    held.delete(grant.uid);
    const transfer = await grant.transfer();
    const accepted = transfer.accepted.then(
      () => {
        report('left', { uid: grant.uid });
        return true;
      },
      () => false,
    );
    report('offers', { uid: grant.uid, token: transfer.token });
    if (await Promise.race([accepted, sleep(500 + random.below(1000), false)])) return;
    // Nobody has come for it: it ends here, unless somebody comes at the last moment.
    await transfer.cancel();
    await grant.release().catch((error) => {
      if (!GONE.has(error.code)) throw error;
    });
  },
  async takeOver() {
    const { uid, token } = tokens.shift();
    const grant = await manager.takeOver(token);
    if (grant.uid !== uid) throw new Error(`took over ${grant.uid} instead of ${uid}`);
    held.set(grant.uid, entryOf(grant, { isMovable: moves !== undefined }));
    holds(grant, false, true);
  },
  // From now on anybody may release it, under threads that run on it.
  async outlive() {
    const entry = choose(isLasting);
    const { grant } = entry;
    if (entry.isPinned) {
      unpinned(entry);
      await grant.unpin();
    }
    report('asks', { persistent: true });
    report('drops', { uid: grant.uid });
    try {
      await manager.pod(grant.uid).setOwner('persistent');
    } catch (error) {
      // It is not known whose it is.
      held.delete(grant.uid);
      const tell = () => report('released', { uid: grant.uid, persistent: false });
      await grant.release().then(tell, () => {});
      throw error;
    }
    entry.isPersistent = true;
    holds(grant, true, true);
  },
  // What somebody says to have already, wherever that is.
  async adopt() {
    const begin = random.below(machine.managed.length);
    const cpus = machine.managed.slice(begin, begin + 1 + random.below(3)).join(',');
    const asked = now();
    report('asks', { persistent: true });
    const { uid } = await manager.adopt({ containers: [{ name: 'main', cpus }] });
    const keys = parseList(cpus).map((cpu) => `cpu ${cpu}`);
    report('holds', { uid, keys, persistent: true, asked });
  },
  // The kubelet gives out other CPUs, whoever has them.
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
  // A second manager in this process, and what opening does.
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

// ---- refusals that are part of the game

const REFUSALS = new Set([
  'ERR_INSUFFICIENT_CPUS',
  'ERR_INSUFFICIENT_MEMORY',
  'ERR_INSUFFICIENT_DEVICES',
  'ERR_SHARED_POOL_EMPTY',
  'ERR_TOPOLOGY_AFFINITY',
  'ERR_GRANT_BUSY',
  // An agent in a pid namespace of its own, which is stopped, or has no CPU, for longer than it is
  // waited for.
  'ERR_MEMBER_UNMOVABLE',
]);
const GONE = new Set(['ERR_UNKNOWN_GRANT', 'ERR_GRANT_RELEASED', 'ERR_OWNER_ALIVE']);
const ALWAYS = new Set(['ERR_LOCK_TIMEOUT']);
// The folder is removed in the middle of a transaction, or an owner is stopped that would have to
// write its file again.
const DISTURBANCES = new Set(['ERR_STATE_FOLDER', 'ERR_STATE_CORRUPT', 'ERR_SYSCALL']);
const FAILURES = new Set(['ERR_STATE_FOLDER', 'ERR_SYSCALL']);

function isExpected(operation, error) {
  if (ALWAYS.has(error.code) || (setup.isDisturbed && DISTURBANCES.has(error.code))) return true;
  if (setup.hasErrors && FAILURES.has(error.code)) return true;
  if (['acquire', 'persist', 'resize', 'wait'].includes(operation) && REFUSALS.has(error.code)) return true;
  if (operation === 'move' && /^ERR_(NOT_MOVED|NOT_MOVABLE|GRANT_BUSY)$/.test(error.code ?? '')) return true;
  if (operation === 'adopt' && error.code === 'ERR_ADOPTION') return true;
  if (operation === 'kubelet' && error.code === 'ERR_OWNER_ALIVE') return true;
  if (operation === 'wait' && error.name === 'TimeoutError') return true;
  // A persistent grant may have been released by anybody meanwhile, and one that was offered is
  // gone with whoever offered it. One's own is never gone.
  if (GONE.has(error.code))
    return subject ? subject.isPersistent : ['releaseById', 'takeOver', 'move'].includes(operation);
  // Whoever waits in vain for a successor, or comes too late, is told.
  return (
    ['takeOver', 'transfer'].includes(operation) &&
    /^ERR_(TRANSFER|UNKNOWN_TRANSFER|INVALID_TOKEN)/.test(error.code ?? '')
  );
}

// ---- which operations there are

/**
 * Those that this package has. Asked once: an option that it does not know is an error of its own.
 */
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
  };
}

function choices(known) {
  const room = held.size < MAX_GRANTS;
  const own = (filter) => mine(filter).length > 0;
  const isReal = machine.isReal;
  return {
    acquire: room ? 30 : 0,
    // Nobody writes again what is nobody's.
    persist: room && !setup.isDisturbed ? (isReal ? 1 : 4) : 0,
    wait: room && known.wait ? 10 : 0,
    release: own(isFreeToEnd) ? 25 : 0,
    releaseById: isReal ? 8 : 3,
    pin: isReal && own(({ isPersistent }) => !isPersistent) ? 15 : 0,
    unpin: isReal && own(({ isPinned }) => isPinned) ? 5 : 0,
    spawn: isReal && own(isOwn) ? 2 : 0,
    resize: known.resize && own(isResizable) ? 12 : 0,
    move: moves && room ? 12 : 0,
    transfer: known.transfer && own(isOwn) ? 4 : 0,
    takeOver: known.takeOver && tokens.length > 0 ? 100 : 0,
    adopt: known.adopt && !isReal && !setup.isDisturbed ? 4 : 0,
    outlive: known.outlive && own(isLasting) && !setup.isDisturbed ? (isReal ? 1 : 3) : 0,
    kubelet: known.kubelet ? 6 : 0,
    reopen: 2,
    look: 5,
  };
}

function watch() {
  manager.on?.('change', ({ generation }) => report('read', { begun: 0, generation }));
}

async function open() {
  const topology = machine.isReal ? {} : { topology: await discover({ synthetic: machine.synthetic }) };
  const options = { ...machine.options, ...topology, stateDir, lockTimeoutMs: 3000 };
  return machine.isQuiet ? openQuietManager(setup.package, options) : numalign.openManager(options);
}

let manager;
// A lock that is held for long is waited for again: nothing can be done with a manager that is
// closed.
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
        expected: isExpected('open', error),
        message: error.message,
      });
      if (!isExpected('open', error)) process.exit(1);
    }
  }
}

const { isReal, isQuiet, options: settings } = machine;
const moves =
  isReal || isQuiet ? undefined : await openMoves(setup.package, random, settings.reservedSystemCPUs);

await openAtLast();
const known = await features();
for (let isWatching = false; !isWatching; ) {
  try {
    watch();
    isWatching = true;
  } catch (error) {
    if (!isExpected('open', error)) throw error;
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
  // Others wait for the same lock, and some fail.
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
    const expected = isExpected(operation, error);
    const message = expected ? undefined : (error.stack ?? String(error));
    // An abort's code is a number.
    const code = typeof error.code === 'string' ? error.code : (error.name ?? String(error));
    report('did', { operation, took, code, expected, message });
  } else if (result !== NOTHING_TO_DO) {
    report('did', { operation, took });
  }
  await sleep(random.below(setup.pause + 1));
}

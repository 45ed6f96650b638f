// A process that uses numalign on command. Each line of its input is JSON [verb, argument]; each
// line of its output is the JSON answer: { value } or { error: { code, message } }.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { threads } from '../../dist/entries/diagnostics.js';
import { discover } from '../../dist/entries/topology.js';
import { openManager, pin } from '../../dist/index.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let manager;
const grants = new Map();
const transfers = new Map();
const aborts = new Map();
const changes = [];
const errors = [];
const maskOf = () => /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync('/proc/self/status', 'utf8'))[1];

// Loaded for those that ask: other users have a copy of this file alone.
async function openOverTree(options) {
  const { openQuietManager } = await import('../torture/quiet-manager.mjs');
  return openQuietManager(ROOT, options);
}

// The move events of a grant, and what a listener waits for.
const events = [];
let letGo = () => {};

const verbs = {
  // `tree`: its kernel is a folder tree.
  async open({ simulate, tree, ...more }) {
    if (tree) manager = await openOverTree({ ...more, synthetic: simulate });
    else {
      const topology = simulate && (await discover({ synthetic: simulate }));
      manager = await openManager({ ...more, ...(topology && { topology }) });
    }
    manager.on('error', ({ code, message, details }) => errors.push({ code, message, ...details }));
    return process.pid;
  },
  async acquire(options) {
    const grant = await manager.acquire(options);
    grants.set(grant.uid, grant);
    return grant;
  },
  admit: ({ pod, ...options }) => manager.admit(pod, options),
  adopt: ({ owner, ...pod }) => manager.adopt(pod, { owner }),
  setOwner: ({ uid, owner }) => manager.pod(uid).setOwner(owner),
  // Answers at once: { wait: true } requests are settled by `settled`.
  async begin({ key, ...options }) {
    const abort = new AbortController();
    const pending = manager.acquire({ ...options, wait: true, signal: abort.signal });
    aborts.set(key, { abort, pending });
    pending.catch(() => {});
  },
  abort: ({ key }) => aborts.get(key).abort.abort(new Error('enough')),
  async settled({ key }) {
    const grant = await aborts.get(key).pending;
    grants.set(grant.uid, grant);
    return grant;
  },
  async resize({ uid, ...options }) {
    await grants.get(uid).resize(options);
    return grants.get(uid);
  },
  // `waits`: the move waits for `letGo`. `blocks`: the listener blocks until the move is called off.
  listenToMoves({ uid, waits, blocks }) {
    const isAnnounced = () => manager.grants().find((grant) => grant.uid === uid).upcoming !== null;
    grants.get(uid).on('move', (event) => {
      events.push({ name: 'move', before: event.before, cpus: event.cpus });
      while (blocks && isAnnounced());
      if (waits) event.waitUntil(new Promise((resolve) => (letGo = resolve)));
    });
    grants
      .get(uid)
      .on('moveEnd', ({ isMoved, cpus, error }) =>
        events.push({ name: 'moveEnd', isMoved, cpus, reason: error?.details.reason ?? null }),
      );
  },
  listenToResizes({ uid }) {
    grants.get(uid).on('resize', ({ before, cpus, for: asker }) => events.push({ before, cpus, for: asker }));
  },
  events: () => events,
  letGo: () => letGo(),
  async move({ uid, to, ...request }) {
    const { move } = await import('./moves.mjs');
    return move(manager, uid, to, request);
  },
  async transfer({ uid }) {
    const transfer = await grants.get(uid).transfer();
    transfers.set(uid, transfer);
    return transfer.token;
  },
  accepted: ({ uid }) => transfers.get(uid).accepted,
  async takeOver({ token }) {
    const grant = await manager.takeOver(token);
    grants.set(grant.uid, grant);
    return grant;
  },
  watch() {
    manager.on('change', (change) => changes.push({ at: Date.now(), ...change }));
  },
  changes: () => changes,
  errors: () => errors,
  warnings: () => manager.warnings,
  // Blocks the event loop after the answer.
  keepBusy({ ms }) {
    setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms));
  },
  share: (target) => manager.addSharedMember(target),
  attach: ({ uid, pid }) => grants.get(uid).attach(pid),
  pin: ({ uid, ...options }) => grants.get(uid).pin(options).moved.length,
  unpin: async ({ uid }) => (await grants.get(uid).unpin()).moved.length,
  audit: ({ uid, ...options }) => grants.get(uid).audit(options),
  // By the grant that was acquired last.
  spawn: ([command, ...args]) => [...grants.values()].at(-1).spawn(command, args, { stdio: 'ignore' }).pid,
  release: ({ uid }) => grants.get(uid)?.release() ?? manager.release(uid),
  close: () => manager.close(),
  // Nothing of this grant, or of the manager before, is referenced any more. Needs --expose-gc.
  forget({ uid }) {
    grants.delete(uid);
    globalThis.gc();
  },
  recordKubelet: (pods) => manager.recordKubelet(pods),
  kubelet: () => manager.kubelet(),
  sharedPool: () => String(manager.sharedPool()),
  grants: () => manager.grants(),
  mask: maskOf,
  pinTo: (cpus) => pin(cpus).moved.length,
  threads: () => threads().map(({ tid, role, cpus }) => ({ tid, role, cpus: String(cpus) })),
};

const lines = createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const [verb, argument] = JSON.parse(line);
  let answer;
  try {
    answer = { value: await verbs[verb](argument) };
  } catch (error) {
    answer = { error: { code: error.code, message: error.message } };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
await once(lines, 'close');

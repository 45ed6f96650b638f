// How often a process wakes up that has an open manager and does nothing: voluntary context
// switches of all its threads, as the kernel counts them.
import { readdirSync, readFileSync } from 'node:fs';
import { MACHINES, newNode } from './support/nodes.mjs';
import { startPeer } from './support/peers.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'wake-ups a second of a process that has a manager open and does nothing, over 34 s';
export const explanation = `
Voluntary context switches of all threads, by \`/proc/PID/task/TID/status\`. One in that time is 0.029
a second. The process rests 12 s before, since V8 collects garbage once more some 8 s after work.`;

const SECONDS = 34;
const GRANTS = 16;
// V8 collects garbage for the last time about 8 seconds after it was busy.
const SETTLE_MS = 12_000;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function switchesOf(pid) {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, tid) => {
    const status = readFileSync(`/proc/${pid}/task/${tid}/status`, 'utf8');
    return sum + Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)[1]);
  }, 0);
}

// The grants belong to a process that is idle, too.
async function start(machine, isListener) {
  const { path } = stateParents().at(-1);
  const node = await newNode(path, machine, 0);
  const close = [() => node.close()];
  try {
    const owner = await startPeer({ stateDir: node.stateDir, machine, grants: GRANTS });
    close.unshift(() => owner.close());
    const peer = await startPeer({ stateDir: node.stateDir, machine, isListener });
    close.unshift(() => peer.close());
    return { pid: peer.pid, close };
  } catch (error) {
    for (const each of close) await each();
    throw error;
  }
}

async function startNothing() {
  const peer = await startPeer({ isOpen: false });
  return { pid: peer.pid, close: [() => peer.close()] };
}

export async function run() {
  const subjects = [];
  try {
    subjects.push({ name: 'no manager', ...(await startNothing()) });
    for (const [name, machine] of Object.entries(MACHINES)) {
      subjects.push({ name, ...(await start(machine, false)) });
      subjects.push({ name: `${name}, change`, ...(await start(machine, true)) });
    }
    await sleep(SETTLE_MS);
    const before = subjects.map(({ pid }) => switchesOf(pid));
    const begin = performance.now();
    await sleep(SECONDS * 1000);
    const seconds = (performance.now() - begin) / 1000;
    return subjects.map(({ name, pid }, i) => ({
      name,
      wakeUps: (switchesOf(pid) - before[i]) / seconds,
    }));
  } finally {
    for (const { close } of subjects) for (const each of close) await each();
  }
}

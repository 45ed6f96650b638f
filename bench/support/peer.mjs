// Another process of a state folder, started by peers.mjs. It opens a manager, perhaps with grants,
// and answers calls. Further owners are its Workers: each environment of Node is an owner.
import { once } from 'node:events';
import { watch } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import { manyPod, openAt } from './nodes.mjs';

const { stateDir, machine, isOpen, grants, owners, isListener, isWatch, options } = JSON.parse(
  process.argv[2],
);

const manager = isOpen ? await openAt(stateDir, machine, options) : undefined;
for (let i = 0; i < grants; i++) await manager.admit(manyPod(machine));
if (isListener) manager.on('change', () => {});

let fileWatch;
function watchFile() {
  fileWatch?.close();
  // Another file sometimes takes its place.
  fileWatch = watch(join(stateDir, 'state.json'), (event) => event === 'rename' && watchFile());
}
if (isWatch) watchFile();

const workers = [];
for (let i = 0; i < owners; i++) {
  const worker = new Worker(new URL('owner.mjs', import.meta.url), { workerData: { stateDir, machine } });
  await once(worker, 'message');
  workers.push(worker);
}

// Every second commit undoes the one before.
let last;
async function commit() {
  if (last === undefined) {
    ({ uid: last } = await manager.admit(manyPod(machine)));
    return;
  }
  await manager.release(last);
  last = undefined;
}

// What happens in this process from `begin` to `end`. Measuring delays costs CPU time and keeps the
// loop busy, so it measures either the delays or the rest.
const delays = monitorEventLoopDelay({ resolution: 1 });
let loop;
let cpu;
function begin({ isDelay }) {
  if (isDelay) {
    delays.reset();
    delays.enable();
  }
  loop = performance.eventLoopUtilization();
  cpu = process.cpuUsage();
}

function end() {
  const { user, system } = process.cpuUsage(cpu);
  const { utilization } = performance.eventLoopUtilization(loop);
  delays.disable();
  return {
    cpuNs: (user + system) * 1000,
    loopShare: utilization,
    delays: { p50: delays.percentile(50), p99: delays.percentile(99), max: delays.max },
  };
}

async function close() {
  for (const worker of workers) {
    const ended = once(worker, 'exit');
    worker.postMessage('close');
    await ended;
  }
  manager?.close();
  fileWatch?.close();
}

const calls = { commit, begin, end, close };

process.on('message', async ({ what, given }) => {
  try {
    process.send({ answer: await calls[what](given) });
  } catch (error) {
    process.send({ failure: error.message });
  }
  if (what === 'close') process.disconnect();
});
process.send({ answer: process.pid });

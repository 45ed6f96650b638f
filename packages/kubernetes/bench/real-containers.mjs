// node packages/kubernetes/bench/real-containers.mjs [CONTAINERS] [RELEASE]: a numalign-node, as a process
// of its own, while a containerd creates real containers, ten in a pod, each with memory booked for it:
// its memory and CPU time, and how much longer a container takes than with a plugin that answers nothing.
// Each has a containerd of its own; they take turns, so that what else the machine does hits both.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { NriPlugin } from '../dist/nri/plugin.js';
import { Containerd } from '../test/containers/support/containerd.mjs';
import { guaranteed, until } from '../test/containers/support/node-fixture.mjs';
import { Pods } from '../test/containers/support/pods.mjs';
import { bareMemory, cpuMs, memory, show, showMemory } from './process-figures.mjs';
import { summary } from './summary.mjs';

const CONTAINERS = Number(process.argv[2] ?? 100);
const RELEASE = process.argv[3] ?? '1.7';
const IN_A_POD = 10;
const PROGRAM = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const PORT = 19_482;
const RESOURCES = guaranteed(0.125, 8);
const IDLE_MS = Number(process.env.IDLE_MS ?? 60_000);

const silentHandlers = {
  synchronize: async () => [],
  createContainer: async () => ({}),
  updateContainer: async () => [],
  stopContainer: async () => [],
};

const isReady = () =>
  new Promise((resolve) => {
    get({ port: PORT, path: '/readyz', host: '127.0.0.1' }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    }).on('error', () => resolve(false));
  });

async function startNode(runtime, folder) {
  const at = [...['--nri-socket', runtime.nriSocketPath], ...['--runtime-endpoint', runtime.socketPath]];
  const options = [...['--no-kubelet', '--listen', `127.0.0.1:${PORT}`], ...['--log-level', 'warn']];
  const child = spawn(process.execPath, [PROGRAM, ...at, '--state-dir', join(folder, 'state'), ...options], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  await until('numalign-node is ready', isReady);
  return child;
}

async function startSilent(runtime) {
  const options = { socketPath: runtime.nriSocketPath, name: 'silent', index: '90', log: () => {} };
  const plugin = new NriPlugin({ ...options, handlers: silentHandlers });
  await plugin.start();
  return plugin;
}

class Measured {
  created = [];
  started = [];
  #pod;

  constructor(runtime) {
    this.runtime = runtime;
    this.pods = new Pods(runtime);
  }

  async once(i) {
    const options = { containerName: `c${i}`, resources: RESOURCES };
    if (i % IN_A_POD === 0) {
      this.#pod = await this.pods.createPod(`pod${i}`, { ...options, containerName: 'first' });
    }
    const start = performance.now();
    await this.#pod.createContainer(options);
    const created = performance.now();
    await this.#pod.start();
    this.created.push(created - start);
    this.started.push(performance.now() - created);
  }
}

const folder = mkdtempSync(join(tmpdir(), 'numalign-real-'));
const closing = [];
try {
  const runtimes = [];
  for (let i = 0; i < 2; i++) {
    const runtime = await Containerd.start({ release: RELEASE });
    closing.push(() => runtime.close());
    runtimes.push(new Measured(runtime));
  }
  const [silent, numalign] = runtimes;
  const plugin = await startSilent(silent.runtime);
  closing.push(() => plugin.close());
  const node = await startNode(numalign.runtime, folder);
  const { pid } = node;
  closing.push(async () => {
    node.kill();
    if (node.exitCode === null) await once(node, 'exit');
  });
  const bare = await bareMemory();
  showMemory('before the first container', memory(pid), bare);
  const cpu = cpuMs(pid);
  for (let i = 0; i < CONTAINERS; i++) for (const each of runtimes) await each.once(i);
  show('CPU time of a container', (cpuMs(pid) - cpu) / CONTAINERS, 'ms');
  await sleep(3000);
  showMemory(`with ${CONTAINERS} containers`, memory(pid), bare);
  const idle = cpuMs(pid);
  await sleep(IDLE_MS);
  show(`CPU time of ${IDLE_MS / 1000} idle seconds`, cpuMs(pid) - idle, 'ms');
  showMemory('after them', memory(pid), bare);
  for (const [name, each] of [
    ['an empty plugin', silent],
    ['numalign-node', numalign],
  ]) {
    console.log(summary(`CreateContainer, ${name}, ms`, each.created));
    console.log(summary(`StartContainer, ${name}, ms`, each.started));
  }
  for (const what of ['created', 'started']) {
    const more = numalign[what].map((ms, i) => ms - silent[what][i]);
    console.log(summary(`more until ${what}, ms`, more));
  }
} finally {
  for (const close of closing.reverse()) await close();
  rmSync(folder, { recursive: true });
}

// node packages/kubernetes/bench/footprint.mjs [CONTAINERS] [MAX_GRANTS]: the memory of a numalign-node
// over that of a bare Node process, its CPU time, and what a scrape of its metrics takes. The runtime is
// played over NRI; each container is a real process in a cgroup of its own, with memory booked for it.
// Both processes have NODE_OPTIONS. Needs root and cgroup v1.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { decode } from '../dist/nri/protocol.js';
import { encode, frame, mux, request, response } from '../test/fuzz/frames.mjs';
import { bareMemory, cpuMs, memory, show, showMemory } from './process-figures.mjs';

const [containers = 100, maxGrants = 100] = process.argv.slice(2).map(Number);
const PROGRAM = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const PORT = 19_481;
const [REQUEST, RESPONSE] = [1, 2];
const START = 6;
const IDLE_MS = Number(process.env.IDLE_MS ?? 60_000);
const CPUSETS = '/sys/fs/cgroup/cpuset';

const folder = mkdtempSync(join(tmpdir(), 'numalign-footprint-'));
const root = `/${basename(folder)}`;
const processes = [];

function makeCgroup(path) {
  mkdirSync(join(CPUSETS, path));
  for (const file of ['cpuset.cpus', 'cpuset.mems'])
    writeFileSync(join(CPUSETS, path, file), readFileSync(join(CPUSETS, file), 'utf8'));
}

/** A runtime on one connection: its calls, and their answers. */
class PlayedRuntime {
  #stream = 1;
  #answers = new Map();
  #bytes = Buffer.alloc(0);

  constructor(socket) {
    this.socket = socket;
    socket.on('data', (bytes) => this.#read(bytes));
    socket.on('error', () => {});
  }

  call(method, type, message) {
    this.#stream += 2;
    const stream = this.#stream;
    const answer = new Promise((resolve) => this.#answers.set(stream, resolve));
    const bytes = request(method, encode(type, message));
    this.socket.write(mux(1, frame({ stream, type: REQUEST, message: bytes })));
    return answer;
  }

  #read(bytes) {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    while (this.#bytes.length >= 8 && this.#bytes.length >= 8 + this.#bytes.readUInt32BE(4)) {
      const [connection, length] = [this.#bytes.readUInt32BE(0), this.#bytes.readUInt32BE(4)];
      const part = this.#bytes.subarray(8, 8 + length);
      this.#bytes = this.#bytes.subarray(8 + length);
      const stream = part.readUInt32BE(4);
      if (connection === 2 && part[8] === REQUEST)
        this.socket.write(mux(2, frame({ stream, type: RESPONSE, message: response(Buffer.alloc(0)) })));
      if (connection === 1) this.#answers.get(stream)?.(part.subarray(10));
    }
  }
}

const podOf = (i) => ({
  ...{ id: `pod${i}`, uid: `uid${i}`, name: `pod${i}`, namespace: 'default', annotations: {}, labels: {} },
  linux: { cgroup_parent: `${root}/pod${i}` },
});
const containerOf = (i) => ({
  ...{ id: `c${i}`, pod_sandbox_id: `pod${i}`, name: 'main', state: 1, annotations: {}, labels: {} },
  linux: {
    cgroups_path: `${root}/pod${i}/c${i}`,
    resources: {
      cpu: { shares: { value: 512 }, quota: { value: 50_000 }, period: { value: 100_000 } },
      memory: { limit: { value: 1 << 20 } },
    },
  },
});

async function runContainer(runtime, i) {
  const message = { pod: podOf(i), container: containerOf(i) };
  makeCgroup(`${root}/pod${i}`);
  const answer = await runtime.call('CreateContainer', 'CreateContainerRequest', message);
  if (decode('CreateContainerResponse', answer) === undefined) throw new Error('no answer');
  makeCgroup(`${root}/pod${i}/c${i}`);
  const child = spawn('sleep', ['infinity'], { stdio: 'ignore' });
  processes.push(child);
  writeFileSync(join(CPUSETS, root, `pod${i}/c${i}/cgroup.procs`), `${child.pid}`);
  await runtime.call('StateChange', 'StateChangeEvent', { event: START, ...message });
}

const fetchText = (path) =>
  new Promise((resolve, reject) => {
    get({ port: PORT, path, host: '127.0.0.1' }, (answer) => {
      let text = '';
      answer.on('data', (part) => (text += part));
      answer.on('end', () => resolve(text));
    }).on('error', reject);
  });

async function timed(pid, act) {
  const [start, cpu] = [performance.now(), cpuMs(pid)];
  const result = await act();
  return { ms: performance.now() - start, cpu: cpuMs(pid) - cpu, result };
}
const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

const bare = await bareMemory();
makeCgroup(root);
const server = createServer();
const nri = join(folder, 'nri.sock');
server.listen(nri);
const connected = once(server, 'connection');
const node = spawn(
  process.execPath,
  [
    PROGRAM,
    '--nri-socket',
    nri,
    '--state-dir',
    join(folder, 'state'),
    '--no-kubelet',
    '--listen',
    `127.0.0.1:${PORT}`,
    '--max-grants',
    `${maxGrants}`,
    '--log-level',
    'warn',
  ],
  { stdio: ['ignore', 'ignore', 'inherit'] },
);
try {
  const { pid } = node;
  const [socket] = await connected;
  const runtime = new PlayedRuntime(socket);
  await runtime.call('Configure', 'ConfigureRequest', { runtime_name: 'played', runtime_version: '0' });
  await runtime.call('Synchronize', 'SynchronizeRequest', {});
  const creation = await timed(pid, async () => {
    for (let i = 0; i < containers; i++) await runContainer(runtime, i);
  });
  await sleep(3000);
  if (containers > 0) show('CPU time of a container from creation to start', creation.cpu / containers, 'ms');
  showMemory('after the last start', memory(pid), bare);
  show('CPU time of an idle minute', (await timed(pid, () => sleep(IDLE_MS))).cpu, 'ms');
  await fetchText('/metrics');
  const scrapes = [];
  const waits = [];
  for (let i = 0; i < 10; i++) {
    const scrape = timed(pid, () => fetchText('/metrics'));
    let isOver = false;
    scrape.then(() => (isOver = true));
    let longest = 0;
    while (!isOver) {
      const probe = await timed(pid, () => runtime.call('StateChange', 'StateChangeEvent', { event: 99 }));
      longest = Math.max(longest, probe.ms);
    }
    waits.push(longest);
    scrapes.push(await scrape);
    await sleep(200);
  }
  show('a scrape', median(scrapes.map(({ ms }) => ms)), 'ms');
  show('CPU time of a scrape', scrapes.reduce((sum, { cpu }) => sum + cpu, 0) / scrapes.length, 'ms');
  show('the longest call of the runtime beside it', median(waits), 'ms');
  show('text of a scrape', scrapes[0].result.length / 1024, 'KB');
  const info = /numalign_node_containers\{kind="booked"\} (\d+)/.exec(scrapes[0].result)?.[1];
  console.log(
    `containers with booked memory: ${info ?? 0}; processes: ${readdirSync('/proc').filter(Number).length}`,
  );
  showMemory('after the scrapes', memory(pid), bare);
} finally {
  node.kill();
  for (const child of processes) child.kill('SIGKILL');
  await Promise.all(
    [node, ...processes].map((each) => each.exitCode ?? each.signalCode ?? once(each, 'exit')),
  );
  server.close();
  await sleep(100);
  for (let i = 0; i < containers; i++)
    for (const path of [`pod${i}/c${i}`, `pod${i}`])
      if (existsSync(join(CPUSETS, root, path))) rmdirSync(join(CPUSETS, root, path));
  rmdirSync(join(CPUSETS, root));
  rmSync(folder, { recursive: true });
}

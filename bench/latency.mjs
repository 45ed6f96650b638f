// How long an HTTP server takes to answer beside three spinning processes per CPU, by how its
// workers are kept from them. Each worker has its own port, so that its answers can be
// distinguished.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { affinity } from '../dist/entries/diagnostics.js';
import { CpuSet } from '../dist/index.js';
import { percentilePicture } from './latency/percentile-picture.mjs';
import { besideAggressors, cgroupRoot, putIntoSlice, SPIN } from './support/aggressors.mjs';
import { quantile, spread } from './support/measure.mjs';
import { duration } from './support/units.mjs';

export const description = 'an HTTP server of a worker a CPU beside three processes a CPU that spin';
export const explanation = `
A \`node:http\` server answers 500 requests a second to each worker. The client asks at fixed times,
whether answers have arrived or not, from a CPU of its own at a real-time priority. Each worker
accepts the connections of a port of its own (\`SCHED_NONE\`): by default the primary would accept
them, among the processes that spin.`;
export const options = {
  answers: { type: 'string', help: 'latency: how long answers are timed each way, in s (default 15)' },
  picture: { type: 'string', help: 'latency: a folder for latency.svg, which shows the percentiles' },
};

const [PRIMARY, CLIENT] = ['primary.mjs', 'client.mjs'].map((name) =>
  fileURLToPath(new URL(`latency/${name}`, import.meta.url)),
);
const AGGRESSORS = 3;
/** Requests per second to each worker. */
const RATE = 500;
// One CPU is for the client, and stays shared.
const cpus = [...affinity()];
const [workerCpus, clientCpu] = [cpus.slice(0, -1), cpus.at(-1)];

const IDLE = 'idle machine';
const numalign = (name, manager) => ({ name: `numalign/cluster, ${name}`, kind: 'numalign', manager });
const WAYS = [
  { name: IDLE, aggressors: 0, kind: 'taskset' },
  { name: 'node:cluster', kind: 'node' },
  { name: 'node:cluster and taskset', kind: 'taskset' },
  { name: 'taskset, others in a slice', kind: 'taskset', slice: true },
  numalign('members', { cgroupRoot: null }),
  numalign('cpuset', { cgroupRoot, enforcement: 'cpuset' }),
];

export async function run({ answers: text = '15', picture }) {
  const seconds = Number(text);
  if (!(seconds > 0)) throw new Error(`--answers ${text}: a number above 0`);
  if (workerCpus.length === 0) throw new Error('at least two CPUs are needed, one of them for the client');
  const ways = [];
  for (const way of WAYS) ways.push({ name: way.name, ...(await measure(way, seconds)) });
  const reached = ways.filter(({ unreached }) => unreached === undefined);
  if (picture !== undefined) writeFileSync(join(picture, 'latency.svg'), percentilePicture(reached));
  const idleNs = spread(reached.find(({ name }) => name === IDLE).times).medianNs;
  return [
    ...reached.map((way) => rowOf(way, idleNs)),
    ...ways.map(({ name, unreached, where, others }) =>
      unreached === undefined
        ? { name, 'workers on': where, 'aggressors on': others }
        : { name, 'workers on': '-', remark: unreached },
    ),
  ];
}

function rowOf({ name, times, workers, connections }, idleNs) {
  const row = { name: `answer: ${name}`, ...spread(times) };
  const worst = Math.max(...workers.map((each) => quantile(each, 0.999)));
  const remark = `worst worker ${duration(worst)} at p99.9; up to ${connections} requests at a time`;
  return { ...row, yardstick: 'idle', yardstickNs: idleNs, ratio: row.medianNs / idleNs, remark };
}

function measure({ aggressors = AGGRESSORS, kind, manager = {}, slice = false }, seconds) {
  return besideAggressors(aggressors * cpus.length, SPIN, async (stateDir, pids) => {
    if (slice) {
      const unreached = putIntoSlice(pids, [clientCpu]);
      if (unreached) return { unreached };
    }
    const ports = await freePorts(workerCpus.length);
    const order = { ports, cpus: workerCpus, kind, manager: { ...manager, stateDir }, members: pids };
    const primary = spawn(process.execPath, [PRIMARY, JSON.stringify(order)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const ended = once(primary, 'close');
    const lines = createInterface(primary.stdout)[Symbol.asyncIterator]();
    const { value: line } = await lines.next();
    if (line === undefined) throw new Error(`${kind}: the primary ended with ${(await ended)[0]}`);
    const answered = await ask(ports, seconds);
    const where = placesOf(JSON.parse(line));
    const others = placesOf(pids);
    primary.stdin.end();
    await ended;
    return {
      workers: answered.map(({ times }) => times),
      times: answered.flatMap(({ times }) => times),
      connections: Math.max(...answered.map((each) => each.connections)),
      ...{ where, others },
    };
  });
}

// It runs above all others and away from the workers, so that the measurement itself is not
// disturbed.
async function ask(ports, seconds) {
  const order = JSON.stringify({ ports, rate: RATE, seconds });
  const args = ['-f', '1', 'taskset', '-c', String(clientCpu), process.execPath, CLIENT, order];
  const client = spawn('chrt', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  client.stdout.setEncoding('utf8').on('data', (part) => {
    text += part;
  });
  const [code] = await once(client, 'close');
  if (code !== 0) throw new Error(`the client ended with ${code}`);
  return JSON.parse(text);
}

async function freePorts(count) {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const ports = servers.map((server) => server.address().port);
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}

function placesOf(pids) {
  const places = pids.map((pid) => {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    return /^Cpus_allowed_list:\s*(\S+)/m.exec(status)[1];
  });
  return [...new Set(places)]
    .sort()
    .map((place) => String(CpuSet.parse(place)))
    .join(' ');
}

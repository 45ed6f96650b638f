// node packages/kubernetes/bench/answer.mjs [CONTAINERS] [TIMES]: how long numalign-node takes for its
// answer where it knows of many containers, a fifth of them with CPUs of their own. The machine is
// simulated. The state is in memory (tmpfs), as /run/numalign is: on a disk, the answer that replaces
// the journal waits for it. Each answer makes all shared containers move.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { logWriter } from '../dist/base/log.js';
import { CpusetFiles } from '../dist/cgroups/cpuset-files.js';
import { ContainerHandlers } from '../dist/containers/container-handlers.js';
import { Reports } from '../dist/containers/reports.js';
import { NO_METRICS } from '../dist/metrics/metrics.js';
import { decode, encode } from '../dist/nri/protocol.js';
import { CallsInProgress, observedHandlers } from '../dist/observation/observed-handlers.js';
import { summary } from './summary.mjs';

const [containers = 500, times = 200] = process.argv.slice(2).map(Number);
const MACHINE = 'package:2 [numa(memory=512GB)] core:64 pu:2';
const EXCLUSIVE_SHARE = 5;
const PERIOD = 100_000;
const MEMORY = 64 << 20;

const folder = mkdtempSync('/dev/shm/numalign-bench-');
const cgroups = join(folder, 'cpuset');
const pod = {
  ...{ id: 'pod', uid: '', name: 'pod', namespace: 'default', annotations: {} },
  linux: { cgroup_parent: '/k', cgroups_path: '' },
};

// As the runtime sends it: encoded and decoded again.
function request(id, isExclusive) {
  const cpu = isExclusive
    ? { shares: { value: 1024 }, quota: { value: PERIOD }, period: { value: PERIOD } }
    : { shares: { value: 1024 } };
  const memory = isExclusive ? { limit: { value: MEMORY } } : null;
  const linux = { cgroups_path: `/k/${id}`, resources: { cpu, memory } };
  return encode('CreateContainerRequest', { pod, container: { id, pod_sandbox_id: 'pod', name: id, linux } });
}

function makeCgroup(id) {
  mkdirSync(join(cgroups, 'k', id), { recursive: true });
  writeFileSync(join(cgroups, 'k', id, 'cpuset.cpus'), '');
}

const topology = await discover({ synthetic: MACHINE });
const stateDir = join(folder, 'state');
const manager = await openManager({ topology, stateDir, lockTimeoutMs: 1000 });
// Each decision is a line of a log, as in a node.
const log = logWriter({ format: 'json', level: 'info', write: () => {} });
const metrics = NO_METRICS;
const reports = new Reports({ prefix: 'numalign', log, metrics, recordEvent: () => {} });
const start = () =>
  new ContainerHandlers({
    ...{ manager, prefix: 'numalign', cpusets: new CpusetFiles(cgroups), log, reports },
    tell: async () => {},
  });
let handlers = start();
const observed = observedHandlers(handlers, new CallsInProgress(), { reports, metrics, log });

async function create(bytes) {
  const message = decode('CreateContainerRequest', bytes);
  const { adjust, updates } = await observed.createContainer(message.pod, message.container);
  return { updates, bytes: encode('CreateContainerResponse', { adjust, update: updates }) };
}

async function stop(bytes) {
  const message = decode('CreateContainerRequest', bytes);
  return encode('StopContainerResponse', {
    update: await observed.stopContainer(message.pod, message.container),
  });
}

const cpuNow = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

const milliseconds = new Map();
async function measure(name, act) {
  const [start, cpuStart] = [performance.now(), cpuNow()];
  const answer = await act();
  for (const [what, value] of [
    [name, performance.now() - start],
    [`${name}, CPU time`, cpuNow() - cpuStart],
  ]) {
    if (!milliseconds.has(what)) milliseconds.set(what, []);
    milliseconds.get(what).push(value);
  }
  return answer;
}

try {
  await handlers.synchronize([], []);
  for (let i = 0; i < containers; i++) {
    makeCgroup(`c${i}`);
    await create(request(`c${i}`, i % EXCLUSIVE_SHARE === 0));
  }
  let moved = 0;
  for (let i = 0; i < times; i++) {
    const [exclusive, shared] = [request(`x${i}`, true), request(`s${i}`, false)];
    moved = (await measure('create exclusive', () => create(exclusive))).updates.length;
    await measure('create shared', () => create(shared));
    await measure('stop exclusive', () => stop(exclusive));
    await stop(shared);
  }
  const known = handlers.containers.map(({ id, placement, cpus }) => {
    const { container } = decode('CreateContainerRequest', request(id, placement?.cpus != null));
    const { resources } = container.linux;
    const linux = {
      ...container.linux,
      resources: { ...resources, cpu: { ...resources.cpu, cpus: String(cpus) } },
    };
    return { ...container, linux };
  });
  for (let i = 0; i < times / 10; i++) {
    handlers.close();
    handlers = start();
    await measure('synchronize', () => handlers.synchronize([pod], known));
  }
  console.log(`${containers} containers are known, ${moved} move; ${times} times each, in milliseconds`);
  for (const [name, each] of milliseconds) console.log(summary(name, each));
} finally {
  handlers.close();
  manager.close();
  rmSync(folder, { recursive: true });
}

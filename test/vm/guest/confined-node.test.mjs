// numalign-node in a container without privileges, with pid and cgroup namespaces of its own, on a
// machine with cgroup v2: it sees when other containers end, even those that end while it is away. With
// the rights of the chart for quiet containers it changes settings of the machine. Run by node --test,
// as root.
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { CpuSet } from '../../../dist/index.js';
import { IMAGE } from '../../../packages/kubernetes/test/containers/image.mjs';
import {
  ALL,
  allCpusBut,
  guaranteed,
  NodeFixture,
  until,
} from '../../../packages/kubernetes/test/containers/support/node-fixture.mjs';
import { ManifestPod, writePodNetwork } from '../../../packages/kubernetes/test/image/manifest-pod.mjs';
import { renderChart } from '../../../scripts/chart/chart.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url)).replace(/\/$/, '');
const COMMAND = join(ROOT, 'packages/kubernetes/dist/cli/main.js');
// The machine's own are in place of an image.
const PROGRAMS = ['/etc', '/usr', '/lib', '/lib64', ROOT];
// Emulation is slow.
const PATIENCE_MS = 240_000;

const fixture = new NodeFixture();
let manager;
let agent;

const log = () => readFileSync(agent.log, 'utf8');

/** The pod of the chart, with this machine's programs, of which only NRI and cgroups are there. */
function podTemplate(more) {
  const values = {
    ...{ publish: { enabled: false }, events: { enabled: false }, runtime: { bundles: '' } },
    ...more,
  };
  const { template } = renderChart({ values }).find(({ kind }) => kind === 'DaemonSet').spec;
  const [container] = template.spec.containers;
  const isKept = ({ name }) => ['state', 'nri', 'cgroups', 'sys', 'irqbalance'].includes(name);
  const programs = PROGRAMS.map((path) => ({ name: path.slice(1).replaceAll('/', '-'), path }));
  container.args = [process.execPath, COMMAND, '--policy=single-numa-node', '--no-kubelet'];
  container.volumeMounts = [
    ...container.volumeMounts.filter(isKept),
    ...programs.map(({ name, path }) => ({ name, mountPath: path, readOnly: true })),
  ];
  template.spec.volumes = [
    ...template.spec.volumes.filter(isKept),
    ...programs.map(({ name, path }) => ({ name, hostPath: { path } })),
  ];
  return template;
}

async function startAgent(values = {}) {
  agent = new ManifestPod({
    ...{ runtime: fixture.runtime, template: podTemplate(values), image: IMAGE },
    folder: join(fixture.runtime.folder, 'volumes'),
    facts: { 'spec.nodeName': 'node' },
  });
  await agent.start(fixture.lastingPods);
  try {
    await until('it is synchronized', () => log().includes('synchronized'), PATIENCE_MS);
  } catch (error) {
    throw new Error(`${error.message}:\n${log()}`);
  }
}

const released = (names) =>
  until(
    `${names} are left`,
    () => `${manager.grants().map(({ name }) => name.split('/')[1])}` === `${names}`,
    PATIENCE_MS,
  );

before(async () => {
  await fixture.open({ nriTimeout: '120s' });
  writePodNetwork(fixture.runtime);
  fixture.begin();
  fixture.stateDir = join(fixture.runtime.folder, 'run/numalign');
  mkdirSync(fixture.stateDir, { recursive: true });
  mkdirSync(join(fixture.runtime.folder, 'volumes'));
  await startAgent();
  manager = await fixture.openManager({ lockTimeoutMs: 60_000 });
});
after(async () => {
  await agent?.remove(fixture.lastingPods);
  await fixture.lastingPods?.removeAll();
  await fixture.end();
  await fixture.close();
});

describe('numalign-node without privileges', () => {
  let shared;
  const exclusive = [];

  it('places containers, whose pods own their grants', async () => {
    shared = await fixture.lastingPods.runPod('shared');
    for (const name of ['first', 'second'])
      exclusive.push(await fixture.lastingPods.runPod(name, { resources: guaranteed(2) }));
    const grants = manager.grants();
    assert.deepEqual(
      grants.map(({ owner, alive }) => [owner.kind, alive]),
      [
        ['cgroup', true],
        ['cgroup', true],
      ],
    );
    const [a, b] = grants.map(({ cpus }) => cpus);
    assert.equal((await shared.allowed()).cpus, allCpusBut(`${a.union(b)}`));
    assert.equal((await exclusive[0].allowed()).cpus, `${a}`);
  });

  it('releases at the end of a container', async () => {
    await exclusive[0].remove();
    await released(['second']);
  });

  it('releases what has ended while it was away', async () => {
    await agent.remove(fixture.lastingPods);
    await exclusive[1].remove();
    await startAgent();
    await released([]);
    await until('all are shared', async () => (await shared.allowed()).cpus === ALL.cpus, PATIENCE_MS);
  });
});

describe('quiet containers', () => {
  const annotations = {
    'numalign.io/quiet': 'interrupts,workqueues,packets,idle=0',
    'numalign.io/require-quiet': 'workqueues,packets,idle',
  };
  const run = (name) => fixture.lastingPods.runPod(name, { annotations, resources: guaranteed(2) });
  const read = (path) => readFileSync(path, 'utf8').trim();
  const QUEUES = '/sys/class/net/lo/queues/rx-0/rps_cpus';
  const WORKQUEUES = '/sys/devices/virtual/workqueue/cpumask';
  const idleFile = (cpu) => `/sys/devices/system/cpu/cpu${cpu}/power/pm_qos_resume_latency_us`;
  const interrupts = () =>
    readdirSync('/proc/irq').flatMap((irq) => {
      try {
        return [[irq, CpuSet.parse(read(`/proc/irq/${irq}/smp_affinity_list`))]];
      } catch {
        return [];
      }
    });
  // A hexadecimal mask of 32 bits each.
  const hasCpu = (mask, cpu) => ((BigInt(`0x${mask.replaceAll(',', '')}`) >> BigInt(cpu)) & 1n) === 1n;

  it('are refused without the rights for them', async () => {
    await assert.rejects(run('refused'), /ERR_QUIET|quiet/);
    assert.deepEqual(manager.grants(), []);
  });

  it('have them with those of the chart, and the machine has its settings again at their end', async () => {
    await agent.remove(fixture.lastingPods);
    mkdirSync('/run/irqbalance', { recursive: true });
    await startAgent({ quiet: { enabled: true } });
    writeFileSync(QUEUES, 'ff');
    const before = [read(QUEUES), read(WORKQUEUES), new Map(interrupts())];
    const quiet = await run('quiet');
    const [{ uid, cpus }] = manager.grants();
    const { interrupts: moved, ...others } = manager.pod(uid).quiet.parts;
    const reached = Object.entries(others).map(([part, { reached }]) => `${part} ${reached}`);
    assert.deepEqual(reached.toSorted(), ['idle yes', 'packets yes', 'workqueues yes']);
    // The kernel itself moves no timer.
    for (const reason of moved.reasons) assert.match(reason, /EIO/);
    assert.ok(!hasCpu(read('/proc/irq/default_smp_affinity'), cpus.first));
    for (const cpu of cpus) {
      assert.equal(read(idleFile(cpu)), 'n/a');
      for (const file of [QUEUES, WORKQUEUES]) assert.ok(!hasCpu(read(file), cpu), `${file}: ${read(file)}`);
    }
    await quiet.remove();
    await released([]);
    await until('settings are restored', () => read(QUEUES) === before[0], PATIENCE_MS);
    assert.equal(read(WORKQUEUES), before[1]);
    for (const cpu of cpus) assert.equal(read(idleFile(cpu)), '0');
    for (const [irq, where] of interrupts()) assert.equal(`${where}`, `${before[2].get(irq) ?? where}`, irq);
  });
});

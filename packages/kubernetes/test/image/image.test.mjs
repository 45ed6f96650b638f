// The image of numalign-node, built from the Dockerfile and run with the security context and the
// mounts of the chart: it places containers, and its successor goes on with them.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { CpuSet, openManager } from 'numalign';
import { renderChart } from '../../../../scripts/chart/chart.mjs';
import { hierarchyRoots } from '../containers/support/cgroups.mjs';
import {
  ALL,
  allCpusBut,
  guaranteed,
  managerOptions,
  NodeFixture,
  until,
} from '../containers/support/node-fixture.mjs';
import { ARCHITECTURES, Images } from './components.mjs';
import { ManifestPod, writePodNetwork } from './manifest-pod.mjs';

const REGISTRY = 'numalign.test/numalign-node';
const [OLD, NEW] = ['0.1.0', '0.1.1'];
const OTHER = ARCHITECTURES.find((each) => each !== process.arch);
const ELF_MACHINES = { x64: 0x3e, arm64: 0xb7 };
const PORT = 9481;
const PATIENCE_MS = 30_000;

const folder = join(tmpdir(), `numalign-image-${process.pid}`);
mkdirSync(folder);
const images = new Images(folder);
const fixture = new NodeFixture();
let agent;
let manager;

// With cgroup v1 a pid namespace hides the processes of containers.
const isV1 = hierarchyRoots().length > 1;
const VALUES = {
  hostPID: isV1,
  publish: { enabled: false },
  configuration: { policy: 'restricted' },
};

/** The agent of a version, as the chart would have the kubelet run it. */
async function startAgent(version, values = {}) {
  const manifests = renderChart({ values: { ...VALUES, ...values } });
  const find = (kind) => manifests.find((each) => each.kind === kind);
  const { template } = find('DaemonSet').spec;
  const { metadata, data } = find('ConfigMap');
  const machine = join(fixture.runtime.folder, 'machine');
  agent = new ManifestPod({
    ...{ runtime: fixture.runtime, template, image: `${REGISTRY}:${version}` },
    folder: join(fixture.runtime.folder, 'volumes'),
    places: { '/var/lib/kubelet': join(machine, 'kubelet'), '/etc/containerd': join(machine, 'etc') },
    configMaps: { [metadata.name]: data },
    facts: { 'spec.nodeName': 'node' },
  });
  await agent.start(fixture.lastingPods);
  try {
    await until('the agent is ready', async () => (await get('/readyz')).startsWith('200'), PATIENCE_MS);
  } catch (error) {
    throw new Error(`${error.message}:\n${log()}`, { cause: error });
  }
}

/** Runs a command in the agent's container: its output. */
async function inAgent(...cmd) {
  const request = { container_id: agent.containerId, cmd, timeout: 20 };
  const { stdout, stderr } = await fixture.lastingPods.call('ExecSync', request);
  return `${Buffer.from(stdout)}${Buffer.from(stderr)}`;
}

/** What it serves, as its probes see it: the status, and the text. */
const get = (path) =>
  inAgent(
    ...['node', '-e'],
    `fetch('http://127.0.0.1:${PORT}${path}').then(async (answer) => console.log(answer.status, await answer.text()), console.log)`,
  );

const log = () => readFileSync(agent.log, 'utf8');

before(async () => {
  await fixture.open();
  writePodNetwork(fixture.runtime);
  fixture.begin();
  const machine = join(fixture.runtime.folder, 'machine');
  // As a kubelet has them.
  for (const name of ['pods/uid/secret', 'plugins', 'device-plugins', 'pod-resources'])
    mkdirSync(join(machine, 'kubelet', name), { recursive: true });
  for (const each of [join(machine, 'etc'), join(fixture.runtime.folder, 'volumes')])
    mkdirSync(each, { recursive: true });
  for (const version of [OLD, NEW]) {
    const name = `${REGISTRY}:${version}`;
    images.build(images.context(version), name);
    fixture.runtime.importImage(images.archive(name));
  }
});

after(async () => {
  manager?.close();
  await agent?.remove(fixture.lastingPods);
  await fixture.lastingPods.removeAll();
  await fixture.end();
  await fixture.close();
  rmSync(folder, { recursive: true, force: true });
});

describe('the image', () => {
  it('is made for each architecture, with its addon', () => {
    const other = images.build(join(folder, `context-${OLD}`), `${REGISTRY}:${OLD}-${OTHER}`, OTHER);
    const platforms = images.index(`${REGISTRY}:all`, [`${REGISTRY}:${OLD}`, other]);
    assert.deepEqual(platforms.toSorted(), ['linux/amd64', 'linux/arm64']);
    const tree = images.unpack(other);
    for (const architecture of ARCHITECTURES)
      for (const libc of ['glibc', 'musl']) {
        const addon = `opt/numalign/node_modules/numalign/prebuilds/linux-${architecture}/numalign.${libc}.node`;
        assert.equal(readFileSync(join(tree, addon)).readUInt16LE(18), ELF_MACHINES[architecture], addon);
      }
  });

  it('runs the command, and nothing else', () => {
    const { config } = images.inspect(`${REGISTRY}:${OLD}`);
    assert.deepEqual([config.Entrypoint, config.Cmd ?? []], [['numalign-node'], []]);
    assert.equal(config.User, '0');
  });
});

describe('the agent in it', () => {
  let shared;
  let exclusive;
  let grant;

  it('runs without capabilities, on a root that it cannot write', async () => {
    await startAgent(OLD);
    const status = await inAgent('cat', '/proc/self/status');
    for (const set of ['CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\\s0{16}$`, 'm'));
    assert.match(status, /^NoNewPrivs:\s1$/m);
    assert.match(status, /^Seccomp:\s2$/m);
    assert.match(await inAgent('touch', '/opt/numalign/new'), /Read-only file system/);
    assert.match(await inAgent('touch', '/run/containerd/new'), /Read-only file system/);
  });

  it('sees no files of other pods', async () => {
    assert.equal(await inAgent('ls', '-A', '/var/lib/kubelet/pods'), '');
    assert.equal(await inAgent('ls', '-A', '/run/containerd/io.containerd.runtime.v2.task'), '');
    assert.match(await inAgent('ls', '/var/lib/kubelet'), /device-plugins\nplugins\npod-resources\npods\n/);
  });

  it('finds nothing on its node that would not work', async () => {
    const findings = JSON.parse(await inAgent('numalign-node', '--check', '--json'));
    assert.deepEqual(
      findings.filter(({ status }) => status === 'problem'),
      [],
    );
  });

  it('places a container, and others leave its CPUs', async () => {
    manager = await openManager(managerOptions(join(fixture.runtime.folder, 'run/numalign')));
    shared = await fixture.lastingPods.runPod('shared');
    exclusive = await fixture.lastingPods.runPod('exclusive', { resources: guaranteed(1) });
    [grant] = manager.grants();
    assert.equal((await exclusive.seen()).cpus, `${grant.cpus}`);
    assert.equal((await shared.allowed()).cpus, allCpusBut(`${grant.cpus}`));
    assert.equal(grant.owner.kind, 'cgroup');
  });

  it('puts back what another program moves', async () => {
    writeFileSync(join(await exclusive.cpusetFolder(), 'cpuset.cpus'), ALL.cpus);
    await until('it is back', async () => (await exclusive.allowed()).cpus === `${grant.cpus}`, PATIENCE_MS);
  });

  it('serves probes and metrics', async () => {
    assert.match(await get('/healthz'), /^200 /);
    const metrics = await get('/metrics');
    assert.match(metrics, /^numalign_node_containers\{kind="exclusive"\} 1$/m);
    assert.ok(metrics.includes(`numalign_node_info{version="${OLD}"} 1`), metrics);
  });

  describe('and its next version', () => {
    before(async () => {
      const allowed = () => Promise.all([exclusive, shared].map(async (each) => (await each.allowed()).cpus));
      const earlier = await allowed();
      await agent.remove(fixture.lastingPods);
      assert.deepEqual(await allowed(), earlier);
      await startAgent(NEW);
      assert.deepEqual(await allowed(), earlier);
    });

    it('has the grants of the earlier one, for containers that never stopped', async () => {
      assert.ok((await get('/metrics')).includes(`numalign_node_info{version="${NEW}"} 1`));
      assert.deepEqual(
        manager.grants().map(({ uid, cpus, alive }) => [uid, `${cpus}`, alive]),
        [[grant.uid, `${grant.cpus}`, true]],
      );
      assert.match(log(), /1 on exclusive CPUs/);
      assert.doesNotMatch(log(), /"level":"(warn|error)"/);
    });

    it('releases them at the end of the container', async () => {
      await exclusive.remove();
      await until('the grant has ended', () => manager.grants().length === 0, PATIENCE_MS);
      await until('the CPUs are shared', async () => (await shared.allowed()).cpus === ALL.cpus, PATIENCE_MS);
    });
  });

  it('writes no cgroup itself where these are read-only, and the runtime does', {
    skip: isV1 && 'a read-only mount of cgroup v1 does not include its hierarchies',
  }, async () => {
    await agent.remove(fixture.lastingPods);
    await startAgent(NEW, { cgroups: { readOnly: true } });
    const pod = await fixture.lastingPods.runPod('exclusive', { resources: guaranteed(1) });
    const { cpus } = manager.grants()[0];
    await until(
      'the other left',
      async () => CpuSet.parse((await shared.allowed()).cpus).intersection(cpus).isEmpty,
    );
    await pod.remove();
  });
});

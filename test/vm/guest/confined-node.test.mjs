// numalign-node in a container without privileges, with pid and cgroup namespaces of its own, on a
// machine with cgroup v2: it sees when other containers end, even those that end while it is away. Run
// by node --test, as root.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
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
function podTemplate() {
  const values = { publish: { enabled: false }, events: { enabled: false }, runtime: { bundles: '' } };
  const { template } = renderChart({ values }).find(({ kind }) => kind === 'DaemonSet').spec;
  const [container] = template.spec.containers;
  const isKept = ({ name }) => ['state', 'nri', 'cgroups'].includes(name);
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

async function startAgent() {
  agent = new ManifestPod({
    ...{ runtime: fixture.runtime, template: podTemplate(), image: IMAGE },
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
  await fixture.open({ nriTimeout: '60s' });
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
  await fixture.lastingPods.removeAll();
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

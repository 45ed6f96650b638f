// numalign-node in a container without privileges, with pid and cgroup namespaces of its own, on a
// machine with cgroup v2: it sees when other containers end, over its own restarts too. Run by node
// --test, as root.
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openManager } from '../../../dist/index.js';
import { IMAGE } from '../../../packages/kubernetes/test/containers/image.mjs';
import {
  guaranteed,
  managerOptions,
  NodeFixture,
  until,
} from '../../../packages/kubernetes/test/containers/support/node-fixture.mjs';
import { ManifestPod, writePodNetwork } from '../../../packages/kubernetes/test/image/manifest-pod.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const COMMAND = join(ROOT, 'packages/kubernetes/dist/cli/main.js');
// Emulation is slow.
const PATIENCE_MS = 90_000;

const fixture = new NodeFixture();
const PROGRAM_FOLDERS = ['/usr', '/lib', '/lib64', '/proc/1/root' + ROOT].filter((path) => {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
});

function template() {
  const machine = { nri: '/var/run/nri', state: '/run/numalign', cgroups: '/sys/fs/cgroup' };
  const programs = Object.fromEntries(
    ['/etc', '/usr', '/lib', '/lib64', ROOT.replace(/\/$/, '')].map((path) => [
      path.slice(1).replaceAll('/', '-'),
      path,
    ]),
  );
  const volumes = { ...machine, ...programs };
  return {
    metadata: { labels: { 'app.kubernetes.io/name': 'numalign-node' } },
    spec: {
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name: 'numalign-node',
          args: [process.execPath, COMMAND, '--policy=single-numa-node', '--no-kubelet'],
          env: [{ name: 'KUBERNETES_SERVICE_HOST', value: '192.0.2.1' }],
          securityContext: {
            runAsUser: 0,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
          volumeMounts: Object.entries(volumes).map(([name, mountPath]) => ({
            name,
            mountPath,
            readOnly: name in programs,
          })),
        },
      ],
      volumes: Object.entries(volumes).map(([name, path]) => ({ name, hostPath: { path } })),
    },
  };
}

let pod;
let state;
const notes = [];
const log = () => {
  try {
    return readFileSync(pod.log, 'utf8');
  } catch {
    return '';
  }
};
async function startNode() {
  pod = new ManifestPod({
    runtime: fixture.runtime,
    template: template(),
    image: IMAGE,
    folder: join(fixture.runtime.folder, 'volumes'),
  });
  await pod.start(fixture.lastingPods);
  await until('the node is there', () => log().includes('synchronized'), PATIENCE_MS);
}

describe('numalign-node without privileges', () => {
  it('places, releases, and after a restart still knows which containers have ended', async () => {
    try {
      await all();
    } catch (error) {
      notes.push(error.stack);
    }
    notes.push(log());
    throw new Error(notes.join('\n'));
  });
});
async function all() {
  await fixture.open({ nriTimeout: '60s' });
  writePodNetwork(fixture.runtime);
  fixture.begin();
  state = join(fixture.runtime.folder, 'run/numalign');
  for (const each of [state, join(fixture.runtime.folder, 'volumes')]) mkdirSync(each, { recursive: true });
  await startNode();
  const manager = await openManager({ ...managerOptions(state), lockTimeoutMs: 60_000 });
  const shared = await fixture.lastingPods.runPod('shared');
  const first = await fixture.lastingPods.runPod('first', { resources: guaranteed(2) });
  const second = await fixture.lastingPods.runPod('second', { resources: guaranteed(2) });
  const text = () =>
    JSON.stringify(manager.grants().map(({ name, owner, alive, cpus }) => [name, owner, alive, `${cpus}`]));
  notes.push('grants', text(), 'shared', (await shared.allowed()).cpus, (await first.allowed()).cpus);
  notes.push(JSON.stringify(manager.grants()[0].owner));
  await first.remove();
  await until('the first is released', () => manager.grants().length === 1, PATIENCE_MS).catch((e) =>
    notes.push(e.message, text()),
  );
  notes.push('after first', text(), log());
  await pod.remove(fixture.lastingPods);
  await second.remove();
  notes.push('without agent', text());
  await startNode();
  await until('the second is released', () => manager.grants().length === 0, PATIENCE_MS).catch((e) =>
    notes.push(e.message, text()),
  );
  notes.push('end', text(), (await shared.allowed()).cpus);
  manager.close();
}
after(async () => {
  await pod?.remove(fixture.lastingPods);
  await fixture.end();
  await fixture.close();
});

// Pods without a place at a real API server, by the service account of the examples. Run by
// node --test.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { ApiServer } from '../../dist/api-server/api-server.js';
import { checkNode } from '../../dist/check/check-node.js';
import { NO_METRICS } from '../../dist/metrics/metrics.js';
import { Refusals } from '../../dist/refusals/refusals.js';
import { KubeApiServer } from './api-server.mjs';
import { prepareApiServer } from './build.mjs';
import { prepareEtcd } from './etcd.mjs';

const RBAC = new URL('../../deploy/kustomize/base/numalign-node.yaml', import.meta.url);
const REFUSALS = new URL('../../deploy/refusals.yaml', import.meta.url);
const NODE = 'worker-1';
const NO_PLACE = Object.assign(new Error('2 CPUs requested'), { code: 'ERR_INSUFFICIENT_CPUS' });

let folder;
let server;
let client;

const manifests = (file) => parseAllDocuments(readFileSync(file, 'utf8')).map((document) => document.toJS());

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-kube-'));
  server = new KubeApiServer({ etcd: prepareEtcd(), apiServer: prepareApiServer() }, folder);
  await server.start();
  for (const object of [...manifests(RBAC), ...manifests(REFUSALS)]) await server.apply(object);
  await server.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, await server.accountToken('numalign', 'numalign-node'));
  client = new ApiServer({ url: server.url, caFile: server.caFile, tokenFile });
});
after(async () => {
  client?.close();
  await server?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

/** A pod on this node, of a controller. */
async function makePod(name) {
  const owner = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    name: 'web',
    uid: `r-${name}`,
    controller: true,
  };
  const account = { serviceAccountName: 'numalign-node', automountServiceAccountToken: false };
  const spec = { nodeName: NODE, ...account, containers: [{ name: 'main', image: 'busybox' }] };
  const metadata = { name, namespace: 'numalign', ownerReferences: [owner] };
  const { metadata: made } = await server.apply({ apiVersion: 'v1', kind: 'Pod', metadata, spec });
  return { name, namespace: 'numalign', uid: made.uid };
}

const stored = async ({ name }) =>
  (await server.ask('GET', `/api/v1/namespaces/numalign/pods/${name}`)).object;

async function refuse(mode, pod, times) {
  const lines = [];
  let now = 0;
  const refusals = new Refusals({
    ...{ mode, apiServer: client, nodeName: NODE, metrics: NO_METRICS, recordEvent: () => {} },
    log: (level, message) => lines.push(`${level} ${message}`),
    now: () => now,
  });
  for (let i = 0; i < times; i++) {
    now += 10_000;
    refusals.refused(pod, { name: 'main' }, NO_PLACE);
    await refusals.settled;
  }
  return { refusals, lines };
}

test('a condition stands beside those of the kubelet, and ends with a place', async () => {
  const pod = await makePod('marked');
  const path = `/api/v1/namespaces/numalign/pods/${pod.name}/status`;
  const scheduled = { type: 'PodScheduled', status: 'True' };
  await server.ask('PUT', path, {
    ...(await stored(pod)),
    status: { phase: 'Pending', conditions: [scheduled] },
  });
  const { refusals, lines } = await refuse('condition', pod, 5);
  const conditions = async () =>
    (await stored(pod)).status.conditions.map(({ type, status }) => `${type}=${status}`).sort();
  assert.deepEqual(await conditions(), ['PodScheduled=True', 'numalign.io/Placed=False']);
  refusals.admitted(pod, { name: 'main' });
  await refusals.settled;
  assert.deepEqual(await conditions(), ['PodScheduled=True', 'numalign.io/Placed=True']);
  assert.deepEqual(lines, []);
});

test('an eviction deletes the pod', async () => {
  const pod = await makePod('evicted');
  const { lines } = await refuse('evict', pod, 3);
  assert.match(lines.join(), /numalign\/evicted is evicted: container main: 2 CPUs requested/);
  const found = await stored(pod);
  assert.ok(found.kind === 'Status' || found.metadata.deletionTimestamp, JSON.stringify(found));
});

test('check reports what an answer to refusals needs', async () => {
  const refusals = { apiServer: client, nodeName: NODE, mode: 'evict' };
  const findings = await checkNode({ refusals });
  const rights = findings.find(({ check }) => check === 'rights');
  assert.equal(rights.status, 'ok', rights.found);
});

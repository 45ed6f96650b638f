// The node's topology at a real API server, published by the service account of the examples. Run by
// node --test.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { parseAllDocuments } from 'yaml';
import { ApiServer } from '../../dist/api-server/api-server.js';
import { checkNode } from '../../dist/check/check-node.js';
import { hashOfPod, podFingerprint } from '../../dist/publish/pod-fingerprint.js';
import { TopologyPublisher } from '../../dist/publish/topology-publisher.js';
import { zonesOf } from '../../dist/publish/zones.js';
import { KubeApiServer } from './api-server.mjs';
import { prepareApiServer } from './build.mjs';
import { prepareEtcd } from './etcd.mjs';

const BASE = new URL('../../deploy/kustomize/base/', import.meta.url);
const TOPOLOGIES = { group: 'topology.node.k8s.io', version: 'v1alpha2', plural: 'noderesourcetopologies' };
const PATH = '/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies';
const NODE = 'worker-1';

let folder;
let server;
const cleanups = [];

/** The objects of an example's file. */
const manifests = (name) =>
  parseAllDocuments(readFileSync(new URL(name, BASE), 'utf8')).map((document) => document.toJS());

const until = async (condition, what) => {
  for (let i = 0; i < 3000; i++) {
    const value = await condition();
    if (value) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`it did not come: ${what}`);
};

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'numalign-kube-'));
  server = new KubeApiServer({ etcd: prepareEtcd(), apiServer: prepareApiServer() }, folder);
  await server.start();
  for (const object of [...manifests('noderesourcetopologies.yaml'), ...manifests('numalign-node.yaml')])
    await server.apply(object);
  await until(async () => (await server.ask('GET', PATH)).status === 200, 'the definition');
  await server.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } });
});
after(async () => {
  await server?.close();
  if (folder) rmSync(folder, { recursive: true, force: true });
});
beforeEach(async (context) => {
  context.after(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
});

function writeToken(token, file = join(folder, `token-${Math.random()}`)) {
  writeFileSync(`${file}.new`, token);
  renameSync(`${file}.new`, file);
  return file;
}

function clientOf(token, options = {}) {
  const client = new ApiServer({
    url: server.url,
    caFile: server.caFile,
    tokenFile: writeToken(token),
    ...options,
  });
  cleanups.push(() => client.close());
  return client;
}

const account = () => server.accountToken('numalign', 'numalign-node');

async function machine() {
  const cpus = Array.from({ length: 128 }, (_, cpu) => [cpu, cpu - (cpu % 2), cpu >> 5, cpu >> 5]);
  const nodes = [0, 1, 2, 3].map((id) => ({
    id,
    memory: 64 * 2 ** 30,
    hugepages: [{ sizeKiB: 2048, count: 512 }],
    distances: [0, 1, 2, 3].map((other) => (other === id ? 10 : 21)),
  }));
  const topology = await discover({ json: { columns: ['cpu', 'core', 'socket', 'numa'], cpus, nodes } });
  const manager = await openManager({ topology, policy: 'single-numa-node' });
  cleanups.push(() => manager.close());
  const anchors = topology.numaNodes.map((node) => `test.numalign.io/node-${node}`);
  for (const [node, name] of anchors.entries())
    manager.registerDevices(name, [{ id: 'a', numaNodes: [node] }]);
  return manager;
}

async function publish(manager, token, options = {}) {
  const lines = [];
  const log = (level, message, facts) => lines.push({ level, message, ...facts });
  const apiServer = clientOf(token, options);
  const publisher = new TopologyPublisher({ manager, apiServer, nodeName: NODE, log });
  cleanups.push(() => publisher.close());
  await publisher.start();
  return lines;
}

async function stored() {
  const { status, object } = await server.ask('GET', `${PATH}/${NODE}`);
  return status === 200 ? object : undefined;
}

/** True if plan admits a Guaranteed pod with this request to a NUMA node. */
function fits(manager, node, resources) {
  const limits = { cpu: '100m', memory: 1, [`test.numalign.io/node-${node}`]: 1, ...resources };
  return manager.plan({ containers: [{ name: 'main', limits }] }, { policy: 'single-numa-node' }).admitted;
}

const UNITS = { memory: 1, 'hugepages-2Mi': 2 ** 21 };

/** The stored object, compared with plan: the available amount fits, and one more unit does not. */
function assertPlanned(manager, object) {
  for (const [node, { name, resources }] of object.zones.entries()) {
    assert.equal(name, `node-${node}`);
    for (const { name: resource, available } of resources.filter((each) => !each.name.startsWith('test.'))) {
      const amount = Number(available);
      const text = `${resource} on node ${node}: ${available}`;
      if (amount > 0) assert.ok(fits(manager, node, { [resource]: amount }), text);
      const more = amount + (UNITS[resource] ?? 1);
      assert.ok(!fits(manager, node, { [resource]: more }), `${text} and one more`);
    }
  }
}

const availableOf = (object) =>
  object?.zones.map(({ resources }) => resources.find(({ name }) => name === 'cpu').available).join();

/** The stored object, once it says what the manager does now; plan is asked by assertPlanned. */
function current(manager) {
  const wanted = zonesOf(manager);
  return until(async () => {
    const object = await stored();
    return object && isDeepStrictEqual(object.zones, wanted) ? object : undefined;
  }, 'an object as the manager is');
}

const podOf = (i) => ({
  name: `pod-${i}`,
  containers: [{ name: 'main', limits: { cpu: 1 + (i % 3), memory: '1Gi' } }],
});

test('the object equals plan before and after 50 admissions, with the server killed in between', async () => {
  const manager = await machine();
  await publish(manager, await account());
  const first = await current(manager);
  assertPlanned(manager, first);
  assert.equal(first.metadata.ownerReferences[0].name, NODE);

  const uids = [];
  for (let i = 0; i < 25; i++) uids.push((await manager.admit(podOf(i))).uid);
  assertPlanned(manager, await current(manager));
  await server.killServer();
  for (let i = 25; i < 50; i++) uids.push((await manager.admit(podOf(i))).uid);
  await server.startServer();
  const begin = performance.now();
  const after = await current(manager);
  console.log(`published ${Math.round(performance.now() - begin)} ms after the server was ready again`);
  assertPlanned(manager, after);
  assert.notEqual(availableOf(after), availableOf(first));
  for (const uid of uids) await manager.release(uid);
  assert.equal(availableOf(await current(manager)), availableOf(first));
});

test('the fingerprint is that of the pods that run, and of one that is to have exclusive CPUs', async () => {
  const manager = await machine();
  await publish(manager, await account());
  const limits = { cpu: '2', memory: '1Gi' };
  const make = (name, resources) => {
    const containers = [{ name: 'main', image: 'busybox', resources }];
    const account = { serviceAccountName: 'numalign-node', automountServiceAccountToken: false };
    const spec = { nodeName: NODE, ...account, containers };
    return server.apply({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'numalign' }, spec });
  };
  const plain = await make('plain', {});
  await make('exclusive', { limits });
  const hasFingerprintOf = (names) =>
    until(
      async () => {
        const wanted = podFingerprint(names.map((name) => hashOfPod('numalign', name)));
        const found = (await stored())?.attributes.find(({ name }) => name === 'nodeTopologyPodsFingerprint');
        return found?.value === wanted;
      },
      `the fingerprint of ${names.join(' and ')}`,
    );
  await hasFingerprintOf(['exclusive']);
  await server.ask('PUT', '/api/v1/namespaces/numalign/pods/plain/status', {
    ...plain,
    status: { phase: 'Running' },
  });
  await hasFingerprintOf(['plain', 'exclusive']);
  for (const name of ['plain', 'exclusive'])
    await server.ask('DELETE', `/api/v1/namespaces/numalign/pods/${name}?gracePeriodSeconds=0`);
  await hasFingerprintOf([]);
});

test('a watcher sees each change, within 100 ms of its commit', async () => {
  const manager = await machine();
  await publish(manager, await account());
  await current(manager);
  const end = new AbortController();
  cleanups.push(() => end.abort());
  const seen = [];
  const watcher = clientOf(server.tokens.admin).watch(TOPOLOGIES, { name: NODE, signal: end.signal });
  const done = (async () => {
    for await (const event of watcher) {
      const object = event.type === 'LISTED' ? event.objects[0] : event.object;
      seen.push({ available: availableOf(object), at: performance.now() });
    }
  })();
  await until(() => seen.length === 1, 'the first list');
  const delays = [];
  for (let i = 0; i < 10; i++) {
    // Twice a second at most.
    await new Promise((resolve) => setTimeout(resolve, 550));
    await manager.admit(podOf(i));
    const committed = performance.now();
    const wanted = availableOf({ zones: zonesOf(manager) });
    await until(() => seen.at(-1).available === wanted, `a watcher sees ${wanted}`);
    delays.push(seen.at(-1).at - committed);
  }
  end.abort();
  await done;
  assert.equal(seen.length, 11);
  delays.sort((a, b) => a - b);
  console.log(`seen by a watcher after ${delays[5].toFixed(1)} ms (median), ${delays[9].toFixed(1)} (most)`);
  assert.ok(delays[5] < 100, delays.join());
});

test('a deleted object and a changed one are published again, and labels of others stay', async () => {
  const manager = await machine();
  await publish(manager, await account());
  await current(manager);
  const admin = clientOf(server.tokens.admin);
  await admin.delete(TOPOLOGIES, NODE);
  await current(manager);
  await admin.patch(TOPOLOGIES, NODE, { metadata: { labels: { by: 'others' } }, zones: [] });
  const object = await until(async () => {
    const found = await stored();
    return found.zones.length === 4 ? found : undefined;
  }, 'the zones again');
  assert.equal(object.metadata.labels.by, 'others');
  assertPlanned(manager, object);
});

test('a rotated token is used, and an expired one is an error until it is replaced', async () => {
  const manager = await machine();
  const tokenFile = join(folder, 'rotating');
  const token = await account();
  writeToken(server.endedToken(token), tokenFile);
  const lines = await publish(manager, '', { tokenFile });
  await until(() => lines.some(({ code }) => code === 'ERR_API_UNAUTHORIZED'), 'the error');
  writeToken(token, tokenFile);
  await current(manager);
  writeToken(await server.accountToken('numalign', 'numalign-node', 7200), tokenFile);
  await manager.admit(podOf(0));
  assertPlanned(manager, await current(manager));
});

test('an account without rights gets a literal error, and nothing is written', async () => {
  await clientOf(server.tokens.admin).delete(TOPOLOGIES, NODE);
  const manager = await machine();
  const lines = await publish(manager, server.tokens.powerless);
  const refusal = await until(
    () => lines.find(({ message }) => message.includes('cannot be published')),
    'the error',
  );
  assert.equal(refusal.code, 'ERR_API_FORBIDDEN');
  assert.equal(await stored(), undefined);
});

test('check reports the rights of an account, and what the cluster lacks', async () => {
  const check = async (token, nodeName) => {
    const findings = await checkNode({ publish: { apiServer: clientOf(token), nodeName } });
    return findings
      .filter(({ group }) => group === 'cluster')
      .map(({ status, check: name }) => `${status} ${name}`);
  };
  const good = ['ok api-server', 'ok definition', 'ok rights', 'ok node'];
  assert.deepEqual(await check(await account(), NODE), good);
  assert.deepEqual(await check(await account(), 'missing'), [...good.slice(0, 3), 'problem node']);
  const nothing = ['ok api-server', 'ok definition', 'problem rights', 'warning node'];
  assert.deepEqual(await check(server.tokens.powerless, NODE), nothing);
});

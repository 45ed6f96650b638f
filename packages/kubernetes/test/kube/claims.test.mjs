// Claims of pods at a real API server, by the service account of the examples. Run by node --test.
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { checkNode } from '../../dist/check/check-node.js';
import { ClaimStatuses } from '../../dist/dra/driver/claim-status.js';
import { ClaimsAtServer } from '../../dist/dra/driver/claims-at-server.js';
import { CdiFiles } from '../../dist/dra/preparation/cdi-files.js';
import { Preparation } from '../../dist/dra/preparation/preparation.js';
import { NO_METRICS } from '../../dist/metrics/metrics.js';
import { NO_POLICY } from '../../dist/placement/container-policy.js';
import { KubeApiServer } from './api-server.mjs';
import { CLAIMS, DRIVER, NODE, ResourceServer, until } from './resource-server.mjs';

let resources;
before(async () => {
  resources = await ResourceServer.open(KubeApiServer);
});
afterEach(() => resources.endTest());
after(() => resources?.close());

/** A claim as a scheduler has allocated it. */
async function allocate(name, results, { cpu = '1', parameters } = {}) {
  const opaque = { driver: DRIVER, parameters };
  const devices = {
    requests: [
      { name: 'cpus', exactly: { deviceClassName: 'node.numalign.io', capacity: { requests: { cpu } } } },
    ],
    ...(parameters && { config: [{ opaque }] }),
  };
  const object = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name, namespace: 'default' },
  };
  const made = await resources.server.apply({ ...object, spec: { devices } });
  const allocation = {
    devices: {
      results: results.map((result) => ({ request: 'cpus', driver: DRIVER, pool: NODE, ...result })),
      ...(parameters && { config: [{ source: 'FromClaim', opaque }] }),
    },
  };
  const reservedFor = [{ resource: 'pods', name: 'pod', uid: 'pod' }];
  const status = { allocation, reservedFor };
  const { status: code, object: answer } = await resources.server.ask('PUT', `${CLAIMS}/${name}/status`, {
    ...made,
    status,
  });
  assert.equal(code, 200, JSON.stringify(answer));
  return { namespace: 'default', name, uid: made.metadata.uid };
}

/** `beforePatch`: awaited before each status is written. */
async function driver(token, beforePatch = async () => {}) {
  const manager = await resources.machine();
  const apiServer = resources.clientOf(token);
  const claims = new ClaimsAtServer(apiServer);
  const lines = [];
  const log = (level, message) => lines.push(`${level} ${message}`);
  const patch = async (...call) => {
    await beforePatch();
    return apiServer.patch(...call);
  };
  const statuses = new ClaimStatuses({ driver: DRIVER, apiServer: { patch }, claims, log });
  const cdiFolder = mkdtempSync(join(resources.folder, 'cdi-'));
  const condition = { part: 'nri', isMet: true, isVital: true, text: '' };
  const preparation = new Preparation({
    ...{ manager, claims, log, driver: DRIVER, metrics: NO_METRICS, recordEvent: () => {} },
    ...{ policy: () => NO_POLICY, cdiFiles: new CdiFiles(cdiFolder, DRIVER) },
    containers: { userOf: () => undefined, condition },
    tellStatus: (claim, outcome) => statuses.tell(claim, outcome),
  });
  resources.atEnd(() => statuses.close());
  return { manager, preparation, lines, cdiFolder };
}

const devicesIn = async (name) =>
  (await resources.server.ask('GET', `${CLAIMS}/${name}`)).object.status.devices ?? [];
const readyIn = (name, status) =>
  until(async () => {
    const own = (await devicesIn(name)).find((each) => each.driver === DRIVER);
    return own?.conditions.find((each) => each.type === 'Ready' && each.status === status);
  }, `a claim whose condition is ${status}`);

test('a claim is read, prepared, and says so; a mixed one has what its spec asks for', async () => {
  const { manager, preparation } = await driver(await resources.account());
  const name = await allocate('mixed', [{ device: 'node-1', consumedCapacity: { cpu: '3' } }], {
    cpu: '2500m',
    parameters: { apiVersion: `${DRIVER}/v1alpha1`, kind: 'ClaimParameters', mixed: true },
  });
  await preparation.prepare(name);
  const [{ cpus, mixed }] = manager.grants();
  assert.deepEqual([cpus.size, mixed], [2, 0.5]);
  const { reason, message } = await readyIn('mixed', 'True');
  assert.deepEqual([reason, message], ['Prepared', `CPUs ${cpus}`]);
  await preparation.unprepare(name);
  assert.deepEqual(manager.grants(), []);
});

test('errors of a claim are in its status, beside what other drivers write at the same time', async () => {
  const gpu = { driver: 'gpu.example.com', pool: NODE, device: 'gpu-0' };
  let tries = 0;
  // Between what is read and what is written: the first try is a conflict.
  const { manager, preparation } = await driver(await resources.account(), async () => {
    if (++tries > 1) return;
    const { object } = await resources.server.ask('GET', `${CLAIMS}/wrong`);
    const written = { ...object, status: { ...object.status, devices: [gpu] } };
    const answer = await resources.server.ask('PUT', `${CLAIMS}/wrong/status`, written);
    assert.equal(answer.status, 200);
  });
  const name = await allocate(
    'wrong',
    [
      { device: 'node-0', consumedCapacity: { cpu: '1' } },
      { device: 'gpu-0', driver: 'gpu.example.com' },
    ],
    { parameters: { apiVersion: `${DRIVER}/v1alpha1`, kind: 'ClaimParameters', polcy: 'none' } },
  );
  await assert.rejects(preparation.prepare(name), { code: 'ERR_CLAIM_PARAMETERS' });
  const { reason, message } = await readyIn('wrong', 'False');
  assert.equal(reason, 'ERR_CLAIM_PARAMETERS');
  assert.match(message, /polcy.*did you mean "policy"/);
  assert.equal(tries, 2);
  assert.deepEqual(
    (await devicesIn('wrong')).map(({ device }) => device),
    ['gpu-0', 'node-0'],
  );
  assert.deepEqual(manager.grants(), []);
});

test('without the right to write it, a claim is prepared nevertheless', async () => {
  const metadata = { name: 'reader', namespace: 'numalign' };
  const rules = [{ apiGroups: ['resource.k8s.io'], resources: ['resourceclaims'], verbs: ['get'] }];
  const rbac = 'rbac.authorization.k8s.io';
  await resources.server.apply({ apiVersion: 'v1', kind: 'ServiceAccount', metadata });
  const role = { apiVersion: `${rbac}/v1`, kind: 'ClusterRole', metadata: { name: 'reader' } };
  await resources.server.apply({ ...role, rules });
  await resources.server.apply({
    ...{ ...role, kind: 'ClusterRoleBinding' },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'reader' },
    subjects: [{ kind: 'ServiceAccount', ...metadata }],
  });
  const { preparation, lines } = await driver(await resources.server.accountToken('numalign', 'reader'));
  const devices = [{ device: 'node-0', consumedCapacity: { cpu: '1' } }];
  for (const name of ['first', 'second']) await preparation.prepare(await allocate(name, devices));
  const told = (level) => lines.filter((line) => line.startsWith(`${level} the status of claim`));
  await until(() => told('debug').length === 1, 'the second refusal');
  assert.equal(told('warn').length, 1);
  assert.match(told('warn')[0], /forbidden|may not/);
});

test('what a claim has is given back once the server has it no more', async () => {
  const { manager, preparation, cdiFolder } = await driver(await resources.account());
  const devices = [{ device: 'node-0', consumedCapacity: { cpu: '2', memory: '1Gi' } }];
  for (const name of ['gone', 'kept']) await preparation.prepare(await allocate(name, devices));
  await resources.server.ask('DELETE', `${CLAIMS}/gone`);
  await preparation.sweep();
  assert.deepEqual(
    manager.grants().map(({ name }) => name),
    ['claim:default/kept/cpus'],
  );
  assert.equal(readdirSync(cdiFolder).length, 1);
  // A claim with its name is another one.
  await resources.server.ask('DELETE', `${CLAIMS}/kept`);
  const other = await allocate('kept', devices);
  await preparation.sweep();
  assert.deepEqual(manager.grants(), []);
  await preparation.prepare(other);
  await assert.rejects(preparation.prepare({ ...other, uid: 'earlier' }), { code: 'ERR_CLAIM_REPLACED' });
});

test('check reports the rights for claims, and may do no more than it asks for', async () => {
  const check = async (token) => {
    const findings = await checkNode({ claims: { apiServer: resources.clientOf(token), nodeName: NODE } });
    return findings.find((each) => each.check === 'rights');
  };
  const right = await check(await resources.account());
  assert.equal(right.status, 'ok', right.found);
  assert.equal((await check(resources.server.tokens.powerless)).status, 'problem');
  const own = resources.clientOf(await resources.account());
  await allocate('kept', [{ device: 'node-0', consumedCapacity: { cpu: '1' } }]);
  const claims = { group: 'resource.k8s.io', version: 'v1', plural: 'resourceclaims', namespace: 'default' };
  for (const call of [() => own.delete(claims, 'kept'), () => own.patch(claims, 'kept', { spec: {} })])
    await assert.rejects(call, { code: 'ERR_API_FORBIDDEN' });
});

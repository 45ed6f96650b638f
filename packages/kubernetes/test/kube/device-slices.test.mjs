// The ResourceSlices of a node at a real API server, by the service account of the examples. Run by
// node --test.
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { fallenGrants, nodeDevices } from '../../dist/dra/publish/node-devices.js';
import { slicesOf } from '../../dist/dra/publish/resource-slices.js';
import { SlicePublisher } from '../../dist/dra/publish/slice-publisher.js';
import { KubeApiServer } from './api-server.mjs';
import { DRIVER, NODE, ResourceServer, SLICES, until } from './resource-server.mjs';

let resources;
before(async () => {
  resources = await ResourceServer.open(KubeApiServer);
});
afterEach(() => resources.endTest());
after(() => resources?.close());

const devicesOf = (manager, unit) =>
  nodeDevices({
    ...{ manager, unit, placement: manager.placement, fallen: fallenGrants(), pcieRoots: [] },
    ...{ hasLists: false, flaw: undefined, isOfClaim: ({ uid }) => uid.startsWith('claim.') },
  });

/** `token`: of the account that publishes. */
async function publish(manager, token, unit = 'node') {
  const lines = [];
  const log = (level, message, fields = {}) => lines.push({ level, message, ...fields });
  const devices = () => devicesOf(manager, unit);
  const options = { manager, devices, log, driver: DRIVER, nodeName: NODE, leastMs: 0 };
  const publisher = new SlicePublisher({ ...options, apiServer: resources.clientOf(token) });
  resources.atEnd(() => publisher.close());
  await publisher.start();
  return { lines, publisher };
}

/** By name. */
const stored = async (nodeName = NODE) =>
  (await resources.server.ask('GET', SLICES)).object.items
    .filter(({ spec }) => spec.nodeName === nodeName)
    .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));

const essence = ({ pool: { generation: _, ...pool }, ...spec }) => JSON.stringify({ ...spec, pool });

/** The slices, once they are as the manager is now. */
function current(manager, unit = 'node') {
  const wanted = [...slicesOf(devicesOf(manager, unit), { driver: DRIVER, nodeName: NODE, version: 'v1' })];
  const specs = wanted.map(([, spec]) => JSON.parse(essence(spec)));
  return until(async () => {
    const slices = await stored();
    const found = slices.map(({ spec }) => JSON.parse(essence(spec)));
    const generations = new Set(slices.map(({ spec }) => spec.pool.generation));
    return isDeepStrictEqual(found, specs) && generations.size === 1 ? slices : undefined;
  }, 'slices as the manager is');
}

const pod = (i) => ({ containers: [{ name: 'main', limits: { cpu: 1 + (i % 3), memory: '1Gi' } }] });

for (const unit of ['node', 'core', 'cpu'])
  test(`the slices of devices ${unit} are kept whole, and follow admissions over a killed server`, async () => {
    const manager = await resources.machine();
    const { lines } = await publish(manager, await resources.account(), unit);
    const [first] = await current(manager, unit);
    assert.equal(first.metadata.ownerReferences[0].name, NODE);
    const uids = [];
    for (let i = 0; i < 5; i++) uids.push((await manager.admit(pod(i))).uid);
    await current(manager, unit);
    await resources.server.killServer();
    for (let i = 5; i < 10; i++) uids.push((await manager.admit(pod(i))).uid);
    await resources.server.startServer();
    await current(manager, unit);
    for (const uid of uids) await manager.release(uid);
    const [last] = await current(manager, unit);
    assert.ok(last.spec.pool.generation > first.spec.pool.generation);
    assert.deepEqual(
      lines.filter(({ message }) => message.includes('keeps less')),
      [],
    );
  });

test('slices that others delete, empty or add are put right, also while they write', async () => {
  const manager = await resources.machine();
  await publish(manager, await resources.account(), 'cpu');
  const slices = await current(manager, 'cpu');
  const [{ metadata }] = slices;
  await resources.server.ask('DELETE', `${SLICES}/${metadata.name}`);
  await until(async () => (await stored()).length === slices.length, 'the deleted one');
  await current(manager, 'cpu');
  const admin = resources.clientOf(resources.server.tokens.admin);
  const resource = { group: 'resource.k8s.io', version: 'v1', plural: 'resourceslices' };
  for (let i = 0; i < 10; i++) {
    const others = admin.patch(resource, metadata.name, { spec: { devices: [] } });
    const [{ uid }] = await Promise.all([manager.admit(pod(i)), others]);
    if (i % 2 === 0) await manager.release(uid);
  }
  await current(manager, 'cpu');
  const [{ spec }] = slices;
  const added = {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name: 'added' },
    spec,
  };
  await resources.server.apply(added);
  await current(manager, 'cpu');
  // Those of other nodes are not of this one.
  const other = { ...added, metadata: { name: 'other' }, spec: { ...spec, nodeName: 'worker-2' } };
  await resources.server.apply(other);
  await manager.admit(pod(0));
  await current(manager, 'cpu');
  assert.deepEqual(
    (await stored('worker-2')).map(({ metadata: { name } }) => name),
    ['other'],
  );
});

test('an account without rights gets a literal error, and nothing is written', async () => {
  const { lines } = await publish(await resources.machine(), resources.server.tokens.powerless);
  const refusal = await until(() => lines.find(({ message }) => /cannot be published/.test(message)), 'it');
  assert.equal(refusal.code, 'ERR_API_FORBIDDEN');
  assert.deepEqual(await stored(), []);
});

// needs: nothing
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet } from 'numalign';
import { expect, it } from 'vitest';
import { allocated, DRIVER, DraNode, nameOf } from './dra-node.js';

const GI = 1024 ** 3;

it('registers with the kubelet as a DRA plugin of both versions', async () => {
  const dra = await DraNode.open();
  const { info } = await dra.kubelet.register();
  expect(info).toEqual({
    ...{ type: 'DRAPlugin', name: DRIVER },
    endpoint: join(dra.kubelet.folder, 'plugins', DRIVER, 'dra.sock'),
    supported_versions: ['v1.DRAPlugin', 'v1beta1.DRAPlugin', 'v1alpha1.DRAResourceHealth'],
  });
  expect(dra.driver.condition).toMatchObject({ isMet: true });
});

it('grants what was allocated, and places the containers that use it', async () => {
  const dra = await DraNode.open();
  const claim = allocated('a', [{ device: 'node-1', capacity: { cpu: '2', memory: '1Gi' } }]);
  dra.claims.put(claim);
  const devices = await dra.plugin.prepare(nameOf(claim));
  expect(devices).toMatchObject([
    {
      ...{ request_names: ['cpus'], pool_name: 'node', device_name: 'node-1' },
      cdi_device_ids: [`${DRIVER}/claim=a-uid-0`],
    },
  ]);
  const [grant] = dra.node.manager.grants();
  expect(grant).toMatchObject({ uid: 'claim.a-uid.0', name: 'claim:default/a/cpus' });
  expect(grant).toMatchObject({ owner: { kind: 'persistent' }, memory: [{ nodes: [1], bytes: GI }] });
  expect(grant!.cpus.isSubsetOf(CpuSet.parse('4-7'))).toBe(true);

  const env = dra.environment(devices);
  for (const name of ['one', 'two']) {
    const { pod, container } = dra.container('pod', name, env);
    const { adjust } = await dra.handlers.createContainer(pod, container);
    expect(adjust.linux!.resources!.cpu).toMatchObject({ cpus: `${grant!.cpus}`, mems: '1' });
    expect(adjust.env).toContainEqual({ key: 'NUMALIGN_CPUS', value: `${grant!.cpus}` });
    expect(adjust.env).toContainEqual({ key: 'NUMALIGN_GRANT', value: 'claim.a-uid.0' });
    await dra.handlers.stopContainer(pod, container);
    await dra.handlers.removeContainer(pod, container);
  }
  expect(dra.node.manager.grants()).toHaveLength(1);
  await dra.plugin.unprepare(nameOf(claim));
  expect(dra.node.manager.grants()).toEqual([]);
  expect(readdirSync(dra.cdiFolder)).toEqual([]);
});

it('writes a CDI file that says what the claim is, and nothing else', async () => {
  const dra = await DraNode.open();
  const claim = allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }]);
  dra.claims.put(claim);
  await dra.plugin.prepare(nameOf(claim));
  const text = readFileSync(join(dra.cdiFolder, `${DRIVER}-claim_a-uid.json`), 'utf8');
  expect(JSON.parse(text)).toEqual({
    ...{ cdiVersion: '0.6.0', kind: `${DRIVER}/claim` },
    annotations: { [`${DRIVER}/claim`]: expect.stringContaining('"pods":["pod"]') },
    devices: [{ name: 'a-uid-0', containerEdits: { env: ['NUMALIGN_CLAIM_AUID_0=claim.a-uid.0'] } }],
  });
});

it('answers repeated calls alike, also after a restart', async () => {
  const dra = await DraNode.open();
  const claim = allocated('a', [{ device: 'node-0', capacity: { cpu: '2' } }]);
  dra.claims.put(claim);
  const devices = await dra.plugin.prepare(nameOf(claim));
  const before = dra.node.manager.grants();
  expect(await dra.plugin.prepare(nameOf(claim))).toEqual(devices);
  await dra.restart();
  expect(await dra.plugin.prepare(nameOf(claim))).toEqual(devices);
  expect(dra.node.manager.grants()).toEqual(before);
  await dra.plugin.unprepare(nameOf(claim));
  await dra.plugin.unprepare(nameOf(claim));
  await dra.plugin.unprepare({ namespace: 'default', name: 'never', uid: 'never-uid' });
  expect(dra.node.manager.grants()).toEqual([]);
});

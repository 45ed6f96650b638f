// needs: folders
// What a claim asks of its grant by its parameters.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CpuSet } from 'numalign';
import { expect, it, onTestFinished } from 'vitest';
import { allocated, configured, DraNode, nameOf } from './dra-node.js';

const UID = 'claim.a-uid.0';

/** A claim that asks for `cpu` CPUs, of which the scheduler counts `consumed`. */
const mixed = (cpu: string, consumed: string, more: object = {}) =>
  allocated('a', [{ device: 'node-0', capacity: { cpu: consumed } }], {
    requests: [{ name: 'cpus', exactly: { capacity: { requests: { cpu } } } }],
    config: [configured({ mixed: true, ...more })],
  });

async function prepared(dra: DraNode, claim: ReturnType<typeof allocated>) {
  dra.claims.put(claim);
  return dra.plugin.prepare(nameOf(claim));
}

it('gives a mixed claim the whole CPUs, and books the rest in the shared pool', async () => {
  const dra = await DraNode.open();
  const devices = await prepared(dra, mixed('2500m', '3'));
  const { cpus, mixed: booked, container: _ } = { container: 0, ...dra.node.manager.grantInfo(UID) };
  expect([cpus.size, booked]).toEqual([2, 0.5]);
  const { pod, container } = dra.container('pod', 'main', dra.environment(devices));
  const { adjust } = await dra.handlers.createContainer(pod, container);
  expect(adjust.linux!.resources!.cpu!.cpus).toBe(`${cpus}`);
  // Again, as after a restart of the kubelet.
  await dra.restart();
  await prepared(dra, mixed('2500m', '3'));
  expect(dra.node.manager.grantInfo(UID)).toMatchObject({ mixed: 0.5 });
});

it('gives a mixed claim the CPUs that the scheduler counts where it asks for whole ones, or none', async () => {
  const dra = await DraNode.open({ reservedSystemCPUs: '0' }, 'numa:2(memory=8GB) core:4 pu:2');
  const whole = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
  const claims = { '2': mixed('2', '2', whole), '4500m': mixed('4500m', '6', whole) };
  for (const [asked, claim] of Object.entries(claims)) {
    await prepared(dra, claim);
    const { cpus, mixed: booked } = dra.node.manager.grantInfo(UID);
    expect(cpus.size + booked).toBe(asked === '2' ? 2 : 4.5);
    await dra.plugin.unprepare(nameOf(claim));
  }
  const silent = allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }], {
    config: [configured({ mixed: true })],
  });
  await prepared(dra, silent);
  expect(dra.node.manager.grantInfo(UID)).toMatchObject({ mixed: 0 });
});

it.each(['the claim', 'the manager'])(
  'prepares a mixed claim whose whole CPUs are no whole cores, which %s wants',
  async (where) => {
    const whole = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
    const isOfClaim = where === 'the claim';
    const options = { reservedSystemCPUs: '0-1', ...(!isOfClaim && whole) };
    const dra = await DraNode.open(options, 'numa:2(memory=8GB) core:4 pu:2');
    const memory = { request: 'memory', device: 'memory-0', capacity: { memory: '1Gi' } };
    const cpus = { device: 'node-0', capacity: { cpu: '4' } };
    const claim = allocated('a', [cpus, memory], {
      requests: [{ name: 'cpus', exactly: { capacity: { requests: { cpu: '3500m' } } } }],
      config: [configured({ mixed: true, ...(isOfClaim && whole) })],
    });
    await prepared(dra, claim);
    expect(dra.node.manager.grantInfo(UID)).toMatchObject({ cpus: CpuSet.parse('2-5'), mixed: 0 });
    expect(dra.node.manager.grantInfo('claim.a-uid.1').memory).toMatchObject([{ bytes: 2 ** 30 }]);
    // Again, as after a restart of the kubelet.
    await dra.restart();
    await prepared(dra, claim);
  },
);

it('refuses a mixed claim without a whole CPU', async () => {
  const dra = await DraNode.open();
  await expect(prepared(dra, mixed('500m', '1'))).rejects.toThrow(/^ERR_CLAIM_PARAMETERS: .*500m/);
  expect(dra.node.manager.grants()).toEqual([]);
});

it.each(['in memory', 'on disk'])(
  'moves a movable claim within the NUMA node of its device, with its container, on a record %s',
  async (where) => {
    const stateDir = where === 'on disk' ? mkdtempSync(join(tmpdir(), 'numalign-dra-state-')) : undefined;
    if (stateDir) onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }));
    const dra = await DraNode.open(
      { reservedSystemCPUs: '', cpuManagerPolicy: 'dynamic', ...(stateDir && { stateDir }) },
      'numa:2(memory=8GB) core:2 pu:2',
    );
    const { manager } = dra.node;
    const one = (uid: string, cpu: string) =>
      manager.adopt({ uid, containers: [{ name: 'main', cpus: cpu }] }, { owner: 'persistent' });
    // Of each core of node 0 one thread is taken.
    await one('other', '0');
    await one('full', '4-5');
    await one('later', '1');
    const claim = allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }], {
      config: [configured({ movable: { maxPerHour: 4 } })],
    });
    const devices = await prepared(dra, claim);
    await manager.release('later');
    expect(`${manager.grantInfo(UID).cpus}`).toBe('2');
    const { pod, container, cgroupsPath } = dra.container('pod', 'main', dra.environment(devices));
    await dra.handlers.createContainer(pod, container);
    dra.node.makeCgroup(cgroupsPath, '2', [1]);
    await dra.handlers.startContainer(pod, container);
    const core = await manager.admit(
      { uid: 'core', qosClass: 'Guaranteed', containers: [{ name: 'main', limits: { cpu: 2 } }] },
      { owner: 'persistent', within: '0-3', cpuManagerPolicyOptions: { 'full-pcpus-only': true } },
    );
    expect(`${core.containers[0]!.cpus}`).toBe('2-3');
    expect(`${manager.grantInfo(UID).cpus}`).toBe('1');
    // Before the other request has its CPUs, not some time after.
    expect(dra.node.cpusOf(cgroupsPath)).toBe('1');
    // What the kubelet asks again finds it where it is now.
    await prepared(dra, claim);
    expect(`${manager.grantInfo(UID).cpus}`).toBe('1');
  },
);

it('leaves a claim that does not consent where it is', async () => {
  const dra = await DraNode.open(
    { reservedSystemCPUs: '', cpuManagerPolicy: 'dynamic' },
    'numa:2(memory=8GB) core:2 pu:2',
  );
  const { manager } = dra.node;
  await manager.adopt(
    { uid: 'full', containers: [{ name: 'main', cpus: '0,4-5' }] },
    { owner: 'persistent' },
  );
  await prepared(dra, allocated('a', [{ device: 'cpu-2' }]));
  const core = manager.admit(
    { uid: 'core', qosClass: 'Guaranteed', containers: [{ name: 'main', limits: { cpu: 2 } }] },
    { owner: 'persistent', within: '0-3', cpuManagerPolicyOptions: { 'full-pcpus-only': true } },
  );
  await expect(core).rejects.toMatchObject({ code: expect.stringMatching(/^ERR_/) });
  expect(`${manager.grantInfo(UID).cpus}`).toBe('2');
});

// needs: nothing
import { CpuSet } from 'numalign';
import { expect, it } from 'vitest';
import type { KubernetesObject } from '../../lib/api-server/resource.js';
import { ContainerState } from '../../lib/nri/messages.js';
import { cpusByContainer, simulatedNode } from '../support/simulated-node.js';
import { allocated, configured, DraNode, environmentOf, nameOf } from './dra-node.js';

const GI = 2 ** 30;

async function prepared(dra: DraNode, ...claims: readonly KubernetesObject[]) {
  dra.claims.put(...claims);
  const all = [];
  for (const claim of claims) all.push(await dra.plugin.prepare(nameOf(claim)));
  return all.flat();
}

const grantsOf = (dra: DraNode) =>
  Object.fromEntries(dra.node.manager.grants().map(({ uid, cpus }) => [uid, `${cpus}`]));

it('gives a Guaranteed container its CPUs once: those of the claim, with a warning', async () => {
  const dra = await DraNode.open();
  const devices = await prepared(dra, allocated('a', [{ device: 'node-1', capacity: { cpu: '2' } }]));
  const { pod, container } = dra.container('pod', 'main', dra.environment(devices), {
    cpus: 1,
    memory: GI,
  });
  const { adjust } = await dra.handlers.createContainer(pod, container);
  expect(adjust.linux!.resources!.cpu!.cpus).toBe(grantsOf(dra)['claim.a-uid.0']);
  expect(dra.node.manager.grants()).toHaveLength(1);
  expect(dra.node.events).toMatchObject([{ type: 'Warning', reason: 'CPUsOfClaim', about: { uid: 'pod' } }]);
});

it('places containers by the requests of the claim that they name', async () => {
  const dra = await DraNode.open();
  const devices = await prepared(
    dra,
    allocated('a', [
      { request: 'fast', device: 'cpu-6' },
      { request: 'fast', device: 'cpu-5' },
      { request: 'slow', device: 'node-0', capacity: { cpu: '1', memory: '1Gi' } },
    ]),
  );
  const placeOf = async (name: string, request?: string) => {
    const { pod, container } = dra.container('pod', name, dra.environment(devices, request));
    const { adjust } = await dra.handlers.createContainer(pod, container);
    return adjust.linux!.resources!.cpu!;
  };
  const { 'claim.a-uid.0': slow } = grantsOf(dra);
  expect(await placeOf('one', 'fast')).toEqual({ cpus: '5-6' });
  expect(await placeOf('two', 'slow')).toEqual({ cpus: slow, mems: '0' });
  expect(await placeOf('three')).toEqual({
    cpus: `${CpuSet.parse(slow!).union(CpuSet.parse('5-6'))}`,
    mems: '0',
  });
});

it('grants just the CPUs that the scheduler has named, or nothing, and says so to the pod', async () => {
  const dra = await DraNode.open();
  const outside = await dra.node.manager.adopt({ containers: [{ name: 'main', cpus: '6' }] });
  const claim = allocated('a', [{ device: 'cpu-5' }, { device: 'cpu-6' }]);
  await expect(prepared(dra, claim)).rejects.toThrow(/^ERR_INSUFFICIENT_CPUS: /);
  expect(dra.node.manager.grants().map(({ uid }) => uid)).toEqual([outside.uid]);
  expect(dra.events).toMatchObject([
    {
      about: { kind: 'Pod', namespace: 'default', name: 'pod', uid: 'pod' },
      ...{
        type: 'Warning',
        reason: 'ClaimRefused',
        message: expect.stringMatching(/^claim a is not prepared: /),
      },
    },
  ]);
  await outside.release();
  await prepared(dra, claim);
  expect(grantsOf(dra)).toEqual({ 'claim.a-uid.0': '5-6' });
});

it('grants all parts of a claim or none', async () => {
  const dra = await DraNode.open();
  const claim = allocated('a', [
    { request: 'a', device: 'node-0', capacity: { cpu: '1' } },
    { request: 'b', device: 'node-1', capacity: { cpu: '5' } },
  ]);
  await expect(prepared(dra, claim)).rejects.toThrow(/ERR_/);
  expect(grantsOf(dra)).toEqual({});
});

it('books memory where the scheduler has chosen it, with CPUs or alone', async () => {
  const dra = await DraNode.open();
  const [first] = await prepared(
    dra,
    allocated('a', [{ device: 'node-1', capacity: { memory: '6Gi' } }], { pods: ['one', 'two'] }),
  );
  expect(dra.node.manager.grants()[0]!.memory).toMatchObject([{ nodes: [1], bytes: 6 * GI }]);
  const large = allocated('b', [{ device: 'node-1', capacity: { cpu: '1', memory: '4Gi' } }]);
  await expect(prepared(dra, large)).rejects.toThrow(/ERR_(TOPOLOGY_AFFINITY|INSUFFICIENT_MEMORY)/);
  const env = dra.environment([first!]);
  for (const podName of ['one', 'two']) {
    const { pod, container } = dra.container(podName, 'main', env);
    const { adjust } = await dra.handlers.createContainer(pod, container);
    expect(adjust.linux!.resources!.cpu).toEqual({ cpus: '0-7', mems: '1' });
  }
  const { pod, container } = dra.container('one', 'other', env, { cpus: 1, memory: GI });
  await expect(dra.handlers.createContainer(pod, container)).rejects.toMatchObject({
    code: 'ERR_CLAIM_WITHOUT_CPUS',
  });
});

it('refuses CPUs for several pods, at once or later', async () => {
  const dra = await DraNode.open();
  const capacity = { cpu: '1' };
  const both = allocated('both', [{ device: 'node-0', capacity }], { pods: ['one', 'two'] });
  await expect(prepared(dra, both)).rejects.toThrow(/^ERR_CLAIM_SHARED: .*one, two/);
  const none = allocated('none', [{ device: 'node-0', capacity }], { pods: [] });
  await expect(prepared(dra, none)).rejects.toThrow(/^ERR_CLAIM_NOT_ALLOCATED: .*reserved for no pod/);
  const devices = await prepared(dra, allocated('one', [{ device: 'node-0', capacity }], { pods: ['one'] }));
  const { pod, container } = dra.container('two', 'main', dra.environment(devices));
  await expect(dra.handlers.createContainer(pod, container)).rejects.toMatchObject({
    code: 'ERR_CLAIM_SHARED',
  });
});

it('refuses a container that names a claim by itself', async () => {
  const dra = await DraNode.open();
  const refused = async (...env: string[]) => {
    const { pod, container } = dra.container('pod', 'main', env);
    return dra.handlers.createContainer(pod, container).then(
      () => undefined,
      ({ code }) => code,
    );
  };
  expect(await refused('NUMALIGN_CLAIM_X=claim.x.0')).toBe('ERR_CLAIM_UNKNOWN');
  expect(await refused('NUMALIGN_CLAIM_X=../x')).toBe('ERR_CLAIM_ENVIRONMENT');
  const devices = await prepared(dra, allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }]));
  await dra.node.manager.release('claim.a-uid.0');
  expect(await refused(...dra.environment(devices))).toBe('ERR_CLAIM_UNKNOWN');
});

it('leaves a container in the shared pool that has named a claim while numalign was away', async () => {
  const dra = await DraNode.open();
  const devices = await prepared(dra, allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }]));
  const env = dra.environment(devices);
  const [own, stranger] = ['pod', 'other'].map((name) => dra.container(name, 'main', env));
  const updates = await dra.handlers.synchronize(
    [own!.pod, stranger!.pod],
    [own!, stranger!].map(({ container }) => ({ ...container, state: ContainerState.RUNNING })),
  );
  const cpus = cpusByContainer(updates);
  expect(cpus[own!.container.id]).toBe(grantsOf(dra)['claim.a-uid.0']);
  expect(cpus[stranger!.container.id]).toBe(`${dra.node.manager.sharedPool()}`);
});

it('replaces what it had for another allocation of the claim, unless a container has it', async () => {
  const dra = await DraNode.open();
  const first = allocated('a', [
    { request: 'a', device: 'node-0', capacity: { cpu: '2' } },
    { request: 'b', device: 'node-0', capacity: { cpu: '1' } },
  ]);
  await prepared(dra, first);
  const second = allocated('a', [{ request: 'a', device: 'node-1', capacity: { cpu: '3' } }]);
  await prepared(dra, second);
  const { 'claim.a-uid.0': cpus, ...others } = grantsOf(dra);
  expect([CpuSet.parse(cpus!).isSubsetOf(CpuSet.parse('4-7')), others]).toEqual([true, {}]);
  const env = environmentOf(dra.cdiFolder, ['claim.a-uid.0']);
  const { pod, container, cgroupsPath } = dra.container('pod', 'main', env);
  await dra.handlers.createContainer(pod, container);
  dra.node.makeCgroup(cgroupsPath, cpus!, [1]);
  await expect(prepared(dra, first)).rejects.toThrow(/^ERR_CLAIM_IN_USE: numalign:default\/pod\/main/);
  expect(grantsOf(dra)).toEqual({ 'claim.a-uid.0': cpus });
  await expect(dra.plugin.unprepare(nameOf(first))).rejects.toThrow(/ERR_CLAIM_IN_USE/);
  dra.node.endCgroup(cgroupsPath);
  await dra.plugin.unprepare(nameOf(first));
});

it('keeps a prepared claim if it is prepared again while nothing can be read', async () => {
  const dra = await DraNode.open();
  const claim = allocated('a', [{ device: 'node-0', capacity: { cpu: '1' } }]);
  await prepared(dra, claim);
  const before = grantsOf(dra);
  dra.claims.versions = [];
  await expect(dra.plugin.prepare(nameOf(claim))).rejects.toThrow(/ERR_API_NOT_FOUND/);
  expect(grantsOf(dra)).toEqual(before);
  expect(dra.driver.findClaim('a-uid')).toBeDefined();
});

it('follows the parameters of the claim', async () => {
  const dra = await DraNode.open({}, 'numa:2(memory=8GB) core:4 pu:2');
  const whole = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
  const claim = (cpu: string) =>
    allocated('a', [{ device: 'node-1', capacity: { cpu } }], { config: [configured(whole)] });
  await expect(prepared(dra, claim('3'))).rejects.toThrow(/^ERR_SMT_ALIGNMENT: /);
  await prepared(dra, claim('2'));
  const { cores } = dra.node.manager.topology;
  const { 'claim.a-uid.0': cpus } = grantsOf(dra);
  expect(cores.map((core) => `${core.cpus}`)).toContain(cpus);
});

it('is placed by itself in a pod with claims, also where whole pods are placed', async () => {
  const resources = { limits: { cpu: '1', memory: '1Gi' } };
  const containers = ['main', 'other'].map((name) => ({ name, resources }));
  const manifest = { metadata: { uid: 'pod' }, spec: { resourceClaims: [{ name: 'cpus' }], containers } };
  const node = await simulatedNode(
    { reservedSystemCPUs: '0' },
    undefined,
    undefined,
    async () => manifest as never,
    undefined,
    () => undefined,
  );
  const dra = await DraNode.open();
  const { pod, container } = dra.container('pod', 'main', [], { cpus: 1, memory: GI });
  await node.handlers.createContainer(pod, container);
  expect(node.manager.grants().map(({ uid }) => uid)).toEqual(['pod.main']);
});

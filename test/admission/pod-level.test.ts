// needs: nothing
// Pods with pod-level resources, as callers see them.
import { describe, expect, it } from 'vitest';
import { findPod } from '../../lib/account/assignments.js';
import { resize } from '../../lib/admission/grants/resize.js';
import { type ContainerSpec, type ManagerOptions, openManager } from '../../lib/index.js';
import { parseConfig } from '../../lib/input/config.js';
import type { ResourceAmounts } from '../../lib/input/pods/resource-amounts.js';
import { Ledger } from '../../lib/state/ledger.js';
import { errorOf, thrownBy } from '../support/error-of.js';
import { GI, MI } from '../support/memory-machine.js';
import { guaranteed, simulate } from '../support/simulated.js';

const MANAGED: ManagerOptions = {
  kubeletVersion: 'v1.36',
  featureGates: { PodLevelResourceManagers: true },
  scope: 'pod',
  policy: 'restricted',
  reservedSystemCPUs: '0-1',
};
const newManager = (options: ManagerOptions = {}) =>
  simulate('package:2 numa:1(memory=8GiB) core:4 pu:2', { ...MANAGED, ...options });

const whole = (
  limits: ResourceAmounts,
  containers: ContainerSpec[],
  initContainers: ContainerSpec[] = [],
) => ({
  uid: 'web',
  resources: { requests: limits, limits },
  initContainers,
  containers,
});
const OWN = guaranteed('own', { cpu: 2, memory: '512Mi' });
const SHARED = { name: 'shared' };
const LIMITS = { cpu: 4, memory: '2Gi' };

describe('a pod with pod-level resources', () => {
  it('has them booked once, for its exclusive containers and a shared pool of its own', async () => {
    const manager = await newManager();
    const pod = await manager.admit(whole(LIMITS, [OWN, SHARED]), { owner: 'persistent' });
    expect(JSON.parse(JSON.stringify(pod))).toMatchObject({
      booking: { cpus: '2-5', held: '', memory: [{ nodes: [0], type: 'memory', bytes: 2 * GI }] },
      containers: [
        { name: 'own', isolation: 'container', cpus: '2-3', memory: [{ bytes: 512 * MI }] },
        { name: 'shared', isolation: 'pod', cpus: '4-5', memory: [{ bytes: 1536 * MI }] },
      ],
    });
    expect(String(manager.sharedPool())).toBe('0-1,6-15');
    expect(manager.memory()[0]!.free).toBe(6 * GI);
    expect(manager.grants()).toMatchObject([
      { memory: [{ bytes: 2 * GI }], booking: { held: expect.anything() } },
    ]);
    expect(manager.status().grants[0]).toMatchObject({
      containers: [{ isolation: 'container' }, { isolation: 'pod' }],
    });
    await pod.release();
    expect(String(manager.sharedPool())).toBe('0-15');
    expect(manager.memory()[0]!.free).toBe(8 * GI);
  });

  it('runs init containers on all CPUs that the sidecars before them leave', async () => {
    const manager = await newManager();
    const sidecar = { ...guaranteed('car', { cpu: 1, memory: '256Mi' }), restartPolicy: 'Always' };
    const first = guaranteed('first', { cpu: 4, memory: '1Gi' });
    const spec = whole({ cpu: 6, memory: '2Gi' }, [OWN, SHARED], [first, sidecar, { name: 'setup' }]);
    const { containers } = await manager.admit(spec, { owner: 'persistent' });
    expect(containers.map(({ name, cpus, isolation }) => `${name} ${cpus} ${isolation}`)).toEqual([
      'first 2-5 container',
      'car 2 container',
      'setup 3-7 pod',
      'own 4-5 container',
      'shared 3,6-7 pod',
    ]);
    expect(containers.map(({ memory }) => memory[0]!.bytes / MI)).toEqual([1024, 256, 1792, 512, 1280]);
    const pod = manager.pod('web');
    await pod.markStarted('shared');
    // An ended container has none, and the pod keeps all.
    expect(pod.containers.map(({ memory }) => memory.length)).toEqual([0, 1, 0, 1, 1]);
    expect(manager.memory()[0]!.free).toBe(6 * GI);
  });

  it('has its memory booked, and no exclusive CPU, if its CPUs are no whole number', async () => {
    const manager = await newManager();
    const spec = whole({ cpu: '4500m', memory: '2Gi' }, [OWN, SHARED]);
    const pod = await manager.admit(spec, { owner: 'persistent' });
    expect(pod.containers.map(({ cpus, isolation }) => [cpus, isolation])).toEqual([
      [null, 'host'],
      [null, 'host'],
    ]);
    expect(pod.booking).toMatchObject({ memory: [{ bytes: 2 * GI }] });
    expect(manager.whyShared(spec)).toEqual([
      'the pod as a whole: 4500m is not a whole number of CPUs',
      'the pod as a whole: 4500m is not a whole number of CPUs',
    ]);
  });

  it.each([
    ['best-effort', 'EmptyPodSharedPoolError'],
    ['restricted', 'TopologyAffinityError'],
    ['single-numa-node', 'TopologyAffinityError'],
  ] as const)('is rejected under %s where nothing is left to share: %s', async (policy, reason) => {
    const manager = await newManager({ policy });
    const before = [manager.memory(), String(manager.sharedPool())];
    for (const [limits, resource] of [
      [{ cpu: 2, memory: '2Gi' }, 'cpu'],
      [{ cpu: 4, memory: '512Mi' }, 'memory'],
    ] as const) {
      const error = await errorOf(() => manager.admit(whole(limits, [OWN, SHARED]), { owner: 'persistent' }));
      expect(error).toMatchObject({
        code: 'ERR_POD_POOL_EMPTY',
        isShortage: false,
        details: { reason, resource },
      });
      expect(error.message).toContain('container shared');
    }
    expect([manager.memory(), String(manager.sharedPool())]).toEqual(before);
  });

  it('is rejected if exclusive containers request more than it has', async () => {
    const manager = await newManager();
    const spec = whole(LIMITS, [OWN, guaranteed('wide', { cpu: 3, memory: '1Gi' })]);
    expect(await errorOf(() => manager.admit(spec, { owner: 'persistent' }))).toMatchObject({
      code: 'ERR_POD_POOL_EMPTY',
      message: expect.stringContaining('too little is left to container wide'),
    });
  });

  it('leaves a CPU to the pool of the machine', async () => {
    const manager = await newManager({ strictCPUReservation: true, managedCPUs: '0-5' });
    const error = await errorOf(() => manager.admit(whole(LIMITS, [SHARED]), { owner: 'persistent' }));
    expect(error.code).toBe('ERR_INSUFFICIENT_CPUS');
  });

  it('holds the siblings of all its CPUs on request', async () => {
    const manager = await newManager();
    const pod = await manager.admit(whole({ cpu: 3, memory: '2Gi' }, [OWN, SHARED]), {
      owner: 'persistent',
      smt: 'hold-sibling',
    });
    expect([pod.booking!.cpus, pod.booking!.held].map(String)).toEqual(['2,4,6', '3,5,7']);
    expect(pod.containers.map(({ cpus, held }) => [cpus, held].map(String))).toEqual([
      ['2,4', '3,5'],
      ['6', '7'],
    ]);
  });

  it('is planned like it is admitted', async () => {
    const manager = await newManager();
    const spec = whole(LIMITS, [OWN, SHARED]);
    const { containers } = manager.plan(spec);
    expect((await manager.admit(spec, { owner: 'persistent' })).containers).toEqual(containers);
  });

  it('has its exclusive containers placed one by one under scope container, and the others in the machine’s pool', async () => {
    const manager = await newManager({ scope: 'container' });
    const spec = whole(LIMITS, [OWN, SHARED]);
    const pod = await manager.admit(spec, { owner: 'persistent' });
    expect(pod.booking).toBeNull();
    expect(String(manager.sharedPool())).toBe('0-1,4-15');
    expect(manager.whyShared(spec)).toEqual([
      null,
      'container shared: its requests of cpu and memory are not its limits, and it shares',
    ]);
  });

  it('is passed to hint providers as a whole, and by container if it is dealt out', async () => {
    const manager = await newManager();
    const asked: [string, string | null, object][] = [];
    manager.addHintProvider({
      name: 'test',
      hints({ container, requests }) {
        asked.push(['hints', container, requests]);
        return null;
      },
      allocate({ container, requests }) {
        asked.push(['allocate', container, requests]);
      },
      release() {},
    });
    await manager.admit(whole(LIMITS, [OWN, SHARED]), { owner: 'persistent' });
    expect(asked).toEqual([
      ['hints', null, { cpu: 4000, memory: 2 * GI }],
      ['allocate', 'own', { cpu: 2000, memory: 512 * MI }],
      ['allocate', 'shared', {}],
    ]);
  });

  it.each([
    ['under the gate', MANAGED],
    ['one container at a time', { ...MANAGED, scope: 'container' }],
    ['without the gate', { ...MANAGED, featureGates: { PodLevelResourceManagers: false } }],
  ] as const)(
    'is recognized by its amounts, even after the state is opened again: %s',
    async (_, options) => {
      const manager = await newManager(options);
      const spec = whole(LIMITS, [OWN, SHARED]);
      const { booking } = await manager.admit(spec, { owner: 'persistent' });
      const { stateDir } = manager;
      await manager.close();
      const later = await openManager({ topology: manager.topology, stateDir });
      const again = await later.admit(spec, { owner: 'persistent' });
      expect([again.alreadyAdmitted, String(again.booking?.cpus)]).toEqual([true, String(booking?.cpus)]);
      const { resources, ...plain } = spec;
      for (const other of [
        { ...spec, resources: { requests: { cpu: 5, memory: '2Gi' }, limits: { cpu: 5, memory: '2Gi' } } },
        { ...spec, resources: { requests: LIMITS, limits: { cpu: 4, memory: '3Gi' } } },
        plain,
      ]) {
        const error = await errorOf(() => later.admit(other, { owner: 'persistent' }));
        expect(error).toMatchObject({ code: 'ERR_POD_CONFLICT', details: { valid: expect.anything() } });
        expect(thrownBy(() => later.plan(other))).toMatchObject({ code: 'ERR_POD_CONFLICT' });
      }
      await later.close();
    },
  );

  it.each(['pod', 'container'] as const)('cannot be resized in scope %s', async (scope) => {
    const manager = await newManager({ scope });
    await manager.admit(whole(LIMITS, [OWN]), { owner: 'persistent' });
    const pod = findPod(Ledger.open(manager.stateDir).read()!.assignments, 'web')!;
    const { placement: defaults } = parseConfig({});
    const error = await errorOf(() =>
      resize({ host: {}, grant: pod, request: {}, defaults, followers: {} } as never),
    );
    expect(error).toMatchObject({
      code: 'ERR_INVALID_ARGUMENT',
      message: expect.stringContaining('has resources as a whole'),
      details: { value: 'web' },
    });
  });
});

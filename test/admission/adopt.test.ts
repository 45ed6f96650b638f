// needs: nothing
// CPUs and devices that a pod has already, put on record where they are.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { EnforcementRequest } from '../../lib/account/levels.js';
import { aimOfAdoption } from '../../lib/adoption/adopt.js';
import type { DiagnosticsMessages } from '../../lib/entries/diagnostics.js';
import type { AdoptedPod } from '../../lib/entries/kubelet.js';
import { discover } from '../../lib/entries/topology.js';
import { AdmissionError, CpuSet, type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { GI, MI, machineOf } from '../support/memory-machine.js';
import { guaranteed } from '../support/simulated.js';

const machine = () =>
  machineOf([
    { cpus: 8, memory: 8 * GI, hugepages: { 2048: 64 } },
    { cpus: 8, memory: 8 * GI, hugepages: { 2048: 64 } },
  ]);

async function open(options: ManagerOptions = {}): Promise<Manager> {
  const manager = await openManager({ topology: await machine(), ...options });
  onTestFinished(() => manager.close());
  return manager;
}

const FULL = {
  uid: 'p',
  name: 'job',
  initContainers: [{ name: 'proxy', restartPolicy: 'Always', cpus: '12' }],
  containers: [
    {
      name: 'main',
      cpus: CpuSet.parse('4-7'),
      limits: { cpu: 4, memory: '1Gi' },
      memory: [
        { nodes: [0, 1], type: 'memory', bytes: 9 * GI },
        { nodes: [0, 1], type: 'hugepages-2Mi', bytes: 4 * MI },
      ],
      devices: { 'example.com/nic': ['eth1'] },
    },
    { name: 'log' },
  ],
} satisfies AdoptedPod;

const onNode = (manager: Manager, node: number, type: string) =>
  manager.memory().find((each) => each.node === node && each.type === type)!;

describe('an adopted pod', () => {
  it('has its given resources on record, by containers, and is persistent', async () => {
    const manager = await open();
    manager.registerDevices('example.com/nic', [{ id: 'eth0' }, { id: 'eth1', numaNodes: [1] }]);
    const pod = await manager.adopt(FULL);
    expect(pod).toMatchObject({
      uid: 'p',
      name: 'job',
      policy: 'none',
      alreadyAdmitted: false,
      warnings: [],
    });
    expect(pod.flags()).toEqual([]);
    expect(JSON.parse(JSON.stringify(manager.pod('p').containers))).toMatchObject([
      { name: 'proxy', kind: 'sidecar', isolation: 'container', cpus: '12' },
      {
        name: 'main',
        kind: 'app',
        cpus: '4-7',
        hint: { nodes: null },
        memory: FULL.containers[0]!.memory,
        devices: { 'example.com/nic': [{ id: 'eth1', nodes: [1] }] },
      },
      { name: 'log', isolation: 'host', cpus: null, memory: [], devices: {} },
    ]);
    expect(manager.grants()).toMatchObject([
      { uid: 'p', alive: true, enforcement: 'recorded', owner: { kind: 'persistent' } },
    ]);
  });

  it('keeps others off its CPUs, like an admitted pod', async () => {
    const manager = await open();
    manager.registerDevices('example.com/nic', [{ id: 'eth0' }, { id: 'eth1' }]);
    await manager.adopt(FULL);
    expect(String(manager.sharedPool())).toBe('0-3,8-11,13-15');
    // From each of its nodes, as far as it goes.
    const [first, second] = [onNode(manager, 0, 'memory'), onNode(manager, 1, 'memory')];
    expect([first.free, first.reserved + second.reserved]).toEqual([0, 9 * GI]);
    expect(first.group).toEqual([0, 1]);
    const grant = await manager.acquire({ cpu: 1, resources: { 'example.com/nic': 1 } });
    expect(grant.devices).toMatchObject({ 'example.com/nic': [{ id: 'eth0' }] });
    expect((await errorOf(() => manager.acquire({ cpu: 12 }))).code).toBe('ERR_INSUFFICIENT_CPUS');
    await grant.release();
    await manager.release('p');
    expect(manager.memory()).toEqual((await open()).memory());
    expect(manager.sharedPool().size).toBe(16);
  });

  it('matches its record if it is adopted again, without another commit', async () => {
    const manager = await open();
    await manager.adopt(FULL);
    const generation = manager.generation();
    // In another order, and without its request.
    const { containers } = FULL;
    const main = { ...containers[0], limits: undefined, memory: containers[0]!.memory!.toReversed() };
    const again = await manager.adopt({ ...FULL, containers: [containers[1]!, main as never] });
    expect(again).toMatchObject({ uid: 'p', alreadyAdmitted: true });
    expect(again.containers).toEqual(manager.pod('p').containers);
    expect(manager.generation()).toBe(generation);
  });

  it('is the same as the admitted pod if it has its resources', async () => {
    const manager = await open();
    const pod = {
      uid: 'p',
      containers: [guaranteed('main', { cpu: 2 }), guaranteed('log', { cpu: '500m' })],
    };
    const { containers } = await manager.admit(pod);
    expect(containers.map(({ cpus }) => cpus?.size)).toEqual([2, undefined]);
    const held = containers.map(({ name, cpus, memory }) => ({ name, cpus, memory }));
    expect(await manager.adopt({ uid: 'p', containers: held })).toMatchObject({ alreadyAdmitted: true });
    expect(manager.grants()).toMatchObject([{ owner: { kind: 'process' } }]);
  });

  it('keeps its place when it is admitted with its request', async () => {
    const manager = await open();
    await manager.adopt({
      uid: 'p',
      containers: [{ name: 'main', cpus: '4-5', limits: { cpu: 2, memory: 1 } }],
    });
    await manager.adopt({ uid: 'q', containers: [{ name: 'main', cpus: '6' }] });
    const admit = (uid: string, requests: object) =>
      manager.admit({ uid, containers: [{ name: 'main', requests: { ...requests } }] });
    expect(await admit('p', { cpu: 2, memory: 1 })).toMatchObject({ alreadyAdmitted: true });
    expect(await admit('q', { cpu: 1 })).toMatchObject({ alreadyAdmitted: true });
    expect((await errorOf(() => admit('q', { cpu: 2 }))).code).toBe('ERR_POD_CONFLICT');
  });

  it('may reuse CPUs and devices of its init containers in later containers', async () => {
    const manager = await open();
    const devices = { 'example.com/nic': ['eth0'] };
    const held = { cpus: '4-5', devices };
    await manager.adopt({
      initContainers: [{ name: 'setup', ...held }],
      containers: [{ name: 'main', ...held }],
    });
    expect(manager.sharedPool().size).toBe(14);
  });

  it.each([{ cpuManagerPolicy: 'none', memoryManagerPolicy: 'None' }, { policy: 'restricted' }] as const)(
    'does not depend on the policy: %j',
    async (options) => {
      const { policy, ...others } = { policy: undefined, ...options };
      const manager = await open({ ...others, ...(policy && { policy }) });
      await manager.adopt(FULL);
      expect(String(manager.grants()[0]!.cpus)).toBe('4-7,12');
    },
  );

  it('of isolated CPUs has isolated ones', async () => {
    const manager = await open({ isolatedCPUs: '4-7' });
    await manager.adopt({ uid: 'p', containers: [{ name: 'main', cpus: '4-5' }] });
    expect(manager.grants()).toMatchObject([{ isIsolated: true }]);
    expect(String(manager.freeIsolatedCpus())).toBe('6-7');
  });

  it('is reported on the channel of admissions', async () => {
    const messages: DiagnosticsMessages['admit'][] = [];
    const listen = (message: unknown) => void messages.push(message as DiagnosticsMessages['admit']);
    subscribe('numalign:admit', listen);
    onTestFinished(() => void unsubscribe('numalign:admit', listen));
    const manager = await open({ policy: 'restricted' });
    await manager.adopt(FULL);
    await manager.adopt(FULL);
    await errorOf(() => manager.adopt({ uid: 'q', containers: [{ name: 'main', cpus: '4' }] }));
    expect(messages).toMatchObject([
      { outcome: 'admitted', uid: 'p', cpus: '4-7,12', policy: 'none', code: null },
      { outcome: 'already', uid: 'p' },
      { outcome: 'failed', uid: 'q', code: 'ERR_ADOPTION' },
    ]);
  });
});

describe('the enforcement of an adopted pod', () => {
  const usual = { enforcement: 'partition', require: 'recorded', unmovableMembers: 'fail' } as const;

  it('is no partition, which would take the CPUs from the pod’s own cgroups, unless asked for', () => {
    const level = (asked?: Partial<EnforcementRequest>, of: EnforcementRequest = usual) =>
      aimOfAdoption({ enforcement: of }, asked).enforcement;
    expect(level()).toBe('cpuset');
    expect(level({}, { ...usual, enforcement: 'members' })).toBe('members');
    expect(level({ enforcement: 'partition' })).toBe('partition');
    expect(level({ require: 'partition' })).toBe('partition');
    expect(level({ require: 'members' })).toBe('cpuset');
  });

  it('is that of the request otherwise, and is reported if the request names it', () => {
    const asked = { unmovableMembers: 'report', enforcement: 'members' } as const;
    expect(aimOfAdoption({ enforcement: usual }, asked)).toEqual({ ...usual, ...asked, isNamed: true });
    expect(aimOfAdoption({ enforcement: usual }).isNamed).toBe(false);
  });
});

describe('a refused adoption', () => {
  const cpus = (list: string): AdoptedPod => ({ uid: 'p', containers: [{ name: 'main', cpus: list }] });
  const memory = (bytes: number, nodes = [0], type = 'memory'): AdoptedPod => ({
    uid: 'p',
    containers: [{ name: 'main', memory: [{ nodes, type, bytes }] }],
  });

  it.each<[string, AdoptedPod, RegExp]>([
    ['CPUs of a grant', cpus('0-1'), /^pod p has CPUs 0, which grant .* holds$/],
    ['reserved CPUs', cpus('15'), /^pod p has CPUs 15, which are reserved$/],
    ['CPUs that are not managed', cpus('11-12'), /^pod p has CPUs 11, which numalign does not manage$/],
    ['CPUs that are not online', cpus('14,16-17'), /^pod p has CPUs 16-17, which are not online/],
    ['the last shared CPUs', cpus('1-10,12-14'), /^no CPU would be left for the shared pool/],
    [
      'more memory than a node has',
      memory(8 * GI + 1),
      /^\d+ bytes of memory would be booked on NUMA node 0/,
    ],
    ['memory on no node', memory(1, []), /on NUMA nodes , which cannot be$/],
    ['memory of a node that is not there', memory(1, [7]), /on NUMA nodes 7, which cannot be$/],
    ['memory of nodes in another order', memory(1, [1, 0]), /on NUMA nodes 1,0, which cannot be$/],
    [
      'memory of a group that others share otherwise',
      memory(1, [0, 1]),
      /allocated on NUMA nodes 0 together/,
    ],
    [
      'hugepages of which there are none',
      memory(1 * GI, [0], 'hugepages-1Gi'),
      /hugepages-1Gi would be booked on NUMA node 0, which has 0$/,
    ],
    [
      'a device of a grant',
      { uid: 'p', containers: [{ name: 'main', devices: { 'example.com/nic': ['eth0'] } }] },
      /^pod p has device example.com\/nic eth0, which grant .* holds$/,
    ],
    [
      'CPUs twice',
      { uid: 'p', containers: ['a', 'b'].map((name) => ({ name, cpus: '4' })) },
      /^containers a and b of pod p both have CPUs 4$/,
    ],
    [
      'a device twice',
      { uid: 'p', containers: ['a', 'b'].map((name) => ({ name, devices: { 'example.com/nic': ['x'] } })) },
      /^containers a and b of pod p both have device example.com\/nic x$/,
    ],
  ])('leaves nothing on record: %s', async (_, pod, why) => {
    const reservedMemory = [{ numaNode: 1, limits: { memory: '1Gi' } }];
    const manager = await open({
      reservedSystemCPUs: '15',
      managedCPUs: '0-10,12-15',
      reservedMemory,
      strictCPUReservation: true,
    });
    manager.registerDevices('example.com/nic', [{ id: 'eth0' }]);
    await manager.acquire({ cpu: 1, memory: '1Mi', resources: { 'example.com/nic': 1 } });
    const before = [manager.generation(), manager.memory()];
    const { code, details } = await errorOf(() => manager.adopt(pod));
    expect(code).toBe('ERR_ADOPTION');
    expect(details.value).toEqual([expect.stringMatching(why)]);
    expect([manager.generation(), manager.memory()]).toEqual(before);
  });

  it('reports all problems at once', async () => {
    const manager = await open({ reservedSystemCPUs: '15' });
    const { details, message } = await errorOf(() =>
      manager.adopt({
        uid: 'p',
        containers: [
          { name: 'a', cpus: '15-16' },
          { name: 'b', cpus: '15', memory: [{ nodes: [0], type: 'memory', bytes: 99 * GI }] },
        ],
      }),
    );
    expect(details.value).toHaveLength(4);
    for (const why of details.value as string[]) expect(message).toContain(why);
  });

  it('counts another holding of a pod on record as one problem', async () => {
    const manager = await open();
    await manager.adopt(FULL);
    for (const other of [
      { ...FULL, initContainers: [] },
      { ...FULL, containers: FULL.containers.slice(0, 1) },
      { ...FULL, containers: [{ ...FULL.containers[0]!, cpus: '4-8' }, FULL.containers[1]!] },
      { ...FULL, containers: [{ ...FULL.containers[0]!, memory: [] }, FULL.containers[1]!] },
      { ...FULL, containers: [{ ...FULL.containers[0]!, devices: {} }, FULL.containers[1]!] },
    ]) {
      const { code, details } = await errorOf(() => manager.adopt(other));
      expect([code, details.value]).toEqual([
        'ERR_ADOPTION',
        [expect.stringMatching(/^grant p is on record with something else: CPUs 4-7,12; container log/)],
      ]);
    }
  });

  it.each<[unknown, unknown, string]>([
    [undefined, {}, 'ERR_INVALID_POD'],
    [{}, {}, 'ERR_INVALID_POD'],
    [{ containers: [] }, {}, 'ERR_INVALID_POD'],
    [{ containers: [{}] }, {}, 'ERR_INVALID_POD'],
    [{ containers: [{ name: 'a' }, { name: 'a' }] }, {}, 'ERR_INVALID_POD'],
    [{ containers: [{ name: 'a', cpus: 4 }] }, {}, 'ERR_INVALID_POD'],
    [{ containers: [{ name: 'a', cpus: '4-' }] }, {}, 'ERR_INVALID_LIST'],
    [{ containers: [{ name: 'a', cpu: '4' }] }, {}, 'ERR_INVALID_OPTION'],
    [{ containers: [{ name: 'a', limits: { cpu: 'x' } }] }, {}, 'ERR_INVALID_QUANTITY'],
    [{ containers: [{ name: 'a', memory: [{ nodes: [0], type: 'cpu', bytes: 1 }] }] }, {}, 'ERR_INVALID_POD'],
    [
      { containers: [{ name: 'a', memory: [{ nodes: 0, type: 'memory', bytes: 1 }] }] },
      {},
      'ERR_INVALID_POD',
    ],
    [
      { containers: [{ name: 'a', memory: [{ nodes: [0], type: 'memory', bytes: -1 }] }] },
      {},
      'ERR_INVALID_POD',
    ],
    [{ containers: [{ name: 'a', memory: [{ node: 0 }] }] }, {}, 'ERR_INVALID_OPTION'],
    [{ containers: [{ name: 'a', devices: { cpu: ['x'] } }] }, {}, 'ERR_INVALID_POD'],
    [{ containers: [{ name: 'a', devices: { 'example.com/nic': 'x' } }] }, {}, 'ERR_INVALID_POD'],
    [{ containers: [{ name: 'a' }], resources: {} }, {}, 'ERR_INVALID_OPTION'],
    [{ containers: [{ name: 'a' }] }, { owner: 'process' }, 'ERR_INVALID_OPTION'],
    [{ containers: [{ name: 'a' }] }, { owner: { cgroup: '/tmp' } }, 'ERR_INVALID_OPTION'],
    [{ containers: [{ name: 'a' }] }, { policy: 'none' }, 'ERR_INVALID_OPTION'],
    [{ containers: [{ name: 'a' }] }, { enforcement: 'none' }, 'ERR_INVALID_OPTION'],
    [{ containers: [{ name: 'a' }] }, { signal: 1 }, 'ERR_INVALID_OPTION'],
  ])('of %j with %j is %s', async (pod, options, code) => {
    const manager = await open();
    expect((await errorOf(() => manager.adopt(pod as never, options as never))).code).toBe(code);
    expect(manager.generation()).toBe(1);
  });

  it('leaves nothing on record once the signal is aborted', async () => {
    const manager = await open();
    const signal = AbortSignal.abort(new Error('enough'));
    expect((await errorOf(() => manager.adopt(FULL, { signal }))).message).toBe('enough');
    expect(manager.grants()).toEqual([]);
  });
});

// ---- the law

const request = fc.record({
  cpu: fc.integer({ min: 1, max: 5 }),
  memory: fc.integer({ min: 1, max: 6 }),
  nic: fc.integer({ min: 0, max: 2 }),
});

describe('every admitted pod of one machine', () => {
  it('can be adopted on another machine of the same kind, in any order, and is then the same there', async () => {
    const topology = await discover({ synthetic: 'package:2 [numa(memory=8GiB)] core:4 pu:2' });
    const nics = Array.from({ length: 4 }, (_, i) => ({ id: `eth${i}`, numaNodes: [i % 2] }));
    await fc.assert(
      fc.asyncProperty(fc.array(request, { maxLength: 5 }), fc.boolean(), async (requests, isReversed) => {
        await using from = await openManager({ topology });
        await using to = await openManager({ topology });
        for (const manager of [from, to]) manager.registerDevices('example.com/nic', nics);
        for (const { cpu, memory, nic } of requests) {
          const amounts = { cpu, memory: `${memory}Gi`, ...(nic > 0 && { 'example.com/nic': nic }) };
          await from
            .admit({ containers: [guaranteed('main', amounts)] }, { owner: 'persistent' })
            .catch((error) => {
              if (!(error instanceof AdmissionError)) throw error;
            });
        }
        const pods = from.grants().map(({ uid }) => from.pod(uid));
        for (const { uid, containers } of isReversed ? pods.toReversed() : pods) {
          const held = containers.map(({ name, cpus, memory, devices }) => ({
            name,
            cpus: cpus!,
            memory,
            devices: Object.fromEntries(
              Object.entries(devices).map(([key, list]) => [key, list.map(({ id }) => id)]),
            ),
          }));
          await to.adopt({ uid, containers: held });
        }
        expect(to.sharedPool()).toEqual(from.sharedPool());
        const sum = (manager: Manager) => manager.memory().reduce((all, { reserved }) => all + reserved, 0);
        expect(sum(to)).toBe(sum(from));
        const holdings = (manager: Manager) =>
          Object.fromEntries(
            manager.grants().map(({ uid, cpus, memory, devices }) => [uid, { cpus, memory, devices }]),
          );
        expect(holdings(to)).toEqual(holdings(from));
      }),
      { numRuns: budget({ all: 200, usual: 25 }) },
    );
  });
});

import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { status } from '@grpc/grpc-js';
import fc from 'fast-check';
import { CpuSet, type GrantInfo } from 'numalign';
import { afterEach, describe, expect, it } from 'vitest';
import { budget } from '../../../../test/support/budget.mjs';
import { end, hierarchies, makeCgroup, populate } from '../../../../test/support/owner-cgroups.js';
import { grantsOf, isAllocation, parseAllocationName } from '../../lib/placement/allocation.js';
import { PluggedMachine } from './plugged-machine.js';

const TWO_NODES = 'package:2 numa:1 core:2 pu:2';

let machine: PluggedMachine;
afterEach(() => machine.close());

async function start(...[synthetic, options]: Partial<Parameters<typeof PluggedMachine.open>>) {
  machine = await PluggedMachine.open(synthetic ?? TWO_NODES, options);
  await machine.kubelet.start();
  await machine.plugin.start();
  await expect.poll(() => machine.kubelet.devices).toBeDefined();
}

const own = (grants: readonly GrantInfo[] = machine.manager.grants()) =>
  grants.filter((grant) => isAllocation(grant, machine.plugin.resource));
const held = () =>
  own()
    .map(({ cpus }) => `${cpus}`)
    .sort();

/** Writes the kubelet's checkpoint: ids by container of one pod. */
function remember(containers: Readonly<Record<string, readonly string[]>>): void {
  const entries = Object.entries(containers).map(([ContainerName, ids]) => ({
    ...{ PodUID: 'u', ContainerName, ResourceName: 'numalign.io/cpu', DeviceIDs: { 0: ids } },
  }));
  const file = join(machine.kubelet.folder, 'kubelet_internal_checkpoint');
  writeFileSync(`${file}.new`, JSON.stringify({ Data: { PodDeviceEntries: entries }, Checksum: 1 }));
  renameSync(`${file}.new`, file);
}

describe('An allocation', () => {
  it('is on record before the kubelet has its answer, and the container’s environment names it', async () => {
    await start();
    const environment = await machine.kubelet.allocate('cpu2', 'cpu3');
    const [grant] = own();
    expect(environment).toEqual({ NUMALIGN_CPUS: '2-3', NUMALIGN_ALLOCATION: grant!.uid });
    expect(`${grant!.cpus}`).toBe('2-3');
    expect(grant!.owner.kind).toBe('persistent');
    expect(machine.manager.sharedPool().intersects(grant!.cpus)).toBe(false);
  });

  it('of several containers is one each', async () => {
    await start();
    const { container_responses } = await machine.kubelet.call('Allocate', {
      container_requests: [{ devicesIDs: ['cpu2'] }, { devicesIDs: ['cpu4', 'cpu5'] }],
    });
    expect(container_responses.map(({ envs }: any) => envs.NUMALIGN_CPUS)).toEqual(['2', '4-5']);
    expect(held()).toEqual(['2', '4-5']);
  });

  it('survives a restart of the plugin, and no other grant gets its CPUs', async () => {
    await start();
    const { NUMALIGN_ALLOCATION } = await machine.kubelet.allocate('cpu2');
    await machine.plugin.close();
    machine.plug();
    await machine.plugin.start();
    await expect.poll(() => machine.kubelet.devices).toBeDefined();
    expect(own().map(({ uid }) => uid)).toEqual([NUMALIGN_ALLOCATION]);
    expect(machine.kubelet.healthy).toContain('cpu2');
    const grants = [await machine.manager.acquire({ cpu: 6 })];
    expect(grants[0]!.cpus.has(2)).toBe(false);
  });

  it('of the same devices is the same, if no container has claimed it', async () => {
    await start();
    const first = await machine.kubelet.allocate('cpu2', 'cpu3');
    expect(await machine.kubelet.allocate('cpu3', 'cpu2')).toEqual(first);
    expect(held()).toEqual(['2-3']);
  });

  it('takes over the CPUs of an init container, which still finds its allocation', async () => {
    await start();
    const init = await machine.kubelet.allocate('cpu2', 'cpu3');
    const app = await machine.kubelet.allocate('cpu3', 'cpu4');
    expect(held()).toEqual(['2', '3-4']);
    const cpusOf = ({ NUMALIGN_ALLOCATION }: Record<string, string>) =>
      grantsOf(NUMALIGN_ALLOCATION!, own())
        .reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY)
        .toString();
    expect(cpusOf(init)).toBe('2-4');
    expect(cpusOf(app)).toBe('3-4');
  });

  it('is refused if a CPU belongs to another grant, and names it', async () => {
    await start();
    const grant = await machine.manager.acquire({ name: 'job', cpu: 2 });
    const [cpu] = grant.cpus;
    await expect(machine.kubelet.allocate(`cpu${cpu}`)).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
      details: `ERR_DEVICE_HELD: CPUs ${cpu} are held by job (${grant.uid})`,
    });
    expect(own()).toEqual([]);
  });

  it('is refused for unknown, missing and duplicate devices', async () => {
    await start();
    const refused = async (ids: string[], code: status, text: string) => {
      const error = await machine.kubelet.allocate(...ids).catch((error) => error);
      expect(error).toMatchObject({ code, details: expect.stringContaining(text) });
    };
    for (const id of ['cpu0', 'cpu8', 'cpu', '', '2', 'core2', 'toString']) {
      await refused([id], status.NOT_FOUND, 'ERR_UNKNOWN_DEVICE');
    }
    await refused([], status.INVALID_ARGUMENT, 'ERR_DEVICE_REQUEST');
    await refused(['cpu2', 'cpu2'], status.INVALID_ARGUMENT, 'ERR_DEVICE_REQUEST');
    expect(own()).toEqual([]);
  });

  it('is refused if a CPU is no longer managed', async () => {
    await start();
    await machine.manager.configure({ managedCPUs: '0-5' });
    await expect(machine.kubelet.allocate('cpu5', 'cpu6')).rejects.toMatchObject({
      code: status.FAILED_PRECONDITION,
      details: expect.stringContaining('ERR_DEVICE_OFFLINE: cpu6'),
    });
    expect(own()).toEqual([]);
  });

  it('of all containers is refused if one is refused, and the earlier record is restored', async () => {
    // Without reserved CPUs the last one must stay shared.
    await start('package:1 core:4 pu:1', { machine: { reservedSystemCPUs: '' } });
    const before = await machine.kubelet.allocate('cpu1', 'cpu2');
    await expect(
      machine.kubelet.call('Allocate', {
        container_requests: [{ devicesIDs: ['cpu0', 'cpu1'] }, { devicesIDs: ['cpu2', 'cpu3'] }],
      }),
    ).rejects.toMatchObject({ code: status.INTERNAL, details: expect.stringContaining('ERR_ADOPTION') });
    expect(held()).toEqual(['1-2']);
    expect(own()[0]!.uid).toBe(before.NUMALIGN_ALLOCATION);
  });

  it('of another resource’s device is foreign', async () => {
    await start();
    await machine.kubelet.allocate('cpu2');
    await machine.plugin.close();
    machine.plug({ unit: 'core' });
    await machine.plugin.start();
    await expect.poll(() => machine.kubelet.healthy).toEqual(['core4', 'core6']);
    await expect(machine.kubelet.allocate('core2')).rejects.toMatchObject({
      code: status.RESOURCE_EXHAUSTED,
    });
  });
});

const [hierarchy] = hierarchies();

describe.runIf(hierarchy)('An allocation that a pod has claimed', () => {
  it('stays the pod’s: the next waits for its end', async () => {
    await start();
    const group = makeCgroup(hierarchy![1]);
    const pause = populate(group);
    const { NUMALIGN_ALLOCATION } = await machine.kubelet.allocate('cpu2', 'cpu3');
    await machine.manager.pod(NUMALIGN_ALLOCATION!).setOwner({ cgroup: group });
    let isOver = false;
    const next = machine.kubelet.allocate('cpu3').finally(() => {
      isOver = true;
    });
    // A later allocation waits as well; the process answers what it can meanwhile.
    expect(await machine.kubelet.prefer(['cpu4'], 1)).toEqual(['cpu4']);
    expect(isOver).toBe(false);
    await end(pause);
    expect((await next).NUMALIGN_CPUS).toBe('3');
    expect(held()).toEqual(['3']);
  });

  it('is not given to another as long as the pod lives', async () => {
    await start(TWO_NODES, { patienceMs: 50 });
    const group = makeCgroup(hierarchy![1]);
    populate(group);
    const { NUMALIGN_ALLOCATION } = await machine.kubelet.allocate('cpu2');
    await machine.manager.pod(NUMALIGN_ALLOCATION!).setOwner({ cgroup: group });
    await expect(machine.kubelet.allocate('cpu2')).rejects.toMatchObject({ code: status.RESOURCE_EXHAUSTED });
    expect(machine.kubelet.healthy).toContain('cpu2');
    expect(own().map(({ uid }) => uid)).toEqual([NUMALIGN_ALLOCATION]);
  });

  it('stays the pod’s if the kubelet has forgotten it', async () => {
    await start(TWO_NODES, { graceMs: 0 });
    const group = makeCgroup(hierarchy![1]);
    populate(group);
    const { NUMALIGN_ALLOCATION } = await machine.kubelet.allocate('cpu2');
    await machine.manager.pod(NUMALIGN_ALLOCATION!).setOwner({ cgroup: group });
    await machine.kubelet.allocate('cpu3');
    remember({});
    await expect.poll(held).toEqual(['2']);
  });
});

describe('An allocation that no container has claimed', () => {
  it('is given back once the kubelet has forgotten it', async () => {
    await start(TWO_NODES, { graceMs: 0 });
    await machine.kubelet.allocate('cpu1');
    await machine.kubelet.allocate('cpu2', 'cpu3');
    remember({ main: ['cpu3', 'cpu99'] });
    await expect.poll(held).toEqual(['2-3']);
  });

  it('stays for a while: the kubelet writes its file only after the call', async () => {
    await start(TWO_NODES, { graceMs: 60_000 });
    await machine.kubelet.allocate('cpu1');
    remember({});
    await machine.kubelet.allocate('cpu2');
    await machine.plugin.close();
    expect(held()).toEqual(['1', '2']);
  });

  it('stays if the file is unusable', async () => {
    await start(TWO_NODES, { graceMs: 0 });
    await machine.kubelet.allocate('cpu1');
    writeFileSync(join(machine.kubelet.folder, 'kubelet_internal_checkpoint'), 'nonsense');
    await machine.kubelet.allocate('cpu2');
    await machine.plugin.close();
    expect(held()).toEqual(['1', '2']);
  });
});

describe('An allocation that has ended though its pod goes on', () => {
  const main = { podUid: 'u', name: 'main' };
  const given = (uid: string, cpus: string) => ({ uid, cpus: CpuSet.parse(cpus) });

  it('is recorded again if the kubelet lists it', async () => {
    await start();
    const { NUMALIGN_ALLOCATION: uid } = await machine.kubelet.allocate('cpu2', 'cpu3');
    await machine.manager.release(uid!);
    remember({ main: ['cpu2', 'cpu3'] });
    expect(await machine.plugin.restore(given(uid!, '2-3'), main)).toBe(true);
    expect(own().map((grant) => [grant.uid, `${grant.cpus}`])).toEqual([[uid, '2-3']]);
    // Again it is unchanged.
    expect(await machine.plugin.restore(given(uid!, '2-3'), main)).toBe(true);
    expect(held()).toEqual(['2-3']);
  });

  it('is not recorded if the kubelet lists another: a pod can set any environment', async () => {
    await start();
    const restored = (cpus: string, container = main) => machine.plugin.restore(given('x', cpus), container);
    expect(await restored('2')).toBe(false);
    remember({ main: ['cpu2', 'cpu3'], other: ['cpu4'] });
    for (const cpus of ['2', '2-4', '4', '5']) expect(await restored(cpus)).toBe(false);
    expect(await restored('2-3', { podUid: 'v', name: 'main' })).toBe(false);
    expect(own()).toEqual([]);
  });

  it('is refused if another grant has its CPUs by now', async () => {
    await start();
    const grant = await machine.manager.acquire({ cpu: 2 });
    remember({ main: [...grant.cpus].map((cpu) => `cpu${cpu}`) });
    await expect(machine.plugin.restore({ uid: 'x', cpus: grant.cpus }, main)).rejects.toMatchObject({
      code: 'ERR_DEVICE_HELD',
    });
    expect(own()).toEqual([]);
  });

  it('is shared with those of the pod’s other containers with the same CPUs', async () => {
    await start();
    remember({ init: ['cpu2', 'cpu3'], main: ['cpu3', 'cpu4'] });
    expect(await machine.plugin.restore(given('i', '2-3'), { podUid: 'u', name: 'init' })).toBe(true);
    expect(await machine.plugin.restore(given('m', '3-4'), main)).toBe(true);
    expect(held()).toEqual(['2-4']);
    for (const uid of ['i', 'm']) expect(grantsOf(uid, own())).toEqual(own());
  });
});

describe('What is preferred', () => {
  it('follows best fit: a core, then a NUMA node', async () => {
    await start();
    const all = machine.kubelet.healthy!;
    expect(await machine.kubelet.prefer(all, 1)).toEqual(['cpu1']);
    expect(await machine.kubelet.prefer(all, 2)).toEqual(['cpu2', 'cpu3']);
    expect(await machine.kubelet.prefer(all, 4)).toEqual(['cpu4', 'cpu5', 'cpu6', 'cpu7']);
  });

  it('is near the devices that must be included', async () => {
    await start();
    const all = machine.kubelet.healthy!;
    expect(await machine.kubelet.prefer(all, 2, ['cpu6'])).toEqual(['cpu6', 'cpu7']);
    expect(await machine.kubelet.prefer(all, 3, ['cpu6'])).toEqual(['cpu4', 'cpu5', 'cpu6']);
  });

  it('consists of whole cores of one NUMA node', async () => {
    await start(TWO_NODES, { unit: 'core' });
    expect(await machine.kubelet.prefer(['core2', 'core4', 'core6'], 2)).toEqual(['core4', 'core6']);
  });

  it('is empty if too few are available', async () => {
    await start();
    expect(await machine.kubelet.prefer(['cpu1', 'cpu99'], 2)).toEqual([]);
  });

  it('is refused for an invalid question', async () => {
    await start();
    for (const [size, must] of [
      [0, []],
      [-1, []],
      [1, ['cpu5']],
      [1, ['cpu1', 'cpu2']],
    ] as const) {
      await expect(machine.kubelet.prefer(['cpu1', 'cpu2'], size, must)).rejects.toMatchObject({
        code: status.INVALID_ARGUMENT,
      });
    }
  });

  it('includes the required devices, each device once, and only available ones', async () => {
    await start('package:2 numa:2 core:3 pu:2');
    const all = machine.kubelet.healthy!;
    await fc.assert(
      fc.asyncProperty(fc.subarray(all, { minLength: 1 }), fc.nat(), fc.nat(), async (available, a, b) => {
        const size = 1 + (a % available.length);
        const must = available.slice(0, b % (size + 1));
        const chosen = await machine.kubelet.prefer(available, size, must);
        expect(new Set(chosen).size).toBe(size);
        expect(available).toEqual(expect.arrayContaining(chosen));
        expect(chosen).toEqual(expect.arrayContaining(must));
      }),
      { numRuns: budget({ all: 200, usual: 20 }) },
    );
  });
});

describe('Whatever is allocated, released and granted to others', () => {
  // Commands: the kubelet allocates CPUs, one of its pods ends, another grant takes or gives back.
  const commands = fc.array(
    fc.oneof(
      fc.record({
        kind: fc.constant('allocate' as const),
        cpus: fc.uniqueArray(fc.nat(7), { minLength: 1, maxLength: 4 }),
      }),
      fc.record({ kind: fc.constant('end' as const), at: fc.nat() }),
      fc.record({ kind: fc.constant('acquire' as const), cpu: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ kind: fc.constant('release' as const), at: fc.nat() }),
    ),
    { maxLength: 12 },
  );

  it('no CPU is in two grants, and the healthy devices are those free or allocated', async () => {
    await start();
    const { manager, kubelet } = machine;
    const foreign = () => manager.grants().filter(({ name }) => parseAllocationName(name) === undefined);
    await fc.assert(
      fc.asyncProperty(commands, async (steps) => {
        for (const { uid } of manager.grants()) await manager.release(uid);
        for (const step of steps) {
          const list = step.kind === 'end' ? own() : step.kind === 'release' ? foreign() : [];
          if (step.kind === 'allocate') {
            const before = own().reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
            const wish = CpuSet.from(step.cpus);
            const isRight = wish.isSubsetOf(manager.freeCpus().union(before));
            const answer = await kubelet
              .allocate(...step.cpus.map((cpu) => `cpu${cpu}`))
              .catch((error) => error);
            expect(answer instanceof Error).toBe(!isRight);
            if (isRight) expect(answer.NUMALIGN_CPUS).toBe(`${wish}`);
            // The kubelet's allocations stay.
            expect(before.isSubsetOf(own().reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY))).toBe(
              true,
            );
          } else if (step.kind === 'acquire') await manager.acquire({ cpu: step.cpu }).catch(() => {});
          else if (list.length > 0) await manager.release(list[step.at % list.length]!.uid);
          const grants = manager.grants();
          const union = grants.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
          expect(union.size).toBe(grants.reduce((sum, { cpus }) => sum + cpus.size, 0));
          const good = own(grants).reduce((all, { cpus }) => all.union(cpus), manager.freeCpus());
          // Each question makes it check again: managers report many commits only once a second.
          await kubelet.prefer(['cpu1'], 1);
          await expect
            .poll(() => kubelet.healthy, { interval: 1 })
            .toEqual([...good].map((cpu) => `cpu${cpu}`));
        }
      }),
      { numRuns: budget({ all: 100, usual: 10 }) },
    );
  });
});

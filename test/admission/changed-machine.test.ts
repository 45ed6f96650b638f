// needs: agents
// The machine, or its settings, have changed since the state was written: grants in force stay and
// are flagged, and nothing is granted twice.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { movedCpus, withIdentities } from '../../lib/account/cpu-identities.js';
import { cpusOf } from '../../lib/account/pod-holdings.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { CpuSet, type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import { decodeCheckpoint } from '../../lib/state/format/journal.js';
import { rewrite } from '../conformance/state-file.js';
import { Agent } from '../support/agent.js';
import { budget } from '../support/budget.mjs';
import { type MachineState, machineAt } from '../support/changing-machine.js';
import { errorOf } from '../support/error-of.js';
import { GI } from '../support/memory-machine.js';
import { canMount } from '../support/rights.js';
import { guaranteed } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

/** A manager of the machine at a moment. */
async function openAt(
  stateDir: string,
  state: MachineState = {},
  options: ManagerOptions = {},
): Promise<Manager> {
  const manager = await openManager({ topology: await machineAt(state), stateDir, ...options });
  onTestFinished(() => manager.close());
  return manager;
}

const checkpointOf = (stateDir: string) => decodeCheckpoint(readFileSync(join(stateDir, 'state.json')));
const flagsIn = (manager: Manager) =>
  Object.fromEntries(manager.grants().map(({ name, flags }) => [name, flags.map(({ code }) => code)]));
const cpusIn = (manager: Manager) =>
  Object.fromEntries(manager.grants().map(({ name, cpus }) => [name, String(cpus)]));

/** A commit that changes nothing else: records must outlive it. */
async function commitAnything(manager: Manager): Promise<void> {
  const { strictCPUReservation } = manager.settings();
  await manager.configure({ strictCPUReservation });
}

describe('a first boot', () => {
  it('begins a state of the current machine, without warnings', async () => {
    const stateDir = makeStateDir();
    const manager = await openAt(stateDir, { offline: '3' });
    expect([manager.generation(), manager.warnings, manager.grants()]).toEqual([1, [], []]);
    expect(checkpointOf(stateDir).assignments.cpus.map(([cpu]) => cpu)).toEqual([...manager.topology.cpus]);
  });

  it('makes nothing on disk for options that do not fit the machine', async () => {
    const stateDir = makeStateDir();
    const bad: ManagerOptions[] = [
      { reservedSystemCPUs: '60000' },
      { managedCPUs: '0', reservedSystemCPUs: '0', strictCPUReservation: true },
      { reservedMemory: [{ numaNode: 0, limits: { memory: '9Gi' } }] },
      { reservedMemory: [{ numaNode: 5, limits: { memory: '1Gi' } }] },
    ];
    for (const options of bad) {
      expect((await errorOf(() => openAt(stateDir, {}, options))).code).toMatch(
        /ERR_INVALID_OPTION|ERR_CONFIG_CONFLICT/,
      );
      expect(existsSync(stateDir)).toBe(false);
    }
  });
});

describe('a reboot', () => {
  const reboot = (stateDir: string, bootId: string) => rewrite(stateDir, (state) => ({ ...state, bootId }));

  it('archives the state, lists the persistent grants in it, and grants none of them again', async () => {
    const stateDir = makeStateDir();
    const before = await openAt(stateDir, {}, { reservedSystemCPUs: '0' });
    const keep = await before.acquire({ cpu: 2, memory: '1Gi', name: 'keep', owner: 'persistent' });
    await before.acquire({ cpu: 2, name: 'mine' });
    reboot(stateDir, 'an-earlier-boot');
    const { generation } = checkpointOf(stateDir);

    const after = await openAt(stateDir);
    const file = `archive/an-earlier-boot-${generation}.json`;
    expect(after.warnings).toEqual([
      {
        code: 'STATE_ARCHIVED',
        message: expect.stringContaining('persistent grants are void: keep'),
        file,
        generation,
        lapsed: [{ uid: keep.uid, name: 'keep', cpus: keep.cpus, memory: keep.memory, devices: {} }],
      },
    ]);
    expect(readdirSync(join(stateDir, 'archive'))).toEqual([file.slice('archive/'.length)]);
    const archived = decodeCheckpoint(readFileSync(join(stateDir, file)));
    expect(archived.assignments.pods.map(({ name }) => name)).toEqual(['keep', 'mine']);

    expect(after.grants()).toEqual([]);
    expect(after.generation()).toBe(generation + 1);
    expect(String(after.settings().reservedSystemCPUs)).toBe('0');
    expect(after.memory().every(({ reserved }) => reserved === 0)).toBe(true);
    expect(String((await after.acquire({ cpu: 2 })).cpus)).toBe(String(keep.cpus));
    // Reported once: now it is the state of this boot.
    expect((await openAt(stateDir)).warnings).toEqual([]);
    expect(keep.flags()).toEqual([]);
    expect((await errorOf(() => after.release(keep.uid))).code).toBe('ERR_UNKNOWN_GRANT');
  });

  it('keeps a state of every boot, and a state that was archived before a crash only once', async () => {
    const stateDir = makeStateDir();
    const before = makeStateDir();
    await openAt(before);
    reboot(before, 'boot-one');
    // Like after a crash behind the archiving.
    mkdirSync(join(stateDir, 'archive'), { recursive: true, mode: 0o700 });
    const { generation } = checkpointOf(before);
    copyFileSync(join(before, 'state.json'), join(stateDir, 'archive', `boot-one-${generation}.json`));
    copyFileSync(join(before, 'state.json'), join(stateDir, 'state.json'));
    expect((await openAt(stateDir)).warnings).toMatchObject([{ code: 'STATE_ARCHIVED', lapsed: [] }]);
    reboot(stateDir, 'boot-two');
    await openAt(stateDir);
    expect(readdirSync(join(stateDir, 'archive')).map((name) => name.slice(0, 8))).toEqual([
      'boot-one',
      'boot-two',
    ]);
  });

  it('is opened on any machine afterwards', async () => {
    const stateDir = makeStateDir();
    const before = await openAt(
      stateDir,
      {},
      { reservedMemory: [{ numaNode: 1, limits: { memory: '1Gi' } }] },
    );
    await before.acquire({ cpu: 8, name: 'old', owner: 'persistent' });
    reboot(stateDir, 'an-earlier-boot');
    const after = await openAt(stateDir, { memory: [8 * GI, null], packages: [7, 8] });
    expect(after.warnings.map(({ code }) => code)).toEqual(['STATE_ARCHIVED', 'SETTING_UNMET']);
    expect(checkpointOf(stateDir).assignments.cpus.map(([cpu, , socket]) => [cpu, socket])).toEqual(
      [...after.topology.cpus].map((cpu) => [cpu, 7]),
    );
  });
});

describe('CPUs that are offline', () => {
  it('stay on record for their grant, are unusable meanwhile, and are its own again when they come back', async () => {
    const stateDir = makeStateDir();
    const whole = await openAt(stateDir, {}, { reservedSystemCPUs: '0' });
    const grant = await whole.acquire({ cpu: 4, name: 'kept', owner: 'persistent' });
    expect(String(grant.cpus)).toBe('1-2,9-10');

    const part = await openAt(stateDir, { offline: '2,9,15' });
    expect(part.warnings).toEqual([
      {
        code: 'GRANT_FLAGGED',
        message: `grant ${grant.uid} (kept): CPUs 2,9 are offline`,
        uid: grant.uid,
        flags: [{ code: 'CPU_OFFLINE', message: 'CPUs 2,9 are offline', cpus: CpuSet.parse('2,9') }],
      },
    ]);
    expect(part.grant(grant.uid).flags()).toEqual(part.grants()[0]!.flags);
    expect(part.pod(grant.uid).flags()).toEqual(part.grants()[0]!.flags);
    expect([part.freeCpus(), part.sharedPool()].map(String)).toEqual(['3-8,11-14', '0,3-8,11-14']);
    // All remaining CPUs, except the shared ones.
    const rest = await part.acquire({ cpu: 10, name: 'rest', owner: 'persistent' });
    expect(String(rest.cpus)).toBe('3-8,11-14');
    expect((await errorOf(() => part.acquire({ cpu: 1 }))).code).toBe('ERR_INSUFFICIENT_CPUS');

    const again = await openAt(stateDir);
    expect(again.warnings).toEqual([]);
    expect(cpusIn(again)).toEqual({ kept: '1-2,9-10', rest: '3-8,11-14' });
    expect(String(again.freeCpus())).toBe('15');
    await again.release(grant.uid);
    expect(String(again.freeCpus())).toBe('1-2,9-10,15');
  });

  it('are flagged even after others have written the state, and do not look moved when they are back', async () => {
    const stateDir = makeStateDir();
    const whole = await openAt(stateDir);
    const grant = await whole.acquire({ cpu: 2, name: 'core', owner: 'persistent' });
    expect(String(grant.cpus)).toBe('0,8');
    // Without CPU 0 the core is named 8.
    for (const [offline, flags] of [
      ['0', ['CPU_OFFLINE']],
      ['0,8', ['CPU_OFFLINE']],
      ['8', ['CPU_OFFLINE']],
      ['1-7', []],
      ['', []],
    ] as const) {
      const manager = await openAt(stateDir, { offline });
      expect(flagsIn(manager)).toEqual({ core: flags });
      await commitAnything(manager);
      expect(flagsIn(manager)).toEqual({ core: flags });
    }
  });

  it('may be all CPUs of a grant, and all managed ones: the state opens and can be repaired', async () => {
    const stateDir = makeStateDir();
    const whole = await openAt(stateDir, {}, { managedCPUs: '0-1,8-9' });
    const grant = await whole.acquire({ cpu: 2, name: 'all', owner: 'persistent' });
    const part = await openAt(stateDir, { offline: '0-1,8-9' });
    expect(part.warnings.map(({ code }) => code)).toEqual(['SETTING_UNMET', 'GRANT_FLAGGED']);
    expect(part.sharedPool().isEmpty).toBe(true);
    expect((await errorOf(() => part.acquire({ cpu: 1 }))).code).toBe('ERR_INSUFFICIENT_CPUS');
    await part.configure({ managedCPUs: null });
    expect(String(part.sharedPool())).toBe('2-7,10-15');
    await part.release(grant.uid);
    expect(part.grants()).toEqual([]);
  });
});

describe('another numbering', () => {
  it.each<[string, MachineState]>([
    ['of the packages', { packages: [1, 0] }],
    ['of the packages, to ids never seen', { packages: [5, 3] }],
    ['of the NUMA nodes', { nodes: [1, 0] }],
    ['of the cores, as their first threads are offline', { offline: '1,4-6' }],
    ['of everything', { packages: [4, 5], nodes: [7, 6], offline: '1,4-6' }],
  ])('%s does not flag a grant of CPUs, now or later', async (_, state) => {
    const stateDir = makeStateDir();
    const whole = await openAt(stateDir, {}, { reservedSystemCPUs: '0-1,4-6' });
    await whole.acquire({ cpu: 1, name: 'thread', owner: 'persistent' });
    await whole.acquire({ cpu: 3, name: 'more', owner: 'persistent' });
    await whole.acquire({ cpu: 4, name: 'most', owner: 'persistent' });
    const before = cpusIn(whole);
    for (const at of [state, {}, state, { packages: [9, 8] as const }, {}]) {
      const manager = await openAt(stateDir, at);
      expect(flagsIn(manager)).toEqual({ thread: [], more: [], most: [] });
      await commitAnything(manager);
      expect(flagsIn(manager)).toEqual({ thread: [], more: [], most: [] });
      expect(cpusIn(manager)).toEqual(before);
    }
  });

  it('of the NUMA nodes flags a grant with memory, which keeps its place', async () => {
    const stateDir = makeStateDir();
    const before = await openAt(stateDir);
    const grant = await before.acquire({ cpu: 2, memory: '1Gi', name: 'near', owner: 'persistent' });
    expect(grant.memory).toMatchObject([{ nodes: [0] }]);
    const after = await openAt(stateDir, { nodes: [1, 0] });
    await commitAnything(after);
    expect(after.grants()[0]!.flags).toMatchObject([
      {
        code: 'CPU_MOVED',
        message: 'CPUs 0,8 are not where they were granted (CPU 0: NUMA node 0, now 1)',
        moves: [
          { cpu: 0, before: { core: 0, package: 0, node: 0 }, now: { core: 0, package: 0, node: 1 } },
          { cpu: 8 },
        ],
      },
    ]);
    expect(flagsIn(await openAt(stateDir))).toEqual({ near: [] });
  });
});

describe('CPUs at other places', () => {
  it('are flagged until they are back or released; later grants of them are not', async () => {
    const stateDir = makeStateDir();
    const before = await openAt(stateDir, {}, { reservedSystemCPUs: '7' });
    const grant = await before.acquire({ cpu: 8, name: 'package', owner: 'persistent' });
    await before.acquire({ cpu: 2, name: 'beside', owner: 'persistent' });
    expect(cpusIn(before)).toEqual({ package: '0-3,8-11', beside: '4,12' });

    const moved = { moved: '3,11' };
    const after = await openAt(stateDir, moved);
    for (let commits = 0; commits < 3; commits++) {
      expect(after.grants()[0]!.flags).toMatchObject([
        {
          code: 'CPU_MOVED',
          cpus: CpuSet.parse('3,11'),
          message: 'CPUs 3,11 are not where they were granted (CPU 3: package 0, now 1; NUMA node 0, now 1)',
        },
      ]);
      expect(flagsIn(after)).toEqual({ package: ['CPU_MOVED'], beside: [] });
      await commitAnything(after);
    }
    const back = await openAt(stateDir);
    await commitAnything(back);
    expect(flagsIn(back)).toEqual({ package: [], beside: [] });

    expect(flagsIn(await openAt(stateDir, moved))).toEqual({ package: ['CPU_MOVED'], beside: [] });
    await after.release(grant.uid);
    await after.acquire({ cpu: 4, name: 'next', owner: 'persistent' });
    await after.acquire({ cpu: 6, name: 'last', owner: 'persistent' });
    expect(Object.values(cpusIn(after)).join()).toContain('3');
    expect(flagsIn(await openAt(stateDir, moved))).toEqual({ beside: [], next: [], last: [] });
  });

  it('are flagged too if the threads of a core have become separate cores, or vice versa', async () => {
    for (const smt of [true, false]) {
      const stateDir = makeStateDir();
      const before = await openAt(stateDir, { smt });
      await before.acquire({ cpu: 8, name: 'package', owner: 'persistent' });
      const after = await openAt(stateDir, { smt: !smt });
      await commitAnything(after);
      const [was, is] = smt ? [0, 8] : [8, 0];
      const message = `CPUs 8-11 are not where they were granted (CPU 8: core ${was}, now ${is})`;
      expect(after.grants()[0]!.flags).toMatchObject([
        { code: 'CPU_MOVED', cpus: CpuSet.parse('8-11'), message },
      ]);
    }
  });
});

// Whatever grants come and go, and whichever process writes the state in between.
const halves = fc.constantFrom([0, 1] as const, [1, 0] as const, [6, 3] as const);
// One core of each package stays; a core loses its second thread, or both.
const offline = fc
  .record({ seconds: fc.subarray([8, 9, 10, 11, 12, 13, 14, 15]), cores: fc.subarray([1, 2, 3, 5, 6, 7]) })
  .map(({ seconds, cores }) =>
    CpuSet.from([...seconds, ...cores, ...cores.map((core) => core + 8)]).toString(),
  );
const times = fc.array(
  fc.record({
    state: fc.record({ offline, packages: halves, nodes: halves }),
    acquire: fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 2 }),
    release: fc.option(fc.nat(5)),
  }),
  { minLength: 1, maxLength: 6 },
);

describe('a machine that changes again and again', () => {
  it('never has a CPU granted twice or taken away, and flags exactly the offline CPUs', async () => {
    await fc.assert(
      fc.asyncProperty(times, async (list) => {
        const stateDir = makeStateDir('/dev/shm');
        let held: Record<string, string> = {};
        for (const { state, acquire, release } of list) {
          const manager = await openManager({
            topology: await machineAt(state),
            stateDir,
            reservedSystemCPUs: '0',
          });
          expect(cpusIn(manager)).toEqual(held);
          for (const cpu of acquire) {
            // Only CPUs: for memory another NUMA node is another place.
            await manager.acquire({ cpu, owner: 'persistent' }).catch((error) => {
              expect(error.code).toMatch(/ERR_INSUFFICIENT_CPUS|ERR_TOPOLOGY_AFFINITY/);
            });
          }
          const [uid] = manager
            .grants()
            .map((grant) => grant.uid)
            .slice(release ?? 100);
          if (uid !== undefined) await manager.release(uid);
          held = cpusIn(manager);
          const sets = manager.grants().map(({ cpus }) => cpus);
          const all = sets.reduce((union, cpus) => union.union(cpus), CpuSet.EMPTY);
          expect(all.size).toBe(sets.reduce((sum, cpus) => sum + cpus.size, 0));
          const { cpus: online } = manager.topology;
          expect(manager.sharedPool().equals(online.difference(all))).toBe(true);
          for (const { cpus, flags } of manager.grants()) {
            const away = cpus.difference(online);
            expect(flags.map(({ code }) => code)).toEqual(away.isEmpty ? [] : ['CPU_OFFLINE']);
            expect(flags).toMatchObject(away.isEmpty ? [] : [{ cpus: away }]);
          }
          manager.close();
        }
      }),
      { numRuns: budget({ all: 300, usual: 25 }) },
    );
  });

  it('has every CPU on record at its current place, or at its place when its grant got it', async () => {
    const [whole, part] = [await machineAt(), await machineAt({ offline: '2,10', moved: '3,11' })];
    const stateDir = makeStateDir();
    const manager = await openManager({ topology: whole, stateDir });
    await manager.acquire({ cpu: 8, owner: 'persistent' });
    const { assignments } = checkpointOf(stateDir);
    const once = withIdentities(assignments, assignments, part);
    expect(once.cpus.map(([cpu]) => cpu)).toEqual([...whole.cpus]);
    expect(withIdentities(once, once, part).cpus).toEqual(once.cpus);
    const pod = once.pods[0]!;
    expect(movedCpus(pod, once, part).map(({ cpu }) => cpu)).toEqual([3, 11]);
    const others = once.cpus.filter(([cpu]) => !cpusOf(pod).has(cpu));
    expect(others).toEqual(
      part.locations
        .filter(({ cpu }) => !cpusOf(pod).has(cpu))
        .map((at) => [at.cpu, at.core, at.package, at.node]),
    );
  });
});

describe('memory', () => {
  const shared = { containers: [guaranteed('main', { cpu: 2, memory: '12Gi' })] };

  it.each([-0.125, 0.125])(
    'that differs by %s GiB changes nothing for grants that still fit',
    async (drift) => {
      const stateDir = makeStateDir();
      const before = await openAt(stateDir, { memory: [8 * GI, 8 * GI] });
      await before.acquire({ cpu: 2, memory: '7Gi', name: 'one', owner: 'persistent' });
      const after = await openAt(stateDir, { memory: [(8 + drift) * GI, (8 - drift) * GI] });
      expect([after.warnings, flagsIn(after)]).toEqual([[], { one: [] }]);
      const free = after.memory().map((table) => table.free / GI);
      expect(free).toEqual([1 + drift, 8 - drift]);
    },
  );

  it('that has shrunk is flagged for all grants with some there; bookings stay, and no more are made', async () => {
    const stateDir = makeStateDir();
    const before = await openAt(stateDir);
    const one = await before.acquire({ cpu: 2, memory: '3Gi', name: 'one', owner: 'persistent' });
    await before.acquire({ cpu: 2, memory: '3Gi', name: 'two', owner: 'persistent' });
    const after = await openAt(stateDir, { memory: [4 * GI, 8 * GI] });
    expect(flagsIn(after)).toEqual({ one: ['MEMORY_GONE'], two: ['MEMORY_GONE'] });
    expect(after.grants()[0]!.flags).toEqual([
      {
        code: 'MEMORY_GONE',
        message: '3 GiB of memory on NUMA node 0: 6 GiB granted there, but only 4 GiB allocatable',
        resource: 'memory',
        nodes: [0],
        gone: [],
        bytes: 3 * GI,
        booked: 6 * GI,
        allocatable: 4 * GI,
      },
    ]);
    expect(after.memory()[0]).toMatchObject({ total: 4 * GI, reserved: 6 * GI, free: 0 });
    const next = await after.acquire({ cpu: 1, memory: '1Gi' });
    expect(next.memory).toMatchObject([{ nodes: [1] }]);
    await after.release(one.uid);
    expect(flagsIn(after)).toMatchObject({ two: [] });
    expect(after.memory()[0]).toMatchObject({ reserved: 3 * GI, free: 1 * GI });
    await next.release();
  });

  it('that is reserved for the system later is flagged as well', async () => {
    const manager = await openAt(makeStateDir());
    const grant = await manager.acquire({ cpu: 1, memory: '6Gi' });
    await manager.configure({ reservedMemory: [{ numaNode: 0, limits: { memory: '3Gi' } }] });
    expect(grant.flags()).toMatchObject([{ code: 'MEMORY_GONE', booked: 6 * GI, allocatable: 5 * GI }]);
    await grant.release();
    expect(grant.flags()).toEqual([]);
  });

  it('of missing nodes is flagged, given back in full, and available again when the node is back', async () => {
    const stateDir = makeStateDir();
    const before = await openAt(stateDir);
    const { uid } = await before.admit(shared, { owner: 'persistent' });
    const booked = checkpointOf(stateDir).assignments.memory;
    const without: MachineState = { memory: [8 * GI, null] };
    const after = await openAt(stateDir, without);
    expect(after.pod(uid).flags()).toMatchObject([
      {
        code: 'MEMORY_GONE',
        message:
          '12 GiB of memory on NUMA nodes 0-1: NUMA node 1 missing; 12 GiB granted there, but only 8 GiB allocatable',
        gone: [1],
      },
    ]);
    // A group that has lost a node takes no more.
    const small = { cpu: 1, memory: '64Mi' };
    expect((await errorOf(() => after.acquire(small))).code).toMatch(
      /ERR_INSUFFICIENT_MEMORY|ERR_TOPOLOGY_AFFINITY/,
    );
    await commitAnything(after);
    expect(checkpointOf(stateDir).assignments.memory).toEqual(booked);
    const back = await openAt(stateDir);
    expect([back.warnings, back.pod(uid).flags()]).toEqual([[], []]);
    await (await openAt(stateDir, without)).release(uid);
    expect(checkpointOf(stateDir).assignments.memory).toEqual({});
    await (await openAt(stateDir, without)).use(small, () => {});
  });

  it('is not missed if a machine does not report it', async () => {
    const stateDir = makeStateDir();
    const before = await openAt(stateDir);
    await before.acquire({ cpu: 1, memory: '6Gi', name: 'some', owner: 'persistent' });
    expect(flagsIn(await openAt(stateDir, { memory: [0, 0] }))).toEqual({ some: [] });
  });
});

describe('a device', () => {
  const nic = 'example.com/nic';

  it('that is unhealthy or no longer listed is flagged if its resource is listed', async () => {
    const stateDir = makeStateDir();
    const list = [{ id: 'a' }, { id: 'b' }, { id: 'c' }];
    const before = await openAt(stateDir, {}, { devices: { [nic]: list } });
    const grant = await before.acquire({ cpu: 1, resources: { [nic]: 3 }, name: 'net' });
    expect(grant.flags()).toEqual([]);
    before.registerDevices(nic, [{ id: 'a' }, { id: 'b', healthy: false }]);
    const flags = [
      {
        code: 'DEVICE_GONE',
        message: `${nic}: c missing; b unhealthy`,
        resource: nic,
        gone: ['c'],
        ill: ['b'],
      },
    ];
    expect(grant.flags()).toEqual(flags);
    expect(flagsIn(before)).toEqual({ net: ['DEVICE_GONE'] });
    // A manager without the resource does not judge.
    const other = await openAt(stateDir);
    expect(flagsIn(other)).toEqual({ net: [] });
    const later = await openAt(stateDir, {}, { devices: { [nic]: [{ id: 'a' }] } });
    expect(later.warnings).toMatchObject([{ code: 'GRANT_FLAGGED', flags: [{ gone: ['b', 'c'], ill: [] }] }]);
    // It is still the grant's own when it is back.
    later.registerDevices(nic, list);
    expect((await errorOf(() => later.acquire({ cpu: 1, resources: { [nic]: 1 } }))).code).toBe(
      'ERR_INSUFFICIENT_DEVICES',
    );
    await grant.release();
  });

  it('on the PCI bus is missed by all managers if the machine reports its devices', async () => {
    const stateDir = makeStateDir();
    const before = await openAt(stateDir, {}, { devices: { [nic]: { class: '0200' } } });
    await before.acquire({ cpu: 1, resources: { [nic]: 2 }, name: 'net', owner: 'persistent' });
    const without = await openAt(stateDir, { devices: ['0000:3b:00.0'] });
    expect(without.grants()[0]!.flags).toMatchObject([{ code: 'DEVICE_GONE', gone: ['0000:af:00.0'] }]);
    expect(flagsIn(await openAt(stateDir, { devices: [] }))).toEqual({ net: [] });
    expect(flagsIn(await openAt(stateDir))).toEqual({ net: [] });
  });
});

describe('settings', () => {
  it('that change leave every grant unchanged, but flagged if they no longer cover it', async () => {
    const manager = await openAt(makeStateDir());
    const grant = await manager.acquire({ cpu: 4, name: 'four' });
    expect(String(grant.cpus)).toBe('0-1,8-9');
    await manager.configure({ reservedSystemCPUs: '0,8', managedCPUs: '1-15' });
    expect(grant.flags()).toEqual([
      {
        code: 'CPU_RESERVED',
        message: 'CPUs 0,8 are now reserved for the system',
        cpus: CpuSet.parse('0,8'),
      },
      { code: 'CPU_UNMANAGED', message: 'CPU 0 is no longer managed', cpus: CpuSet.of(0) },
    ]);
    expect(cpusIn(manager)).toEqual({ four: '0-1,8-9' });
    await grant.release();
    expect([manager.freeCpus(), manager.sharedPool()].map(String)).toEqual(['1-7,9-15', '1-15']);
  });

  it('that name lost CPUs admit an opener that agrees; one that differs gets an error', async () => {
    const stateDir = makeStateDir();
    const options: ManagerOptions = {
      managedCPUs: '0-15',
      reservedSystemCPUs: '0,15',
      reservedMemory: [{ numaNode: 1, limits: { memory: '2Gi' } }],
    };
    await openAt(stateDir, {}, options);
    const lost: MachineState = { memory: [8 * GI, null], offline: '0' };
    const manager = await openAt(stateDir, lost, options);
    expect(manager.warnings).toEqual([
      {
        code: 'SETTING_UNMET',
        message: expect.stringContaining('CPUs 0,4-7,12-15, not online'),
        option: 'managedCPUs',
      },
      {
        code: 'SETTING_UNMET',
        message: 'reservedSystemCPUs names CPUs 0,15, not online at present',
        option: 'reservedSystemCPUs',
      },
      {
        code: 'SETTING_UNMET',
        message: 'reservedMemory names 2 GiB of memory on NUMA node 1, which has 0 B',
        option: 'reservedMemory',
      },
    ]);
    expect((await openAt(stateDir, lost)).settings().reservedMemory).toEqual({ 1: { memory: 2 * GI } });
    for (const other of [{ reservedSystemCPUs: '60000' }, { reservedMemory: [] }, { managedCPUs: null }]) {
      expect((await errorOf(() => openAt(stateDir, lost, { ...options, ...other }))).code).toBe(
        'ERR_CONFIG_CONFLICT',
      );
    }
  });

  it('keep lost CPUs in `configure`, and get no new CPUs that the machine lacks', async () => {
    const stateDir = makeStateDir();
    const reservedMemory = [{ numaNode: 1, limits: { memory: '2Gi' } }];
    await openAt(stateDir, {}, { reservedMemory });
    const manager = await openAt(stateDir, { memory: [8 * GI, null] });
    const more = [{ numaNode: 0, limits: { memory: '1Gi' } }, ...reservedMemory];
    expect((await manager.configure({ reservedMemory: more })).reservedMemory).toEqual({
      0: { memory: GI },
      1: { memory: 2 * GI },
    });
    const beyond = [{ numaNode: 1, limits: { memory: '3Gi' } }];
    expect((await errorOf(() => manager.configure({ reservedMemory: beyond }))).code).toBe(
      'ERR_INVALID_OPTION',
    );
    expect((await errorOf(() => manager.configure({ managedCPUs: '0-60' }))).code).toBe('ERR_INVALID_OPTION');
    expect((await manager.configure({ reservedMemory: [] })).reservedMemory).toEqual({});
  });

  it('by amount are met by the recorded number of CPUs, whichever are left', async () => {
    const stateDir = makeStateDir();
    const options: ManagerOptions = { systemReserved: { cpu: '1500m' } };
    const before = await openAt(stateDir, {}, options);
    const after = await openAt(stateDir, { offline: String(before.settings().reservedSystemCPUs) }, options);
    expect(after.settings().reservedSystemCPUs.equals(before.settings().reservedSystemCPUs)).toBe(true);
  });
});

describe.runIf(canMount && affinity().size > 1)('a manager that is open while a CPU goes offline', () => {
  it('does not grant it, flags its grant, and uses it again when it is back', async () => {
    // The kernel's list, as this process sees it.
    const [first, ...rest] = [...affinity()];
    const list = join(makeStateDir('/tmp'), '..', 'online');
    const setOnline = (cpus: CpuSet) => writeFileSync(list, `${cpus}\n`);
    setOnline(affinity());
    const script = `mount --bind ${list} /sys/devices/system/cpu/online && exec "$@"`;
    const agent = new Agent(['unshare', '-m', 'sh', '-c', script, 'sh']);
    await agent.tell('open', { stateDir: makeStateDir(), reservedSystemCPUs: String(first) });
    setOnline(CpuSet.of(first!));
    expect(await agent.tell('sharedPool')).toBe(String(first));
    const refused = await agent.ask('acquire', { cpu: 1 });
    expect(refused.error).toMatchObject({ code: 'ERR_INSUFFICIENT_CPUS' });
    setOnline(affinity());
    const { uid } = await agent.tell('acquire', { cpu: rest.length });
    setOnline(CpuSet.of(first!));
    const [grant] = await agent.tell('grants');
    expect(grant).toMatchObject({ uid, flags: [{ code: 'CPU_OFFLINE', cpus: String(CpuSet.from(rest)) }] });
    await agent.tell('release', { uid });
    expect(await agent.tell('sharedPool')).toBe(String(first));
    await agent.kill();
  });
});

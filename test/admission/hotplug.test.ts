// needs: process
// CPUs that come and go while a machine is in use. test/vm/guest/hotplug.test.mjs shows how the
// kernel treats threads then.
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { findPod } from '../../lib/account/assignments.js';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { substituteLostCpus } from '../../lib/admission/grants/substitute.js';
import type { Host } from '../../lib/admission/host.js';
import { assignmentsOf } from '../../lib/admission/on-record.js';
import { native } from '../../lib/base/native.js';
import { HintProviders } from '../../lib/decision/hints/hint-providers.js';
import { noEnforcer } from '../../lib/enforcement/enforcer.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { discover, Topology } from '../../lib/entries/topology.js';
import {
  type AcquireOptions,
  CpuSet,
  type Manager,
  type ManagerOptions,
  NumalignError,
  openManager,
  type PodSpec,
  pin,
} from '../../lib/index.js';
import { parseConfig } from '../../lib/input/config.js';
import { refreshHost, refreshTopology } from '../../lib/machine/topology-refresh.js';
import { NO_QUIETER } from '../../lib/quiet/quieter.js';
import { Ledger } from '../../lib/state/ledger.js';
import type { ParkableFollowers } from '../../lib/threads/followers.js';
import { budget } from '../support/budget.mjs';
import { machineAt } from '../support/changing-machine.js';
import { guaranteed } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';

const { placement } = parseConfig({});

/** The notices to the threads of a grant, in order. */
function recordedThreads(said: string[]): ParkableFollowers<string> {
  const say = (word: string) => (cpus: CpuSet) => {
    said.push(`${word} ${cpus}`);
    return `${word} ${cpus}`;
  };
  return { narrow: say('narrow'), widen: say('widen'), park: say('park'), checkCanLeave: () => {} };
}

/**
 * A machine of test/support/changing-machine.ts on which CPUs go offline and come back while it is
 * in use.
 */
class Machine {
  readonly manager: Manager;
  readonly said: string[] = [];
  readonly #host: Host;
  readonly #whole: Topology;
  #offline = CpuSet.EMPTY;

  static async open(options: ManagerOptions = {}): Promise<Machine> {
    const topology = await machineAt();
    const stateDir = makeStateDir();
    const manager = await openManager({ topology, stateDir, ...options });
    onTestFinished(() => manager.close());
    return new Machine(manager, topology, stateDir);
  }

  private constructor(manager: Manager, topology: Topology, stateDir: string) {
    this.manager = manager;
    // As if the process ran on it: a process that has seen a CPU knows its place, even while it is
    // offline.
    this.#whole = new Topology('machine', topology.handle);
    this.#host = {
      ...{
        topology: this.#whole,
        ledger: Ledger.open(stateDir),
        enforcer: noEnforcer(),
        quieter: NO_QUIETER,
      },
      ...{ managerId: 0, enforcement: parseConfig({}).enforcement },
      ...{ resources: new Map(), providers: new HintProviders(), lockTimeoutMs: 1000 },
    };
  }

  /** `isForgotten`: without their places, like in a topology that was loaded since. */
  async take(offline: string, isForgotten = false): Promise<void> {
    this.#offline = CpuSet.parse(offline);
    this.#host.topology = isForgotten ? await machineAt({ offline }) : this.#whole;
  }

  pod(uid: string): PodAssignment {
    return findPod(assignmentsOf(this.#host, this.#host.ledger.read()), uid)!;
  }

  async substitute(uid: string, threads = recordedThreads(this.said)) {
    const online = vi
      .spyOn(native, 'onlineCpus')
      .mockReturnValue(this.#whole.cpus.difference(this.#offline).words);
    try {
      return await substituteLostCpus(this.#host, this.pod(uid), placement, threads);
    } finally {
      online.mockRestore();
    }
  }

  cpusOf(uid: string): string[][] {
    return this.pod(uid).containers.map(({ cpus, held }) => [cpus, held].map(String));
  }
}

const texts = (found: { lost: CpuSet; substitutes: CpuSet; revoked: CpuSet; returned: CpuSet } | undefined) =>
  found && [found.lost, found.substitutes, found.revoked, found.returned].map(String);

describe('a grant whose CPUs go offline', () => {
  it('gets the same number of others, near the remaining ones, and its threads follow', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0,8' });
    const { uid } = await machine.manager.acquire({ cpu: 4, name: 'gateway' });
    expect(machine.cpusOf(uid)).toEqual([['1-2,9-10', '']]);
    expect(await machine.substitute(uid)).toBeUndefined();
    await machine.take('2,9');
    const generation = machine.manager.generation();
    const found = await machine.substitute(uid);
    expect(texts(found)).toEqual(['2,9', '3,11', '', '']);
    expect(found).toMatchObject({ error: null, isParked: false, followed: 'widen 1,3,10-11' });
    // No online CPU was given up: no thread has to leave before the commit.
    expect(machine.said).toEqual(['widen 1,3,10-11']);
    expect(machine.cpusOf(uid)).toEqual([['1,3,10-11', '']]);
    expect(machine.manager.generation()).toBe(generation + 1);
    expect(await machine.substitute(uid)).toBeUndefined();
    // They are free when they come back.
    await machine.take('');
    expect(await machine.substitute(uid)).toBeUndefined();
    expect(String(machine.manager.freeCpus())).toBe('2,4-7,9,12-15');
    expect(machine.manager.generation()).toBe(generation + 1);
  });

  it.each([false, true])('gets them even after a new discovery of the machine: %s', async (isForgotten) => {
    const machine = await Machine.open();
    const { uid } = await machine.manager.acquire({ cpu: 2 });
    expect(machine.cpusOf(uid)).toEqual([['0,8', '']]);
    await machine.take('0,8', isForgotten);
    expect(texts(await machine.substitute(uid))).toEqual(['0,8', '1,9', '', '']);
  });

  it('keeps its record if there is no room, with one warning until something changes', async () => {
    const machine = await Machine.open({ managedCPUs: '0-3' });
    const { uid } = await machine.manager.acquire({ cpu: 3 });
    expect(machine.cpusOf(uid)).toEqual([['0-2', '']]);
    const generation = machine.manager.generation();
    await machine.take('0');
    const found = await machine.substitute(uid);
    expect(texts(found)).toEqual(['0', '', '0', '']);
    expect(found?.error?.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(found).toMatchObject({ isParked: false, followed: 'widen 0-2' });
    expect(await machine.substitute(uid)).toBeUndefined();
    await machine.take('0-1');
    expect(texts(await machine.substitute(uid))).toEqual(['0-1', '', '0-1', '']);
    await machine.take('0-2');
    expect(await machine.substitute(uid)).toMatchObject({ isParked: true, followed: 'park 3' });
    await machine.take('0');
    expect(texts(await machine.substitute(uid))).toEqual(['0', '', '0', '1-2']);
    await machine.take('');
    expect(texts(await machine.substitute(uid))).toEqual(['', '', '', '0']);
    expect(await machine.substitute(uid)).toBeUndefined();
    expect(machine.said).toEqual(['widen 0-2', 'widen 0-2', 'park 3', 'widen 0-2', 'widen 0-2']);
    expect(machine.manager.generation()).toBe(generation);
    expect(machine.cpusOf(uid)).toEqual([['0-2', '']]);
  });

  it('gets them in every container of a pod that shares them, and in its bookings', async () => {
    const featureGates = { PodLevelResourceManagers: true };
    const machine = await Machine.open({ scope: 'pod', featureGates });
    const own = guaranteed('own', { cpu: 2, memory: '1Mi' });
    const limits = { cpu: 5, memory: '2Mi' };
    const containers = [own, { name: 'a' }, { name: 'b' }];
    const { uid } = await machine.manager.admit({ resources: { requests: limits, limits }, containers });
    const booking = () => String(machine.pod(uid).booking!.cpus);
    const parts = (shared: string) => ['0,8', '', shared, '', shared, ''];
    expect([...machine.cpusOf(uid).flat(), booking()]).toEqual([...parts('1-2,9'), '0-2,8-9']);
    await machine.take('9');
    expect(texts(await machine.substitute(uid))).toEqual(['9', '10', '', '']);
    expect([...machine.cpusOf(uid).flat(), booking()]).toEqual([...parts('1-2,10'), '0-2,8,10']);
    await machine.take('8');
    await machine.substitute(uid);
    expect(machine.cpusOf(uid)[1]).toEqual(['1-2,10', '']);
    expect(booking()).toBe(String(machine.pod(uid).containers[0]!.cpus.union(CpuSet.parse('1-2,10'))));
  });

  it('gets substitutes as soon as there is room', async () => {
    const machine = await Machine.open({ managedCPUs: '0-3' });
    const other = await machine.manager.acquire({ cpu: 1 });
    const { uid } = await machine.manager.acquire({ cpu: 2 });
    expect(machine.cpusOf(uid)).toEqual([['1-2', '']]);
    await machine.take('1-2');
    expect(await machine.substitute(uid)).toMatchObject({ isParked: true });
    await other.release();
    // Only one of the two was free: all or none.
    expect(await machine.substitute(uid)).toBeUndefined();
    await machine.take('1');
    expect(texts(await machine.substitute(uid))).toEqual(['1', '0', '', '']);
    expect(machine.said).toEqual(['park 3', 'widen 0,2']);
  });

  it('stays on the NUMA nodes of its hint if it was admitted as aligned', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0' });
    const acquire = (options: Partial<AcquireOptions>) => machine.manager.acquire({ cpu: 7, ...options });
    const aligned = await acquire({ policy: 'single-numa-node' });
    expect(machine.cpusOf(aligned.uid)).toEqual([['1-3,8-11', '']]);
    await machine.take('1');
    expect(texts(await machine.substitute(aligned.uid))).toEqual(['1', '', '1', '']);
    expect(machine.cpusOf(aligned.uid)).toEqual([['1-3,8-11', '']]);
    await aligned.release();
    const loose = await acquire({ policy: 'best-effort' });
    expect(machine.cpusOf(loose.uid)).toEqual([['1-3,8-11', '']]);
    expect(texts(await machine.substitute(loose.uid))).toEqual(['1', '4', '', '']);
  });

  it('holds the siblings of its CPUs, and releases those of lost CPUs', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0' });
    const { uid } = await machine.manager.acquire({ cpu: 2, smt: 'hold-sibling' });
    expect(machine.cpusOf(uid)).toEqual([['1-2', '9-10']]);
    await machine.take('1');
    expect(texts(await machine.substitute(uid))).toEqual(['1', '3', '', '']);
    expect(machine.cpusOf(uid)).toEqual([['2-3', '10-11']]);
    // Nothing runs on 10: it is the grant's when it comes back.
    await machine.take('10');
    expect(await machine.substitute(uid)).toBeUndefined();
    await machine.take('10-11,3', true);
    expect(texts(await machine.substitute(uid))).toEqual(['3', '1', '', '']);
    expect(machine.cpusOf(uid)).toEqual([['1-2', '9-10']]);
  });

  it('of whole cores gets whole cores, and its threads leave the remaining half before it is free', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0' });
    const options = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
    const { uid } = await machine.manager.acquire({ cpu: 4, ...options });
    expect(machine.cpusOf(uid)).toEqual([['1-2,9-10', '']]);
    await machine.take('9');
    expect(texts(await machine.substitute(uid))).toEqual(['9', '3,11', '', '']);
    expect(machine.said).toEqual(['narrow 2,10', 'widen 2-3,10-11']);
    await machine.take('9-11');
    expect(texts(await machine.substitute(uid))).toEqual(['10-11', '4-5,12-13', '', '']);
    expect(machine.said.slice(2)).toEqual(['park 0-3,6-8,14-15', 'widen 4-5,12-13']);
  });

  it('of isolated CPUs gets isolated ones', async () => {
    const machine = await Machine.open({ isolatedCPUs: '2-4' });
    const { uid } = await machine.manager.acquire({ cpu: 2, isolation: 'require' });
    expect(machine.cpusOf(uid)).toEqual([['2-3', '']]);
    await machine.take('2');
    expect(texts(await machine.substitute(uid))).toEqual(['2', '4', '', '']);
    await machine.take('2-3');
    expect(texts(await machine.substitute(uid))).toEqual(['3', '', '3', '']);
  });

  it('stays unchanged while a resize of it is announced', async () => {
    const machine = await Machine.open();
    const grant = await machine.manager.acquire({ cpu: 2 });
    const signal = new AbortController();
    const resized = grant.resize({ cpu: 3, noticeMs: 60_000, signal: signal.signal }).catch(() => {});
    await vi.waitFor(() => expect(machine.pod(grant.uid).upcoming).not.toBeNull(), { timeout: 20_000 });
    await machine.take('0');
    expect(await machine.substitute(grant.uid)).toBeUndefined();
    signal.abort();
    await resized;
    expect(texts(await machine.substitute(grant.uid))).toEqual(['0', '1', '', '']);
  });

  it('keeps its CPUs if a process cannot leave those that would be given up', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0' });
    const options = { cpuManagerPolicyOptions: { 'full-pcpus-only': true } };
    const { uid } = await machine.manager.acquire({ cpu: 4, ...options });
    const error = new NumalignError('ERR_CHILD_ALIVE', 'a child runs there', { value: uid, pid: 1 });
    const stuck = () => {
      throw error;
    };
    const threads = { ...recordedThreads(machine.said), narrow: stuck, checkCanLeave: stuck };
    for (const [offline, said] of [
      ['9', 'widen 1-2,9-10'],
      ['9-10', 'widen 1-2,9-10'],
      ['1-2,9-10', 'widen 3-4,11-12'],
    ] as const) {
      await machine.take(offline);
      const found = await machine.substitute(uid, threads);
      expect(machine.said.splice(0)).toEqual([said]);
      // If no online CPU has to be given up, nothing is in the way.
      const isGiven = offline === '1-2,9-10';
      expect(found?.error).toBe(isGiven ? null : error);
      expect(String(found?.revoked)).toBe(isGiven ? '' : offline);
      expect(machine.cpusOf(uid)).toEqual([[isGiven ? '3-4,11-12' : '1-2,9-10', '']]);
    }
  });
});

describe('a pod of several containers', () => {
  it('gets substitutes for each; its containers still share their shared CPUs', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0' });
    const pod: PodSpec = {
      uid: 'web',
      initContainers: [guaranteed('init', { cpu: 4 })],
      containers: [guaranteed('app', { cpu: 2 }), guaranteed('side', { cpu: 2 })],
    };
    await machine.manager.admit(pod, { owner: 'persistent' });
    expect(machine.cpusOf('web')).toEqual([
      ['1-2,9-10', ''],
      ['1,9', ''],
      ['2,10', ''],
    ]);
    await machine.take('9-10');
    expect(texts(await machine.substitute('web'))).toEqual(['9-10', '3,11', '', '']);
    expect(machine.cpusOf('web')).toEqual([
      ['1-3,11', ''],
      ['1,3', ''],
      ['2,11', ''],
    ]);
    expect(String(machine.pod('web').containers[0]!.reusable.cpus)).toBe('1-3,11');
  });

  it('gets them for those of its containers for which there is room', async () => {
    const machine = await Machine.open({ managedCPUs: '0-5' });
    const pod: PodSpec = {
      uid: 'web',
      containers: [guaranteed('a', { cpu: 1 }), guaranteed('b', { cpu: 3 })],
    };
    await machine.manager.admit(pod, { owner: 'persistent' });
    expect(machine.cpusOf('web').flat()).toEqual(['0', '', '1-3', '']);
    await machine.take('0,1-2');
    const found = await machine.substitute('web');
    expect(texts(found)).toEqual(['0-2', '4', '1-2', '']);
    expect(found?.error?.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(await machine.substitute('web')).toBeUndefined();
  });
});

describe('a grant with parts', () => {
  it('gets substitutes for the part that has lost CPUs, and for CPUs outside all parts', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0,8' });
    const { uid } = await machine.manager.acquire({ cpu: 4, parts: { main: 1, io: 1 } });
    expect(machine.cpusOf(uid).map(([cpus]) => cpus)).toEqual(['1', '9', '2,10']);
    await machine.take('9,10');
    expect(texts(await machine.substitute(uid))).toEqual(['9-10', '3,11', '', '']);
    expect(machine.cpusOf(uid).map(([cpus]) => cpus)).toEqual(['1', '3', '2,11']);
    expect(String(machine.pod(uid).booking?.cpus)).toBe('1-3,11');
    expect(String(machine.manager.grant(uid).part('io').cpus)).toBe('3');
  });
});

describe('whichever CPUs go offline', () => {
  const cpus = fc.uniqueArray(fc.nat(15), { maxLength: 12 }).map((ids) => CpuSet.from(ids));
  const request = fc.record({
    cpu: fc.integer({ min: 1, max: 5 }),
    policy: fc.constantFrom(
      'none' as const,
      'best-effort' as const,
      'restricted' as const,
      'single-numa-node' as const,
    ),
    kind: fc.constantFrom('plain' as const, 'hold' as const, 'whole' as const),
  });

  it('no CPU is granted twice, every grant keeps its number, and its lost CPUs have come back or are its own', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(request, { minLength: 1, maxLength: 4 }),
        fc.array(fc.record({ offline: cpus, isForgotten: fc.boolean() }), { minLength: 1, maxLength: 4 }),
        async (requests, times) => {
          const machine = await Machine.open();
          for (const { cpu, policy, kind } of requests) {
            const smt = kind === 'hold' ? { smt: 'hold-sibling' as const } : {};
            const options = { 'full-pcpus-only': kind === 'whole' };
            const asked = { cpu, policy, cpuManagerPolicyOptions: options, ...smt };
            await machine.manager
              .acquire(asked)
              .catch((error: NumalignError) => expect(error.code).toBeDefined());
          }
          const before = new Map(machine.manager.grants().map(({ uid }) => [uid, machine.pod(uid)]));
          for (const { offline, isForgotten } of times) {
            await machine.take(String(offline), isForgotten && offline.size < 16);
            for (const [uid, was] of before) {
              const now = machine.pod(uid);
              const found = await machine.substitute(uid);
              const after = machine.pod(uid);
              expect(after.containers[0]!.cpus.size).toBe(was.containers[0]!.cpus.size);
              const offlineNow = after.containers[0]!.cpus.intersection(offline);
              if (found) {
                expect(found.revoked).toEqual(offlineNow);
                expect(found.substitutes.intersects(offline)).toBe(false);
                expect(found.isParked).toBe(after.containers[0]!.cpus.isSubsetOf(offline));
                expect(found.error === null).toBe(found.revoked.isEmpty);
              } else expect(after).toEqual(now);
              if (after.policy === 'single-numa-node') {
                const { nodes } = after.containers[0]!.hint;
                expect(machine.manager.topology.nodesOf(after.containers[0]!.cpus)).toEqual(nodes);
              }
            }
            const all = machine.manager.grants().map((grant) => grant.cpus);
            const union = all.reduce((sum, set) => sum.union(set), CpuSet.EMPTY);
            expect(all.reduce((sum, set) => sum + set.size, 0)).toBe(union.size);
          }
          machine.manager.close();
        },
      ),
      { numRuns: budget({ all: 500, usual: 30 }) },
    );
  });
});

describe('a grant that moves when the kubelet takes CPUs', () => {
  const pods = (cpus: string) => [
    { namespace: 'default', name: 'web', containers: [{ name: 'main', cpus }] },
  ];

  it('gets the same number of others under its policy, and its threads leave first', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0,8' });
    const { uid } = await machine.manager.acquire({ cpu: 4, onTaken: 'move' });
    expect(machine.cpusOf(uid)).toEqual([['1-2,9-10', '']]);
    await machine.manager.recordKubelet(pods('2,9,11'));
    const found = await machine.substitute(uid);
    expect(texts(found)).toEqual(['2,9', '3-4', '', '']);
    expect(found).toMatchObject({ error: null, isParked: false });
    expect(machine.said).toEqual(['narrow 1,10', 'widen 1,3-4,10']);
    expect(machine.manager.grants()[0]!.flags).toEqual([]);
    expect(await machine.substitute(uid)).toBeUndefined();
    await machine.manager.recordKubelet([]);
    expect(await machine.substitute(uid)).toBeUndefined();
    expect(machine.cpusOf(uid)).toEqual([['1,3-4,10', '']]);
  });

  it('stays flagged if there is no room, its threads leave the lost CPUs, and it is tried again', async () => {
    const machine = await Machine.open({ managedCPUs: '0-3' });
    const { uid } = await machine.manager.acquire({ cpu: 2, onTaken: 'move' });
    expect(machine.cpusOf(uid)).toEqual([['0-1', '']]);
    await machine.manager.recordKubelet(pods('0,2'));
    const found = await machine.substitute(uid);
    expect(texts(found)).toEqual(['0', '', '0', '']);
    expect(found).toMatchObject({ isParked: false, followed: 'widen 1' });
    expect(found?.error?.code).toBe('ERR_INSUFFICIENT_CPUS');
    expect(machine.manager.grants()[0]!.flags).toMatchObject([{ code: 'CPU_TAKEN' }]);
    expect(await machine.substitute(uid)).toBeUndefined();
    await machine.manager.recordKubelet(pods('0-1'));
    expect(texts(await machine.substitute(uid))).toEqual(['0-1', '', '0-1', '']);
    expect(machine.said.at(-1)).toBe('park 2-3');
    await machine.manager.recordKubelet(pods('0'));
    expect(texts(await machine.substitute(uid))).toEqual(['0', '2', '', '']);
    expect(machine.said.slice(-2)).toEqual(['narrow 1', 'widen 1-2']);
    expect(machine.cpusOf(uid)).toEqual([['1-2', '']]);
  });

  it('comes back to its CPUs if the kubelet gives them back before there is room', async () => {
    const machine = await Machine.open({ managedCPUs: '0-3' });
    const { uid } = await machine.manager.acquire({ cpu: 3, onTaken: 'move' });
    await machine.manager.recordKubelet(pods('1'));
    expect(texts(await machine.substitute(uid))).toEqual(['1', '', '1', '']);
    await machine.manager.recordKubelet([]);
    expect(texts(await machine.substitute(uid))).toEqual(['', '', '', '1']);
    expect(machine.said).toEqual(['widen 0,2', 'widen 0-2']);
  });

  it('stays unchanged without consent', async () => {
    const machine = await Machine.open({ reservedSystemCPUs: '0,8' });
    const { uid } = await machine.manager.acquire({ cpu: 2, onTaken: 'keep' });
    await machine.manager.recordKubelet(pods('1'));
    expect(await machine.substitute(uid)).toBeUndefined();
    expect(machine.manager.grants()[0]!.flags).toMatchObject([{ code: 'CPU_TAKEN', cpus: CpuSet.of(1) }]);
    // Nor does it get one of the kubelet's for a CPU that goes offline.
    await machine.take('9');
    await machine.manager.recordKubelet(pods('2-3,10-11'));
    expect(texts(await machine.substitute(uid))).toEqual(['9', '4', '', '']);
  });

  it.each<[string, AcquireOptions]>([
    ['a word that is none', { cpu: 1, onTaken: 'leave' as 'move' }],
    ['an owner that is no process', { cpu: 1, onTaken: 'move', owner: 'persistent' }],
  ])('is not available to %s', async (_, options) => {
    const machine = await Machine.open();
    await expect(machine.manager.acquire(options)).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option: 'onTaken', value: options.onTaken },
    });
  });

  it('has the same number of CPUs in the end, none of the kubelet’s if there is room', async () => {
    const list = fc.uniqueArray(fc.nat(15), { maxLength: 6 }).map((ids) => CpuSet.from(ids));
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
        fc.array(list, { minLength: 1, maxLength: 4 }),
        async (counts, times) => {
          const machine = await Machine.open();
          for (const cpu of counts) await machine.manager.acquire({ cpu, onTaken: 'move' });
          const uids = machine.manager.grants().map(({ uid }) => uid);
          for (const taken of times) {
            await machine.manager.recordKubelet(pods(String(taken)));
            for (const [i, uid] of uids.entries()) {
              const found = await machine.substitute(uid);
              const { cpus } = machine.pod(uid).containers[0]!;
              expect(cpus.size).toBe(counts[i]);
              expect(found?.substitutes.intersects(taken)).not.toBe(true);
              if (found) expect(found.error === null).toBe(!cpus.intersects(taken));
            }
            const held = machine.manager.grants().map((grant) => grant.cpus);
            const all = held.reduce((sum, cpus) => sum.union(cpus), CpuSet.EMPTY);
            expect(held.reduce((sum, cpus) => sum + cpus.size, 0)).toBe(all.size);
            expect(machine.manager.sharedPool()).toEqual(
              CpuSet.parse('0-15').difference(all).difference(taken),
            );
          }
          machine.manager.close();
        },
      ),
      { numRuns: budget({ all: 300, usual: 20 }) },
    );
  });
});

describe('threads that wait in the shared pool', () => {
  it('still count as pinned, and come back to the grant', async () => {
    const all = affinity();
    const [first, second] = all;
    if (second === undefined) return;
    onTestFinished(() => void pin(all));
    const [one, other] = [CpuSet.of(first!), CpuSet.of(second)];
    native.pin({ tid: 0, cpus: one.words, grant: 'parked', part: '', owner: 'owner', replace: false });
    expect(native.parkGrant('parked', '', other.words).moved.length).toBe(1);
    expect(affinity()).toEqual(other);
    expect(native.followGrant('parked', '', one.words).moved.length).toBe(1);
    expect(affinity()).toEqual(one);
    native.parkGrant('parked', '', other.words);
    native.undoPin('parked', all.words);
    expect(affinity()).toEqual(all);
    expect(native.parkGrant('parked', '', one.words)).toEqual({ moved: [], unmovable: [] });
  });
});

describe('CPUs that come online', () => {
  // The CPUs of this machine without the last one: as before that came.
  async function earlier(): Promise<Topology | undefined> {
    const now = await discover();
    if (now.cpus.size < 2) return undefined;
    const last = [...now.cpus].at(-1)!;
    const { cpus, ...rest } = native.describeTopology(now.handle);
    const columns = cpus.length / now.cpus.size;
    const rows = cpus.filter((_, i) => cpus[i - (i % columns)] !== last);
    const allowed = now.allowed.difference(CpuSet.of(last)).words;
    return new Topology('machine', native.createTopology({ ...rest, cpus: rows, allowed }));
  }

  it('are found by a new discovery, and only then', async () => {
    const now = await discover();
    expect(await refreshTopology(now)).toBeUndefined();
    const old = await earlier();
    if (!old) return;
    const found = await refreshTopology(old);
    expect(found?.cpus).toEqual(now.cpus);
    expect(found?.isSimulated).toBe(false);
    expect(await refreshTopology(await machineAt({ offline: '3' }))).toBeUndefined();
  });

  it('are known to an open manager and its grants from then on', async () => {
    const old = await earlier();
    if (!old) return;
    const host = { topology: old };
    const added = await refreshHost(host);
    expect(added).toEqual(host.topology.cpus.difference(old.cpus));
    expect(added.size).toBe(1);
    expect(await refreshHost(host)).toEqual(CpuSet.EMPTY);
  });
});

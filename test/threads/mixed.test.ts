// needs: machine
// Threads of a mixed grant in the shared pool, on two CPUs: one of the grant, one of the pool.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { MachineSettings } from '../../lib/account/assignments.js';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import type { Machine } from '../../lib/enforcement/enforcer.js';
import { GrantGroup } from '../../lib/enforcement/grant-group.js';
import { affinity, threads } from '../../lib/entries/diagnostics.js';
import { type CpuSet, type Grant, type Manager, type ManagerOptions, openManager } from '../../lib/index.js';
import { placeThreads } from '../../lib/threads/placement.js';
import { isUsable } from '../cgroups/own-root.js';
import { cgroupOf, ownCgroups } from '../enforcement/members.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { EVERYTHING } from './everything.js';

async function opened(options: ManagerOptions = {}): Promise<Manager> {
  const manager = await openManager({ stateDir: makeStateDir(), managedCPUs: '0-1', ...options });
  onTestFinished(() => manager.close());
  return manager;
}

async function mixed(manager: Manager): Promise<Grant> {
  const grant = await manager.acquire({ cpu: 1.5, mixed: true });
  onTestFinished(async () => void (await grant.release()));
  return grant;
}

/** One that closes what a manager before had open may end at any time. */
const masksByThread = () => new Map(threads().map(({ tid, cpus }) => [tid, String(cpus)]));

/** The masks of threads other than the main one, and than those of libuv's pool; each once. */
function othersOn(): string[] {
  const others = threads().filter(({ role }) => role !== 'main' && role !== 'pool');
  return [...new Set(others.map(({ cpus }) => String(cpus)))];
}
const OTHERS = { v8: 'shared', others: 'shared' } as const;
const texts = (...sets: CpuSet[]) => sets.map(String);

describe('placeThreads of a mixed grant', () => {
  it.each([true, false])(
    'puts other threads into the shared pool, where the process is a member (%s) or becomes one',
    async (sharedMember) => {
      const manager = await opened({ sharedMember });
      const grant = await mixed(manager);
      grant.pin();
      expect(othersOn()).toEqual(texts(grant.cpus));
      const result = await grant.placeThreads(OTHERS);
      expect([String(affinity()), ...othersOn()]).toEqual(texts(grant.cpus, manager.sharedPool()));
      expect(result.others.moved.length).toBeGreaterThan(0);
      for (const { cpus } of result.others.moved) expect(cpus).toEqual(manager.sharedPool());
      expect(result.main.moved).toMatchObject([{ tid: process.pid, cpus: grant.cpus }]);
      expect(manager.sharedMembers()).toMatchObject([{ kind: 'process', pid: process.pid }]);
    },
  );

  it('leaves them there when the grant is reconciled, and they follow the pool', async () => {
    const manager = await opened();
    const grant = await mixed(manager);
    await grant.placeThreads(OTHERS);
    expect(await manager.reconcile()).toMatchObject({ repaired: 0, drifts: [] });
    expect(othersOn()).toEqual(texts(manager.sharedPool()));
    await grant.release();
    expect(othersOn()).toEqual(['0-1']);
  });

  it('moves them back to the grant when it is pinned, or they are placed there', async () => {
    const grant = await mixed(await opened());
    for (const back of [() => grant.pin(), () => grant.placeThreads()]) {
      await grant.placeThreads(OTHERS);
      await back();
      expect(othersOn()).toEqual(texts(grant.cpus));
    }
  });

  it('puts Workers there, even later ones', async () => {
    const manager = await opened();
    const grant = await mixed(manager);
    const worker = () => {
      const started = grant.worker('setInterval(() => {}, 1000)', { eval: true });
      onTestFinished(async () => void (await started.terminate()));
      return once(started, 'online');
    };
    const workersOn = () => threads().flatMap(({ role, cpus }) => (role === 'worker' ? String(cpus) : []));
    await worker();
    expect(workersOn()).toEqual(texts(grant.cpus));
    await grant.placeThreads({ workers: 'shared' });
    expect(workersOn()).toEqual(texts(manager.sharedPool()));
    await worker();
    await expect.poll(workersOn).toEqual(texts(manager.sharedPool(), manager.sharedPool()));
  });

  it('takes a thread out of its scheduling class with its CPUs', async () => {
    const grant = await mixed(await opened());
    grant.pin();
    const { tid } = threads().find(({ role }) => role === 'other' || role === 'v8')!;
    grant.schedule({ nice: 5, threads: tid });
    const niceOf = () =>
      Number(readFileSync(`/proc/self/task/${tid}/stat`, 'utf8').split(') ')[1]!.split(' ')[16]);
    expect(niceOf()).toBe(5);
    await grant.placeThreads(OTHERS);
    expect(niceOf()).toBe(0);
  });

  it('refuses it for a grant without a booking there, and moves nothing', async () => {
    const manager = await opened();
    const grant = await manager.acquire({ cpu: 1 });
    onTestFinished(async () => void (await grant.release()));
    const before = masksByThread();
    expect(await errorOf(() => grant.placeThreads(OTHERS))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { value: 'shared', valid: expect.stringContaining('mixed: true') },
    });
    for (const { tid, cpus } of threads()) expect(String(cpus)).toBe(before.get(tid));
  });
});

describe.skipIf(!isUsable)('placeThreads of a mixed grant with a cgroup of v1', () => {
  it('puts the threads of the grant into its cgroup, and the others into that of the pool', async () => {
    const manager = await opened(ownCgroups());
    const grant = await mixed(manager);
    expect(grant.enforcement).toBe('cpuset');
    const home = cgroupOf('self');
    const groups = () => {
      const others = threads().filter(({ role }) => role !== 'main' && role !== 'pool');
      const found = others.map(({ tid }) => readFileSync(`/proc/self/task/${tid}/cpuset`, 'utf8').trim());
      return [...new Set(found)];
    };
    for (const before of [() => {}, () => grant.pin()]) {
      before();
      await grant.placeThreads(OTHERS);
      expect(cgroupOf('self')).toContain(grant.uid);
      expect([groups(), othersOn()]).toEqual([[home], texts(manager.sharedPool())]);
    }
    await grant.release();
    expect([groups(), othersOn(), cgroupOf('self')]).toEqual([[home], ['0-1'], home]);
  });

  it('lets a program that was started on the grant put its threads there', async () => {
    const manager = await opened(ownCgroups());
    const grant = await mixed(manager);
    const program = `
      const { grant } = await import(${JSON.stringify(import.meta.resolve('../../dist/preload.js'))});
      const { threads } = await import(${JSON.stringify(import.meta.resolve('../../dist/entries/diagnostics.js'))});
      await grant.placeThreads({ v8: 'shared', others: 'shared' });
      const shown = threads().filter(({ role }) => role !== 'pool').map(({ role, cpus }) => [role === 'main', String(cpus)].join());
      console.log([...new Set(shown)].sort().join(' '));`;
    const child = grant.spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const ended = once(child, 'exit');
    const output = await text(child.stdout!);
    await ended;
    expect(output).toBe(`false,${manager.sharedPool()} true,${grant.cpus}\n`);
  });
});

describe('placeThreads of a mixed grant with a cgroup of v2, which has all threads of a process', () => {
  it('refuses to put some into the shared pool, and moves nothing', async () => {
    const hierarchy = { version: 2 };
    const machine = { enforcer: { cpusetsOf: () => ({ hierarchy }) } } as unknown as Machine;
    const enforcement = { level: 'partition', target: '/numalign/one' };
    const pod = { uid: 'one', enforcement, containers: [] } as unknown as PodAssignment;
    const group = GrantGroup.of(machine, {} as MachineSettings, pod);
    const share = () => Promise.reject(new Error('never called'));
    const before = masksByThread();
    const placed = () => placeThreads(() => ({ ...EVERYTHING, group, share }), { others: 'shared' });
    expect(await errorOf(placed)).toMatchObject({
      code: 'ERR_ENFORCEMENT',
      details: { value: 'partition', valid: "a grant with the option enforcement: 'members'" },
    });
    for (const { tid, cpus } of threads()) expect(String(cpus)).toBe(before.get(tid));
  });
});

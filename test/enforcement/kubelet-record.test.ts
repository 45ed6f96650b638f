// needs: machine
// The shared members of this machine leave CPUs that the kubelet has given out.
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CpuSet } from '../../lib/index.js';
import { ALL, idler, isUsable } from '../cgroups/own-root.js';
import { Agent } from '../support/agent.js';
import { makeStateDir } from '../support/state-dir.js';
import { groupPath, masksOf, opened, ownCgroups, strangeGroup } from './members.js';

const last = CpuSet.of(ALL.toArray().at(-1)!);

const pods = (cpus: CpuSet | string) => [
  { namespace: 'default', name: 'web', containers: [{ name: 'main', cpus }] },
];

describe.skipIf(!isUsable)('a shared member', () => {
  it('has left the CPUs of a kubelet’s pod once they are on record, and comes back', async () => {
    const manager = await opened({ stateDir: makeStateDir() });
    const pid = idler();
    await manager.addSharedMember({ pid });
    await manager.recordKubelet(pods(last));
    const rest = String(ALL.difference(last));
    expect([masksOf(pid), masksOf(process.pid)]).toEqual([[rest], [rest]]);
    expect(await manager.reconcile()).toMatchObject({ repaired: 0 });
    await manager.recordKubelet([]);
    expect([masksOf(pid), masksOf(process.pid)]).toEqual([[`${ALL}`], [`${ALL}`]]);
  });

  it('that registers later does not run there, nor does one of another process', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir, sharedMember: false });
    await manager.recordKubelet(pods(last));
    const agent = new Agent();
    await agent.tell('open', { stateDir });
    const rest = String(ALL.difference(last));
    await expect.poll(() => masksOf(agent.process.pid!)).toEqual([rest]);
    await manager.recordKubelet(null);
    expect(masksOf(agent.process.pid!)).toEqual([`${ALL}`]);
  });

  it('by its cgroup has the CPUs of the shared pool without the kubelet’s', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups(), sharedMember: false });
    const pid = idler();
    await manager.addSharedMember({ pid });
    await manager.recordKubelet(pods(last));
    const pool = () => readFileSync(join(groupPath('shared'), 'cpuset.cpus'), 'utf8').trim();
    expect([pool(), ...masksOf(pid)]).toEqual(Array(2).fill(String(ALL.difference(last))));
    await manager.recordKubelet(null);
    expect(masksOf(pid)).toEqual([`${ALL}`]);
  });

  it('that cannot leave does not block the record of the kubelet’s CPUs', async () => {
    const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
    const pid = idler();
    writeFileSync(join(strangeGroup(String(last)), 'cgroup.procs'), String(pid));
    await manager.addSharedMember({ pid });
    expect(await manager.recordKubelet(pods(last))).toMatchObject({ pods: [{ name: 'web' }] });
    expect(masksOf(pid)).toEqual([String(last)]);
  });

  it('stays if the kubelet has all shared CPUs, and moves once some are left', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups(), sharedMember: false });
    const pid = idler();
    await manager.addSharedMember({ pid });
    await manager.recordKubelet(pods(ALL));
    expect(String(manager.sharedPool())).toBe('');
    expect(masksOf(pid)).toEqual([`${ALL}`]);
    await manager.recordKubelet(pods(last));
    expect(masksOf(pid)).toEqual([String(ALL.difference(last))]);
  });

  it('pinned to a grant that loses CPUs to the kubelet stays there', async () => {
    const manager = await opened({ stateDir: makeStateDir(), reservedSystemCPUs: `${ALL.first}` });
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    await manager.recordKubelet(pods(grant.cpus));
    expect(masksOf(process.pid)).toEqual([String(grant.cpus)]);
    expect(grant.flags()).toMatchObject([{ code: 'CPU_TAKEN', pods: ['default/web'] }]);
    await grant.release();
    expect(masksOf(process.pid)).toEqual([String(ALL.difference(grant.cpus))]);
    await manager.recordKubelet([]);
    expect(masksOf(process.pid)).toEqual([`${ALL}`]);
  });
});

describe.skipIf(!isUsable)('a grant that moves when the kubelet takes its CPUs', () => {
  it('leaves them at the next round, waits if there is no room, and comes back', async () => {
    const manager = await opened({ stateDir: makeStateDir(), cpuManagerReconcilePeriod: 0 });
    const grant = await manager.acquire({ cpu: 1, onTaken: 'move' });
    grant.pin();
    const mine = String(grant.cpus);
    await manager.recordKubelet(pods(mine));
    expect(masksOf(process.pid)).toEqual([mine]);
    const { hotplug } = await manager.reconcile();
    expect(hotplug).toMatchObject([{ uid: grant.uid, isParked: true }]);
    expect(masksOf(process.pid)).toEqual([String(ALL.difference(grant.cpus))]);
    expect(await manager.reconcile()).toMatchObject({ repaired: 0, hotplug: [] });
    await manager.recordKubelet([]);
    expect((await manager.reconcile()).hotplug).toMatchObject([{ isParked: false, returned: grant.cpus }]);
    expect(masksOf(process.pid)).toEqual([mine]);
    await grant.release();
  });

  it('moves by itself, a second after the kubelet’s pods are on record', async () => {
    const manager = await opened({ stateDir: makeStateDir() });
    const grant = await manager.acquire({ cpu: 1, onTaken: 'move' });
    grant.pin();
    const moved = once(manager, 'hotplug');
    await manager.recordKubelet(pods(grant.cpus));
    expect(await moved).toMatchObject([{ uid: grant.uid, lost: grant.cpus }]);
    await grant.release();
  });

  it('stays while no CPU is left', async () => {
    const manager = await opened({ stateDir: makeStateDir(), cpuManagerReconcilePeriod: 0 });
    const grant = await manager.acquire({ cpu: 1, onTaken: 'move' });
    grant.pin();
    await manager.recordKubelet(pods(ALL));
    await manager.reconcile();
    expect(masksOf(process.pid)).toEqual([String(grant.cpus)]);
    expect(grant.flags()).toMatchObject([{ code: 'CPU_TAKEN' }]);
    await manager.recordKubelet([]);
    await manager.reconcile();
    expect(masksOf(process.pid)).toEqual([String(grant.cpus)]);
    await grant.release();
    expect(masksOf(process.pid)).toEqual([`${ALL}`]);
  });
});

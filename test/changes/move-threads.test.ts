// needs: machine
// Moves on this machine: threads, processes and buffers of a grant follow it.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity, type MoveEnd, threads } from '../../lib/entries/diagnostics.js';
import { type Grant, type Manager, openManager, pin } from '../../lib/index.js';
import { hierarchy, isUsable } from '../cgroups/own-root.js';
import { cgroupOf, ownCgroups, strangeGroup } from '../enforcement/members.js';
import { abandonMove, moveAnyway, realHostOf, release } from '../support/moves.mjs';
import { makeStateDir } from '../support/state-dir.js';

const ALL = affinity();
const [FIRST, SECOND] = ALL.toArray().map(String) as [string, string];

beforeEach(() => onTestFinished(() => void pin(ALL)));

async function acquire(
  options: object = {},
  settings: object = {},
): Promise<{ manager: Manager; grant: Grant; other: string }> {
  const manager = await openManager({ stateDir: makeStateDir(), unmovableMembers: 'report', ...settings });
  const grant = await manager.acquire({ cpu: 1, movable: true, name: 'mover', ...options });
  onTestFinished(async () => {
    await release(manager, 'asker');
    await manager.grant(grant.uid).release();
    manager.close();
  });
  return { manager, grant, other: String(grant.cpus) === FIRST ? SECOND : FIRST };
}

const maskOf = (pid: number) =>
  /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];

function sleeper(): number {
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child.pid!;
}

describe('a move', () => {
  it('takes every thread of the process along', async () => {
    const { manager, grant, other } = await acquire();
    grant.pin();
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true });
    onTestFinished(async () => void (await worker.terminate()));
    await new Promise((resolve) => worker.once('online', resolve));
    const end = new Promise<MoveEnd>((resolve) => grant.once('moveEnd', resolve));
    await moveAnyway(realHostOf(manager), grant.uid, other);
    expect((await end).error).toBeNull();
    expect((await end).threads!.moved.length).toBeGreaterThan(1);
    expect(new Set(threads().map(({ cpus }) => String(cpus)))).toEqual(new Set([other]));
    expect(String(grant.cpus)).toBe(other);
    expect(manager.grants().find(({ uid }) => uid === 'asker')!.cpus.size).toBe(1);
  });

  it('takes children along', async () => {
    const { manager, grant, other } = await acquire();
    const child = grant.spawn('sleep', ['600'], { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    expect(maskOf(child.pid!)).not.toBe(other);
    await moveAnyway(realHostOf(manager), grant.uid, other);
    expect(maskOf(child.pid!)).toBe(other);
  });

  it('takes processes along that are attached', async () => {
    const { manager, grant, other } = await acquire({ owner: 'persistent' });
    const pid = sleeper();
    await grant.attach(pid);
    expect(maskOf(pid)).toBe(String(grant.cpus));
    await moveAnyway(realHostOf(manager), grant.uid, other);
    expect(maskOf(pid)).toBe(other);
  });

  it('takes a single thread along', async () => {
    const { manager, grant, other } = await acquire();
    grant.pin({ threads: 'current' });
    await moveAnyway(realHostOf(manager), grant.uid, other);
    expect(String(affinity())).toBe(other);
  });

  it.each([
    ['before it has begun', false],
    ['after it has begun', true],
  ])('of a process that dies %s leaves all of the grant in one place', async (_, hasBegun) => {
    const { manager, grant, other } = await acquire({ owner: 'persistent' });
    const before = String(grant.cpus);
    const pid = sleeper();
    await grant.attach(pid);
    // Like a killed mover may have left it, at any point.
    const host = realHostOf(manager);
    await abandonMove(host, grant.uid, other, hasBegun);
    execFileSync('taskset', ['-pc', hasBegun ? before : other, String(pid)], { stdio: 'ignore' });
    await release(manager, 'nothing');
    const place = hasBegun ? other : before;
    expect(manager.grants().map(({ cpus, upcoming }) => [String(cpus), upcoming])).toEqual([[place, null]]);
    expect(maskOf(pid)).toBe(place);
  });
});

describe.skipIf(!isUsable)('a move with a process that cannot leave', () => {
  it('does not happen, and everything stays in place', async () => {
    const { manager, grant, other } = await acquire({ owner: 'persistent' });
    const before = String(grant.cpus);
    const [bound, free] = [sleeper(), sleeper()];
    for (const pid of [free, bound]) await grant.attach(pid);
    const cgroup = strangeGroup(before);
    writeFileSync(join(cgroup, 'cgroup.procs'), String(bound));
    const end = new Promise<MoveEnd>((resolve) => grant.once('moveEnd', resolve));
    await moveAnyway(realHostOf(manager), grant.uid, other);
    expect((await end).error).toMatchObject({ code: 'ERR_SYSCALL', details: { value: bound } });
    await release(manager, 'asker');
    expect(manager.grants().map(({ cpus, upcoming }) => [String(cpus), upcoming])).toEqual([[before, null]]);
    expect([maskOf(free), maskOf(bound)]).toEqual([before, before]);
  });
});

describe.skipIf(!isUsable)('a move of a grant with a cgroup', () => {
  const cpusOf = (pid: number) =>
    readFileSync(join(hierarchy!.mount.point, cgroupOf(pid), 'cpuset.cpus'), 'utf8').trim();

  it('gives the cgroup the new CPUs, and none of the old ones', async () => {
    const { manager, grant, other } = await acquire({}, ownCgroups());
    grant.pin();
    const cgroup = cgroupOf(process.pid);
    expect(cpusOf(process.pid)).toBe(String(grant.cpus));
    await moveAnyway(realHostOf(manager), grant.uid, other);
    expect(cgroupOf(process.pid)).toBe(cgroup);
    expect(cpusOf(process.pid)).toBe(other);
    expect(new Set(threads().map(({ cpus }) => String(cpus)))).toEqual(new Set([other]));
  });

  it('takes processes along that are attached', async () => {
    const { manager, grant, other } = await acquire({ owner: 'persistent' }, ownCgroups());
    const pid = sleeper();
    await grant.attach(pid);
    await moveAnyway(realHostOf(manager), grant.uid, other);
    expect(cpusOf(pid)).toBe(other);
    expect(maskOf(pid)).toBe(other);
  });
});

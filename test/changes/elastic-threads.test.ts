// needs: machine
// Threads and children of a grant of a range, on this machine.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { affinity, threads } from '../../lib/entries/diagnostics.js';
import { CpuSet, type Grant, type GrantEvents, type Manager, openManager, pin } from '../../lib/index.js';
import { hierarchy, isUsable } from '../cgroups/own-root.js';
import { cgroupOf, ownCgroups } from '../enforcement/members.js';
import { moveAnyway, realHostOf, release } from '../support/moves.mjs';
import { makeStateDir } from '../support/state-dir.js';

type ResizeEvent = GrantEvents['resize'][0];

const ALL = affinity();
const BOTH = ALL.toArray().slice(0, 2).join();

beforeEach(() => onTestFinished(() => void pin(ALL)));

async function acquire(settings: object = {}): Promise<{ manager: Manager; grant: Grant }> {
  const manager = await openManager({ stateDir: makeStateDir(), unmovableMembers: 'report', ...settings });
  const grant = await manager.acquire({ cpu: { min: 1, max: 2 }, name: 'elastic' });
  onTestFinished(async () => {
    await manager.grant(grant.uid).release();
    await release(manager, 'asker');
    manager.close();
  });
  return { manager, grant };
}

const resized = (grant: Grant) => new Promise<ResizeEvent>((resolve) => grant.once('resize', resolve));
const masks = () => new Set(threads().map(({ cpus }) => String(cpus)));
const maskOf = (pid: number) =>
  /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];

describe('a grant of a range that grows and shrinks', () => {
  it('keeps all threads of the process on its current CPUs', async () => {
    const { manager, grant } = await acquire();
    grant.pin();
    const worker = new Worker('setInterval(() => {}, 1000)', { eval: true });
    onTestFinished(async () => void (await worker.terminate()));
    await new Promise((resolve) => worker.once('online', resolve));
    const first = String(grant.cpus);
    const grown = resized(grant);
    await moveAnyway(realHostOf(manager), grant.uid, BOTH);
    expect(await grown).toMatchObject({ for: null });
    expect(masks()).toEqual(new Set([String(grant.cpus)]));
    expect(grant.cpus.size).toBe(2);
    const shrunk = resized(grant);
    await moveAnyway(realHostOf(manager), grant.uid, first);
    expect((await shrunk).threads.moved.length).toBeGreaterThan(1);
    expect(await shrunk).toMatchObject({ for: 'asker' });
    expect(masks()).toEqual(new Set([first]));
  });

  it('makes children leave the CPUs that it gives up', async () => {
    const { manager, grant } = await acquire();
    const first = String(grant.cpus);
    await moveAnyway(realHostOf(manager), grant.uid, BOTH);
    const child = grant.spawn('sleep', ['600'], { stdio: 'ignore' });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
    });
    expect(maskOf(child.pid!)).not.toBe(first);
    await moveAnyway(realHostOf(manager), grant.uid, first);
    expect(maskOf(child.pid!)).toBe(first);
  });
});

describe.skipIf(!isUsable)('a grant of a range with a cgroup', () => {
  const cpusOf = (pid: number) =>
    readFileSync(join(hierarchy!.mount.point, cgroupOf(pid), 'cpuset.cpus'), 'utf8').trim();
  const listOf = (list: string) => CpuSet.parse(list).toString();

  it('keeps its cgroup and all threads on its current CPUs', async () => {
    const { manager, grant } = await acquire(ownCgroups());
    grant.pin();
    const first = String(grant.cpus);
    expect(cpusOf(process.pid)).toBe(first);
    await moveAnyway(realHostOf(manager), grant.uid, BOTH);
    expect(cpusOf(process.pid)).toBe(listOf(BOTH));
    expect(masks()).toEqual(new Set([listOf(BOTH)]));
    await moveAnyway(realHostOf(manager), grant.uid, first);
    expect(cpusOf(process.pid)).toBe(first);
    expect(masks()).toEqual(new Set([first]));
  });
});

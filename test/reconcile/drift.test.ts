// needs: machine
// Other programs change masks and cgroups of numalign, on the real kernel.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { native } from '../../lib/base/native.js';
import { KERNEL_FILES } from '../../lib/cgroups/files/cgroup-files.js';
import { affinity, type Drift, threadId, threads } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, type Manager, type ManagerOptions, openManager, pin } from '../../lib/index.js';
import { hierarchy, idler, isUsable, ownRoot, ROOT } from '../cgroups/own-root.js';
import { makeStateDir } from '../support/state-dir.js';
import { uncaught } from '../support/uncaught.js';

const ALL = affinity();
const RESERVED = CpuSet.of(ALL.first!);
const CPU = ALL.difference(RESERVED).first!;
const canPlace = ALL.size > 1;
// So that rounds are those that a test runs.
const BY_HAND = { cpuManagerReconcilePeriod: 0 };

async function open(
  options: ManagerOptions = {},
): Promise<{ manager: Manager; drifts: Drift[]; stateDir: string }> {
  const stateDir = options.stateDir ?? makeStateDir();
  const manager = await openManager({ stateDir, reservedSystemCPUs: RESERVED, ...BY_HAND, ...options });
  const drifts: Drift[] = [];
  manager.on('drift', (drift) => drifts.push(drift));
  onTestFinished(async () => {
    for (const { uid, alive } of manager.grants()) if (alive) await manager.release(uid);
    manager.close();
  });
  return { manager, drifts, stateDir };
}

/** From outside, like another program. */
const taskset = (cpus: CpuSet | string, tid: number) =>
  execFileSync('taskset', ['-pc', String(cpus), String(tid)], { stdio: 'ignore' });

/** Of this process, and not the main thread, with whose CPUs threads are born. */
const otherThread = () => threads().find(({ tid }) => tid !== threadId())!.tid;

const maskOf = (pid: number, tid = pid) => {
  const status = readFileSync(`/proc/${pid}/task/${tid}/status`, 'latin1');
  return /^Cpus_allowed_list:\t(.*)$/m.exec(status)![1];
};

beforeEach(() => void pin(ALL));

describe.skipIf(!canPlace)('masks', () => {
  it('are repaired although a listener throws, and every listener of every manager hears of them', async () => {
    const seen = uncaught();
    const { manager, drifts, stateDir } = await open();
    const { drifts: heardByOther } = await open({ stateDir });
    manager.prependListener('drift', () => {
      throw new Error('bug in drift');
    });
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    taskset(RESERVED, threadId());
    const { repaired } = await manager.reconcile();
    expect(affinity()).toEqual(grant.cpus);
    expect(repaired).toBeGreaterThan(0);
    expect([drifts.length, heardByOther.length]).toEqual([repaired, repaired]);
    await expect.poll(() => seen).toEqual(drifts.map(() => 'bug in drift'));
  });

  it('that escape the grant are put back', async () => {
    const { manager, drifts } = await open();
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    expect((await manager.reconcile()).drifts).toEqual([]);
    const known = threads().map((thread) => thread.tid);
    const tid = otherThread();
    taskset(ALL, tid);
    taskset(RESERVED, threadId());
    const report = await manager.reconcile();
    expect(affinity(tid)).toEqual(grant.cpus);
    expect(affinity()).toEqual(grant.cpus);
    // A thread that waits for the lock may have been born on the main thread's CPUs since: that one
    // is put back too.
    const tids = drifts.map(({ what }) => Number(/^thread (\d+) /.exec(what)?.[1]));
    expect(tids.filter((each) => known.includes(each)).sort()).toEqual([tid, threadId()].sort());
    expect(report).toMatchObject({ repaired: tids.length, contested: 0, writes: tids.length });
    expect(
      drifts.every(({ kind, uid, repaired }) => kind === 'thread' && uid === grant.uid && repaired),
    ).toBe(true);
  });

  it.skipIf(ALL.size < 3)('that are narrower than the grant are left alone', async () => {
    const { manager, drifts } = await open();
    const grant = await manager.acquire({ cpu: ALL.size - 1 });
    grant.pin();
    const one = CpuSet.of(grant.cpus.first!);
    taskset(one, threadId());
    expect(await manager.reconcile()).toMatchObject({ repaired: 0, writes: 0 });
    expect(affinity()).toEqual(one);
    expect(drifts).toEqual([]);
  });

  it('are compared with what the threads were pinned for, of the whole process with those born since', () => {
    const grant = 'a grant of the test';
    native.pin({ tid: -1, cpus: ALL.words, grant, part: '', owner: 'its owner', replace: false });
    onTestFinished(() => void native.undoPin(grant, ALL.words));
    const other = otherThread();
    taskset(RESERVED, other);
    expect(native.strayThreads(grant, '', ALL.words)).toEqual([]);
    expect(native.strayThreads(grant, '', CpuSet.of(CPU).words).map(({ tid }) => tid)).toContain(other);
    expect(native.grantThreads(grant, '')).toEqual(threads().map(({ tid }) => tid));
    expect(native.grantThreads('another', '')).toEqual([]);
  });

  it('of unpinned threads stay, unless the whole process is pinned', async () => {
    const { manager } = await open({ sharedMember: false });
    const grant = await manager.acquire({ cpu: 1 });
    const other = otherThread();
    grant.pin({ threads: 'current' });
    taskset(RESERVED, other);
    expect((await manager.reconcile()).drifts).toEqual([]);
    expect(affinity(other)).toEqual(RESERVED);
    await grant.unpin();
    taskset(RESERVED, threadId());
    expect((await manager.reconcile()).drifts).toEqual([]);
    expect(affinity()).toEqual(RESERVED);
  });

  it('of shared members that move onto granted CPUs are narrowed', async () => {
    const { manager, drifts } = await open();
    const member = idler();
    await manager.addSharedMember({ pid: member });
    const grant = await manager.acquire({ cpu: 1 });
    taskset(ALL, member);
    expect(maskOf(member)).toBe(String(ALL));
    const report = await manager.reconcile();
    expect(CpuSet.parse(maskOf(member)!).intersects(grant.cpus)).toBe(false);
    expect(report.drifts).toMatchObject([{ kind: 'member', uid: null, repaired: true }]);
    expect(drifts[0]!.what).toContain(`process ${member} (`);
  });

  it('that another program changes back each time are contested after two repairs, reported once, and left alone', async () => {
    const { manager, drifts } = await open();
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    const tid = otherThread();
    const fight = () => taskset(RESERVED, tid);
    for (let round = 0; round < 2; round++) {
      fight();
      expect(await manager.reconcile()).toMatchObject({ repaired: 1, contested: 0 });
      expect(affinity(tid)).toEqual(grant.cpus);
    }
    fight();
    expect(await manager.reconcile()).toMatchObject({ repaired: 0, contested: 1, writes: 0 });
    for (let round = 0; round < 3; round++) {
      expect(await manager.reconcile()).toMatchObject({ repaired: 0, contested: 1, writes: 0, drifts: [] });
      expect(affinity(tid)).toEqual(RESERVED);
    }
    expect(drifts.map(({ repaired, contested }) => [repaired, contested])).toEqual([
      [true, false],
      [true, false],
      [false, true],
    ]);
    // Once it is right by itself, it is watched again.
    taskset(grant.cpus, tid);
    expect(await manager.reconcile()).toMatchObject({ contested: 0 });
    fight();
    expect(await manager.reconcile()).toMatchObject({ repaired: 1, contested: 0 });
    expect(affinity(tid)).toEqual(grant.cpus);
  });

  /** A grant whose CPUs a shared member uses again after each repair. */
  async function fought() {
    const { manager, drifts } = await open();
    const member = idler();
    await manager.addSharedMember({ pid: member });
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.enforcement).toBe('members');
    for (let round = 0; round < 3; round++) {
      taskset(ALL, member);
      await manager.reconcile();
    }
    return { manager, drifts, member, grant };
  }

  it('of a member that cannot be kept off lower the level of the grants', async () => {
    const { drifts, grant } = await fought();
    expect(grant.enforcement).toBe('recorded');
    expect(drifts.slice(-2)).toMatchObject([
      { kind: 'member', repaired: false, contested: true },
      { kind: 'level', uid: grant.uid, repaired: false },
    ]);
  });

  it('of a member that is off by itself raise the level that fell, which is reported once', async () => {
    const { manager, member, grant } = await fought();
    taskset(RESERVED, member);
    const what = expect.stringMatching(/at the level recorded, and members is possible again$/);
    expect((await manager.reconcile()).drifts).toMatchObject([
      { kind: 'level', uid: grant.uid, repaired: true, what },
    ]);
    expect(grant.enforcement).toBe('members');
    expect((await manager.reconcile()).drifts).toEqual([]);
  });

  it('are put back by themselves after a change and by the clock, without keeping the process alive', async () => {
    const { manager, drifts } = await open({ cpuManagerReconcilePeriod: '100ms' });
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    taskset(RESERVED, threadId());
    // A thread that waits for the lock may have been born there since.
    const what = expect.stringContaining(`thread ${threadId()} `);
    const drift = expect.objectContaining({ kind: 'thread', repaired: true, what });
    await vi.waitFor(() => expect(drifts).toContainEqual(drift), 60_000);
    expect(affinity()).toEqual(grant.cpus);
    const script = `const { openManager } = await import(${JSON.stringify(new URL('../../dist/index.js', import.meta.url))});
      await openManager({ stateDir: ${JSON.stringify(makeStateDir())}, reservedSystemCPUs: '${RESERVED}' });`;
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 20_000 });
    expect([child.status, String(child.stderr)]).toEqual([0, '']);
  });
});

describe.skipIf(!canPlace)('an idle round', () => {
  it('writes nothing, takes no lock and sets no mask', async () => {
    const { manager, stateDir } = await open({ ...(isUsable && { cgroupRoot: ROOT }) });
    if (isUsable) ownRoot();
    await manager.addSharedMember({ pid: idler() });
    const grant = await manager.acquire({ cpu: 1 });
    grant.pin();
    await manager.reconcile();
    const files = () =>
      readdirSync(stateDir, { recursive: true, encoding: 'utf8' })
        .sort()
        .map((name) => {
          const { mtimeNs, ctimeNs, ino } = statSync(join(stateDir, name), { bigint: true });
          return [name, mtimeNs, ctimeNs, ino];
        });
    const before = files();
    const writes = (['write', 'makeFolder', 'removeFolder'] as const).map((name) =>
      vi.spyOn(KERNEL_FILES, name),
    );
    const move = vi.spyOn(native, 'moveMember');
    const recall = vi.spyOn(native, 'recallThreads');
    onTestFinished(() => void vi.restoreAllMocks());
    for (let round = 0; round < 5; round++) {
      const report = await manager.reconcile();
      expect(report).toMatchObject({ repaired: 0, contested: 0, writes: 0, drifts: [] });
      expect(report.checked).toBeGreaterThan(threads().length);
    }
    for (const write of writes) expect(write).not.toHaveBeenCalled();
    expect(move).not.toHaveBeenCalled();
    expect(recall).not.toHaveBeenCalled();
    expect(files()).toEqual(before);
  });

  it.skipIf(spawnSync('strace', ['-f', 'true']).status !== 0)('makes no such system call', async () => {
    const log = `${makeStateDir()}.strace`;
    const script = `const { openManager } = await import(${JSON.stringify(new URL('../../dist/index.js', import.meta.url))});
      const manager = await openManager({ stateDir: ${JSON.stringify(makeStateDir())}, reservedSystemCPUs: '${RESERVED}', cpuManagerReconcilePeriod: 0 });
      const grant = await manager.acquire({ cpu: 1 });
      grant.pin();
      await manager.reconcile();
      process.kill(process.pid, 'SIGCONT');
      await new Promise((resolve) => setTimeout(resolve, 50));
      for (let i = 0; i < 20; i++) await manager.reconcile();
      process.kill(process.pid, 'SIGCONT');
      await new Promise((resolve) => setTimeout(resolve, 50));
      await grant.release();
      manager.close();`;
    const calls =
      'sched_setaffinity,fcntl,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,kill,openat';
    const child = spawn(
      'strace',
      ['-f', '-o', log, '-e', `trace=${calls}`, process.execPath, '--input-type=module', '-e', script],
      {
        stdio: 'inherit',
      },
    );
    const [code] = await once(child, 'exit');
    expect(code).toBe(0);
    const lines = readFileSync(log, 'utf8').split('\n');
    const marks = lines.flatMap((line, i) => (/ kill\(\d+, SIGCONT\b/.test(line) ? [i] : []));
    expect(marks).toHaveLength(2);
    // Not the ends of calls, whose beginnings have lines of their own, and of threads.
    const during = lines
      .slice(marks[0]! + 1, marks[1])
      .filter((line) => !/ (<\.\.\. |\+\+\+ exited)/.test(line));
    expect(during.some((line) => line.includes('/proc/self/task'))).toBe(true);
    const written = during.filter(
      (line) => !line.includes('openat(') || /O_WRONLY|O_RDWR|O_CREAT/.test(line),
    );
    expect(
      written.filter(
        (line) => !line.includes('SIGCONT') && (!line.includes('fcntl(') || line.includes('SETLK')),
      ),
    ).toEqual([]);
    expect(lines.filter((line) => line.includes('sched_setaffinity(')).length).toBeGreaterThan(0);
  });
});

describe.skipIf(!isUsable)('cgroups (v1)', () => {
  const root = join(hierarchy?.mount.point ?? '/', ROOT);
  const read = (group: string, file: string) => readFileSync(join(root, group, file), 'utf8').trim();
  const groupOf = (uid: string) => readdirSync(root).find((name) => name.startsWith(uid))!;
  const leave = (group: string) => {
    for (const tid of read(group, 'tasks').split('\n').filter(Boolean)) {
      writeFileSync(join(hierarchy!.mount.point, 'tasks'), tid);
    }
  };

  // Before Linux 6.2 what widens a cgroup widens the masks of its threads, which drift too.
  const ofGroups = (drifts: readonly Drift[]) => drifts.filter(({ kind }) => kind === 'cgroup');

  async function granted() {
    ownRoot();
    const opened = await open({ cgroupRoot: ROOT });
    const grant = await opened.manager.acquire({ cpu: 1 });
    grant.pin();
    expect(grant.enforcement).toBe('cpuset');
    expect((await opened.manager.reconcile()).drifts).toEqual([]);
    return { ...opened, grant, group: groupOf(grant.uid) };
  }

  it('are counted with the threads', async () => {
    const { manager } = await granted();
    const { checked } = await manager.reconcile();
    // The group of the grant, with what is in it and with its CPUs, that of the shared pool, and the
    // root.
    expect(checked).toBe(threads().length + 4);
  });

  it('of grants that were widened are narrowed', async () => {
    const { manager, grant, group, drifts } = await granted();
    writeFileSync(join(root, group, 'cpuset.cpus'), String(ALL));
    expect(await manager.reconcile()).toMatchObject({ repaired: drifts.length, contested: 0 });
    expect(read(group, 'cpuset.cpus')).toBe(String(grant.cpus));
    expect(ofGroups(drifts)).toMatchObject([{ uid: grant.uid, repaired: true }]);
    expect(affinity()).toEqual(grant.cpus);
  });

  it('of grants that have vanished are made again, with the threads in them', async () => {
    const { manager, grant, group, drifts } = await granted();
    leave(group);
    rmdirSync(join(root, group));
    await manager.reconcile();
    expect(read(group, 'cpuset.cpus')).toBe(String(grant.cpus));
    expect(read(group, 'cgroup.procs').split('\n')).toContain(String(process.pid));
    for (const { tid } of threads()) expect([tid, affinity(tid)]).toEqual([tid, grant.cpus]);
    expect(drifts).toMatchObject([{ kind: 'cgroup', uid: grant.uid, repaired: true }]);
    await grant.release();
    expect(existsSync(join(root, group))).toBe(false);
  });

  it('get threads back that were moved out of them', async () => {
    const { manager, grant, group } = await granted();
    const tid = otherThread();
    writeFileSync(join(hierarchy!.mount.point, 'tasks'), String(tid));
    expect(await manager.reconcile()).toMatchObject({ repaired: 1 });
    expect(read(group, 'tasks').split('\n')).toContain(String(tid));
    expect(affinity(tid)).toEqual(grant.cpus);
  });

  // As another program can: the groups below give up what the root loses first.
  const narrowRoot = (group: string) => {
    for (const folder of [group, '.']) writeFileSync(join(root, folder, 'cpuset.cpus'), String(RESERVED));
  };

  it('get the CPUs back that the root above them has lost', async () => {
    const { manager, grant, group, drifts } = await granted();
    narrowRoot(group);
    expect(affinity()).toEqual(RESERVED);
    expect(await manager.reconcile()).toMatchObject({ repaired: drifts.length, contested: 0 });
    expect(read('.', 'cpuset.cpus')).toBe(String(ALL));
    expect(affinity()).toEqual(grant.cpus);
    expect(grant.enforcement).toBe('cpuset');
    expect(drifts).toContainEqual({
      kind: 'cgroup',
      uid: null,
      what: `${root} has CPUs ${RESERVED} without ${ALL.difference(RESERVED)}`,
      repaired: true,
      contested: false,
    });
  });

  it('that cannot get their CPUs, as the root loses them each time, lower the level', async () => {
    const { manager, grant, group, drifts } = await granted();
    for (let round = 0; round < 3; round++) {
      narrowRoot(group);
      await manager.reconcile();
    }
    expect(affinity()).toEqual(RESERVED);
    expect(grant.enforcement).toBe('recorded');
    expect(drifts.at(-1)).toMatchObject({ kind: 'level', uid: grant.uid, repaired: false });
  });

  it('that have their CPUs again raise the level that fell, for any manager', async () => {
    const { grant, manager, group, stateDir } = await granted();
    for (let round = 0; round < 3; round++) {
      narrowRoot(group);
      await manager.reconcile();
    }
    expect(grant.enforcement).toBe('recorded');
    writeFileSync(join(root, 'cpuset.cpus'), String(ALL));
    writeFileSync(join(root, group, 'cpuset.cpus'), String(grant.cpus));
    const other = await openManager({ stateDir, ...BY_HAND });
    onTestFinished(() => other.close());
    const { drifts } = await other.reconcile();
    expect(drifts.at(-1)).toMatchObject({ kind: 'level', uid: grant.uid, repaired: true });
    expect(grant.enforcement).toBe('cpuset');
  });

  it('of the shared pool that were widened are narrowed', async () => {
    const { manager, drifts } = await granted();
    writeFileSync(join(root, 'shared', 'cpuset.cpus'), String(ALL));
    expect(await manager.reconcile()).toMatchObject({ repaired: 1 });
    expect(read('shared', 'cpuset.cpus')).toBe(String(manager.sharedPool()));
    expect(drifts).toMatchObject([{ kind: 'pool', uid: null, repaired: true }]);
  });

  it('of the shared pool get members back that were moved out of them', async () => {
    const member = idler();
    const { manager, drifts } = await granted();
    await manager.addSharedMember({ pid: member });
    expect(read('shared', 'cgroup.procs').split('\n')).toContain(String(member));
    writeFileSync(join(hierarchy!.mount.point, 'cgroup.procs'), String(member));
    await manager.reconcile();
    expect(read('shared', 'cgroup.procs').split('\n')).toContain(String(member));
    expect(drifts).toMatchObject([{ kind: 'member', repaired: true }]);
  });

  it('of ended grants are removed, and others never', async () => {
    const { manager, drifts, stateDir } = await granted();
    const { openCpusetHierarchy } = await import('../../lib/cgroups/cpuset-hierarchy.js');
    const { FolderMadeGroups } = await import('../../lib/cgroups/files/made-groups.js');
    const topology = await discover();
    const tree = openCpusetHierarchy(ROOT, new FolderMadeGroups(join(stateDir, 'cgroups')));
    const left = tree.group('gone/main');
    left.create(topology.cpus, tree.group().mems());
    const stray = idler();
    left.attach(stray);
    execFileSync('mkdir', [join(root, 'foreign%2Fmain')]);
    expect(await manager.reconcile()).toMatchObject({ repaired: 1 });
    expect(existsSync(left.path)).toBe(false);
    expect(existsSync(join(root, 'foreign%2Fmain'))).toBe(true);
    expect(read('shared', 'cgroup.procs').split('\n')).toContain(String(stray));
    expect(drifts).toMatchObject([{ kind: 'leftover', uid: null, repaired: true }]);
  });

  it('that another program widens each time are contested', async () => {
    const { manager, group, drifts } = await granted();
    for (let round = 0; round < 4; round++) {
      writeFileSync(join(root, group, 'cpuset.cpus'), String(ALL));
      await manager.reconcile();
    }
    expect(read(group, 'cpuset.cpus')).toBe(String(ALL));
    expect(ofGroups(drifts).map(({ contested }) => contested)).toEqual([false, false, true]);
  });
});

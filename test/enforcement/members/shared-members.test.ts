// needs: machine
// Members of the shared pool: they leave CPUs that become exclusive, come back, and keep their own
// masks.
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CpuSet, type Grant, type Manager, openManager } from '../../../lib/index.js';
import { ALL, idler, isUsable, threadedIdler } from '../../cgroups/own-root.js';
import { Agent } from '../../support/agent.js';
import { budget } from '../../support/budget.mjs';
import { errorOf } from '../../support/error-of.js';
import { canMount, canUnshare } from '../../support/rights.js';
import { makeStateDir } from '../../support/state-dir.js';
import { AGENT, canBeStranger, forStrangers } from '../../support/strangers.js';
import {
  breeder,
  child,
  choose,
  ended,
  filesOf,
  fill,
  groupPath,
  maskOf,
  masksOf,
  nextCpu,
  opened,
  ownCgroups,
  smallDisk,
  strangeGroup,
  threadsOf,
} from '../members.js';

const MANY = budget({ all: 200, usual: 40 });

const OUTSIDER = 65534;

/** A process that a manager of user {@link OUTSIDER} cannot move, in a folder that both can use. */
const foreignManager = async (stateDir: string, options = {}) => {
  const as = ['setpriv', '--reuid', String(OUTSIDER), '--regid', String(OUTSIDER), '--clear-groups'];
  const agent = new Agent(as, forStrangers(AGENT));
  await agent.tell('open', { stateDir, ...options });
  return agent;
};

describe.skipIf(!isUsable)('a shared member that is moved by its masks', () => {
  it('gets back the own mask of each thread, and a thread keeps a choice that it makes in between', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir, sharedMember: false });
    const { pid, threads } = await threadedIdler();
    const [first, second, third] = threads().slice(-3) as [number, number, number];
    const taken = CpuSet.of(await nextCpu(manager));
    const other = String(ALL.difference(taken).first);
    choose(first, String(taken));
    choose(second, other);
    await manager.addSharedMember({ pid });
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.cpus).toEqual(taken);
    const pool = String(manager.sharedPool());
    expect(pool).toBe(String(ALL.difference(taken)));
    expect([first, second, third].map(maskOf)).toEqual([pool, other, pool]);
    expect(masksOf(pid)).toEqual([...new Set([other, pool])].sort());
    // Granted CPUs are granted again.
    choose(third, `${ALL}`);
    await manager.addSharedMember({ pid });
    expect(maskOf(third)).toBe(pool);
    await grant.release();
    expect([first, second, third].map(maskOf)).toEqual([String(taken), other, `${ALL}`]);
    expect(filesOf(stateDir).filter((name) => name.endsWith('.masks'))).toEqual([]);
  });

  it('stays on the CPUs of a grant whose owner started it there, but on no other exclusive CPUs', async () => {
    const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
    const grant = await manager.acquire({ cpu: 1 });
    const started = grant.spawn('sleep', ['1000']);
    const pid = started.pid!;
    try {
      await manager.addSharedMember({ pid });
      expect(masksOf(pid)).toEqual([`${grant.cpus}`]);
      choose(pid, `${ALL}`);
      await manager.addSharedMember({ pid });
      expect(masksOf(pid)).toEqual([`${manager.sharedPool()}`]);
    } finally {
      await ended(started);
    }
  });

  it('is widened together with the threads that were born while it was confined', async () => {
    const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
    const { pid, breed } = await breeder();
    await manager.addSharedMember({ pid });
    const grant = await manager.acquire({ cpu: 1 });
    const before = threadsOf(pid).length;
    await breed();
    expect(threadsOf(pid).length).toBeGreaterThan(before);
    expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
    await grant.release();
    expect(masksOf(pid)).toEqual([`${ALL}`]);
  });

  it('is widened by the next opener after a kill of the one that moved it, at any time', async () => {
    const stateDir = makeStateDir();
    const own = idler();
    const wide = idler();
    choose(own, `${ALL.first}`);
    const first = await openManager({ stateDir, sharedMember: false });
    for (const pid of [own, wide]) await first.addSharedMember({ pid });
    first.close();
    for (let i = 0; i < 10; i++) {
      const holder = new Agent();
      await holder.tell('open', { stateDir });
      void holder.ask('acquire', { cpu: 1 }).catch(() => {});
      // At some time during the move, or after it.
      await new Promise((resolve) => setTimeout(resolve, i));
      await holder.kill();
      const next = await openManager({ stateDir, sharedMember: false });
      expect([own, wide].map(maskOf)).toEqual([`${ALL.first}`, `${ALL}`]);
      next.close();
    }
    expect(filesOf(stateDir).filter((name) => name.endsWith('.masks'))).toEqual([]);
  });

  it('is forgotten with its masks once it has ended, and another process with its pid is none', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir, sharedMember: false });
    const member = child('sleep', ['1000']);
    const pid = member.pid!;
    await manager.addSharedMember({ pid });
    // As if another process had had this pid before.
    const [name] = filesOf(stateDir) as [string];
    const before = name.replace(/^(p\d+)-\d+/, '$1-1');
    writeFileSync(
      join(stateDir, 'members', before),
      readFileSync(join(stateDir, 'members', name), 'utf8').replace(/"start":"\d+"/, '"start":"1"'),
    );
    writeFileSync(join(stateDir, 'members', before.replace(/-r$/, '.masks')), '[]');
    expect(manager.sharedMembers()).toMatchObject([{ pid, command: 'sleep' }]);
    const grant = await manager.acquire({ cpu: 1 });
    expect(filesOf(stateDir)).toEqual([name.replace(/-r$/, '.masks'), name].sort());
    await ended(member);
    await grant.release();
    expect(manager.sharedMembers()).toEqual([]);
    expect(filesOf(stateDir)).toEqual([]);
  });
});

describe.skipIf(!isUsable)('a cgroup whose processes are shared members', () => {
  it('has its CPUs set if it is below the root', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups(), sharedMember: false });
    // Its CPUs and memory nodes must be set before another program can make a cgroup below it.
    const pid = idler();
    await manager.addSharedMember({ pid });
    const path = groupPath('mine');
    mkdirSync(path);
    for (const file of ['cpuset.cpus', 'cpuset.mems'])
      writeFileSync(join(path, file), readFileSync(groupPath(file)));
    const inside = idler();
    writeFileSync(join(path, 'cgroup.procs'), String(inside));
    await manager.addSharedMember({ cgroup: path });
    expect(manager.sharedMembers()).toContainEqual({ kind: 'cgroup', path });
    const grant = await manager.acquire({ cpu: 1, require: 'cpuset' });
    expect(readFileSync(join(path, 'cpuset.cpus'), 'utf8').trim()).toBe(String(manager.sharedPool()));
    expect(masksOf(inside)).toEqual([String(manager.sharedPool())]);
    await grant.release();
    expect(readFileSync(join(path, 'cpuset.cpus'), 'utf8').trim()).toBe(`${ALL}`);
    await manager.removeSharedMember({ cgroup: path });
    expect(manager.sharedMembers()).toMatchObject([{ pid }]);
  });

  it('has them moved by their masks if it is elsewhere, new ones at the next change', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir, sharedMember: false });
    const path = strangeGroup();
    const [first, second] = [idler(), idler()];
    writeFileSync(join(path, 'cgroup.procs'), String(first));
    await manager.addSharedMember({ cgroup: path });
    const grant = await manager.acquire({ cpu: 1, require: 'members' });
    expect(masksOf(first)).toEqual([String(manager.sharedPool())]);
    writeFileSync(join(path, 'cgroup.procs'), String(second));
    await manager.addSharedMember({ pid: idler() });
    expect(masksOf(second)).toEqual([String(manager.sharedPool())]);
    await grant.release();
    for (const pid of [first, second]) expect(masksOf(pid)).toEqual([`${ALL}`]);
    expect(readFileSync(join(path, 'cpuset.cpus'), 'utf8').trim()).toBe(`${ALL}`);
  });
});

describe.skipIf(!isUsable)('a member that no process here can move', () => {
  it.runIf(canBeStranger)('makes an admission fail, and every member stays', async () => {
    const stateDir = makeStateDir();
    const others = await foreignManager(shared(stateDir), { sharedMember: false });
    const root = await opened({ stateDir, sharedMember: false });
    const pid = idler();
    await root.addSharedMember({ pid });
    const mine = child('setpriv', ['--reuid', String(OUTSIDER), '--clear-groups', 'sleep', '1000']);
    await root.addSharedMember({ pid: mine.pid! });
    const before = root.generation();
    const { error } = await others.ask('acquire', { cpu: 1 });
    expect(error).toMatchObject({ code: 'ERR_MEMBER_UNMOVABLE' });
    expect(error!.message).toMatch(new RegExp(`process ${pid} .*: EPERM \\(it is root's\\)`));
    expect(root.generation()).toBe(before);
    for (const each of [pid, mine.pid!]) expect(masksOf(each)).toEqual([`${ALL}`]);
    // A warning says that it may stay there.
    const grant = await others.tell('acquire', { cpu: 1, unmovableMembers: 'report' });
    expect(grant.enforcement).toBe('recorded');
    expect(grant.warnings).toMatchObject([
      { code: 'ENFORCEMENT_SHORTFALL', message: expect.stringContaining(String(pid)) },
    ]);
    expect(masksOf(mine.pid!)).not.toContain(`${ALL}`);
    // Nor does it keep the grant from its release.
    await others.tell('release', { uid: grant.uid });
    expect(masksOf(mine.pid!)).toEqual([`${ALL}`]);
    await others.tell('close');
  });

  it.runIf(canUnshare)('is asked in another pid namespace, leaves by itself, and comes back', async () => {
    const stateDir = makeStateDir();
    // Each cannot move the other.
    const manager = await opened({ stateDir });
    const far = new Agent(['unshare', '--pid', '--fork', '--mount-proc']);
    await far.tell('open', { stateDir });
    const grant = await acquiredAtLast(manager);
    expect(await far.tell('mask')).toBe(String(manager.sharedPool()));
    await grant.release();
    await expect.poll(() => far.tell('mask'), { timeout: 20_000 }).toBe(`${ALL}`);
    // No answer is answered again.
    const notice = () => readFileSync(join(stateDir, 'members', 'clear'), 'utf8');
    const last = notice();
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(notice()).toBe(last);
    await far.tell('close');
  });

  it.runIf(canUnshare)('makes an admission fail if it does not answer there', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir });
    const far = new Agent(['unshare', '--pid', '--fork', '--mount-proc', '--kill-child']);
    await far.tell('open', { stateDir });
    const pid = Number(readFileSync(`/proc/${far.process.pid}/task/${far.process.pid}/children`, 'utf8'));
    process.kill(pid, 'SIGSTOP');
    const before = manager.generation();
    expect(await errorOf(() => manager.acquire({ cpu: 1 }))).toMatchObject({
      code: 'ERR_MEMBER_UNMOVABLE',
      message: expect.stringContaining('another pid namespace'),
    });
    expect(manager.generation()).toBe(before);
    expect(masksOf(process.pid)).toEqual([`${ALL}`]);
    // A member that dies before it answers is no member any more.
    const asked = () => readFileSync(join(stateDir, 'members', 'clear'), 'utf8');
    const last = asked();
    const acquired = manager.acquire({ cpu: 1, require: 'members' });
    while (asked() === last) await new Promise((resolve) => setTimeout(resolve, 1));
    process.kill(pid, 'SIGKILL');
    const grant = await acquired;
    expect(manager.sharedMembers()).toHaveLength(1);
    await grant.release();
  });
});

describe.skipIf(!isUsable)('a shared member with a persistent grant', () => {
  it('stays on its CPUs with the threads that it has pinned there', async () => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    const pid = await agent.tell('open', { stateDir });
    const { uid, cpus } = await agent.tell('acquire', { cpu: 1, owner: 'persistent' });
    await agent.tell('pin', { uid });
    const manager = await opened({ stateDir, sharedMember: false });
    expect(await manager.reconcile()).toMatchObject({ drifts: [] });
    // Every member is checked, and moved if it must leave.
    await manager.addSharedMember({ pid: child('sleep', ['1000']).pid! });
    expect(masksOf(pid)).toEqual([cpus]);
    await agent.tell('release', { uid });
    expect(masksOf(pid)).toEqual([`${ALL}`]);
  });
});

describe.skipIf(!isUsable)('the list of shared members', () => {
  it('takes running processes and cgroups, each once, and removes them', async () => {
    const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
    const pid = child('sleep', ['1000']).pid!;
    for (let i = 0; i < 2; i++) await manager.addSharedMember({ pid });
    expect(manager.sharedMembers()).toEqual([{ kind: 'process', pid, command: 'sleep' }]);
    await manager.removeSharedMember({ pid });
    expect(manager.sharedMembers()).toEqual([]);
    expect(await errorOf(() => manager.removeSharedMember({ pid }))).toMatchObject({
      code: 'ERR_UNKNOWN_MEMBER',
      details: { value: pid },
    });
    const cgroup = strangeGroup();
    expect(await errorOf(() => manager.removeSharedMember({ cgroup }))).toMatchObject({
      code: 'ERR_UNKNOWN_MEMBER',
      details: { value: cgroup },
    });
  });

  it.each([
    [undefined],
    [null],
    [{}],
    [{ pid: 0 }],
    [{ pid: -1 }],
    [{ pid: 1.5 }],
    [{ pid: '1' }],
    [{ cgroup: 'relative' }],
    [{ pid: 1, cgroup: '/sys' }],
    [{ tid: 1 }],
  ])('refuses %j', async (target) => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir });
    const before = filesOf(stateDir);
    for (const action of ['addSharedMember', 'removeSharedMember'] as const) {
      expect(await errorOf(() => manager[action](target as never))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      });
    }
    expect(filesOf(stateDir)).toEqual(before);
  });

  it('refuses anything but a process or a cgroup', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir, sharedMember: false });
    const pid = 2 ** 22 + 1;
    for (const target of [
      { pid },
      { cgroup: '/tmp' },
      { cgroup: '/sys/fs/cgroup/cpuset/not-there' },
      { cgroup: '/a\0b' },
    ]) {
      expect(await errorOf(() => manager.addSharedMember(target as never))).toMatchObject({
        code: 'ERR_UNKNOWN_MEMBER',
        details: { value: Object.values(target)[0] },
      });
    }
    expect(filesOf(stateDir)).toEqual([]);
  });
});

describe.skipIf(!isUsable)('registrations that cannot be used', () => {
  it('identify their process by name if they are damaged', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir, sharedMember: false });
    const pid = child('sleep', ['1000']).pid!;
    await manager.addSharedMember({ pid });
    const [name] = filesOf(stateDir) as [string];
    const whole = readFileSync(join(stateDir, 'members', name), 'utf8');
    for (const damage of [
      whole.replace(/"pid":(\d+)/, '"pid":"$1"'),
      '',
      '{',
      'null',
      '[]',
      '{"kind":"process","pid":1,"start":"0","namespace":"pid:[1]"}',
      '\0\0\0',
    ]) {
      writeFileSync(join(stateDir, 'members', name), damage);
      expect(manager.sharedMembers()).toEqual([{ kind: 'process', pid, command: 'sleep' }]);
      const grant = await manager.acquire({ cpu: 1, require: 'members' });
      expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
      // The content of its own masks does not matter either; it is lost.
      await grant.release();
      expect(masksOf(pid)).toEqual([`${ALL}`]);
    }
  });

  it('block all grants if they name an unknown cgroup', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir, sharedMember: false });
    await manager.addSharedMember({ cgroup: strangeGroup() });
    const [name] = filesOf(stateDir) as [string];
    writeFileSync(join(stateDir, 'members', name), '{');
    const error = await errorOf(() => manager.acquire({ cpu: 1 }));
    expect(error).toMatchObject({ code: 'ERR_MEMBER_UNMOVABLE', message: expect.stringContaining(name) });
    expect(error.message).toContain('damaged');
    expect(manager.grants()).toEqual([]);
    rmSync(join(stateDir, 'members', name));
    const grant = await manager.acquire({ cpu: 1 });
    await grant.release();
  });

  it('are ignored if they are files of others', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir });
    for (const name of ['README', '.hidden', 'p1', 'p1-2-3', 'pod.masks', 'x'.repeat(200)])
      writeFileSync(join(stateDir, 'members', name), 'mine');
    mkdirSync(join(stateDir, 'members', 'folder'));
    const grant = await manager.acquire({ cpu: 1, require: 'members' });
    await grant.release();
    expect(filesOf(stateDir)).toEqual(expect.arrayContaining(['README', 'folder', 'p1']));
  });

  it.runIf(canMount)(
    'make an admission fail if the own masks of members cannot be recorded, and no member moves',
    async () => {
      const disk = smallDisk(64);
      const manager = await opened({ stateDir: join(disk, 'state'), sharedMember: false });
      const { pid } = await threadedIdler();
      await manager.addSharedMember({ pid });
      const ballast = join(disk, 'ballast');
      fill(ballast);
      const error = await errorOf(() => manager.acquire({ cpu: 1 }));
      expect(error).toMatchObject({ code: 'ERR_SYSCALL', errnoName: 'ENOSPC' });
      expect(manager.grants()).toEqual([]);
      expect(masksOf(pid)).toEqual([`${ALL}`]);
      rmSync(ballast);
      const grant = await manager.acquire({ cpu: 1, require: 'members' });
      fill(ballast);
      // With or without room for the record: the holder of the CPU and the processes that may run
      // there agree.
      const released = await grant.release().then(
        () => true,
        () => false,
      );
      if (!released) expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
      rmSync(ballast);
      if (!released) await grant.release();
      const next = await openManager({ stateDir: join(disk, 'state'), sharedMember: false });
      next.close();
      expect(masksOf(pid)).toEqual([`${ALL}`]);
    },
  );

  it.runIf(canBeStranger)('make an admission fail if their folder cannot be written or read', async () => {
    const stateDir = makeStateDir();
    const others = await foreignManager(shared(stateDir), { sharedMember: false });
    const root = await opened({ stateDir, sharedMember: false });
    const mine = child('setpriv', ['--reuid', String(OUTSIDER), '--clear-groups', 'sleep', '1000']);
    await root.addSharedMember({ pid: mine.pid! });
    for (const mode of [0o555, 0o000]) {
      chmodSync(join(stateDir, 'members'), mode);
      expect((await others.ask('acquire', { cpu: 1 })).error).toMatchObject({
        code: expect.stringMatching(/^ERR_(SYSCALL|STATE_FOLDER)$/),
      });
      expect(root.grants()).toEqual([]);
      expect(masksOf(mine.pid!)).toEqual([`${ALL}`]);
    }
    chmodSync(join(stateDir, 'members'), 0o2770);
    await others.tell('acquire', { cpu: 1, require: 'members' });
  });

  it('may be many', async () => {
    const manager = await opened({ stateDir: makeStateDir(), sharedMember: false });
    const pids = Array.from({ length: MANY }, () => idler());
    for (const pid of pids) await manager.addSharedMember({ pid });
    expect(manager.sharedMembers()).toHaveLength(MANY);
    const begin = performance.now();
    const grant = await manager.acquire({ cpu: 1, require: 'members' });
    const between = performance.now();
    for (const pid of pids) expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
    const before = performance.now();
    await grant.release();
    if (process.env.NUMALIGN_TEST_TIMES) {
      console.log(
        `per member: ${(((between - begin) * 1000) / MANY).toFixed(0)} us to leave, ${(((performance.now() - before) * 1000) / MANY).toFixed(0)} us to come back`,
      );
    }
    for (const pid of pids) expect(masksOf(pid)).toEqual([`${ALL}`]);
  });
});

// Members elsewhere have a second to answer, which is short on a busy machine.
async function acquiredAtLast(manager: Manager): Promise<Grant> {
  for (;;) {
    try {
      return await manager.acquire({ cpu: 1, require: 'members' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ERR_MEMBER_UNMOVABLE') throw error;
    }
  }
}

// A folder that root and the outsider can use.
function shared(stateDir: string): string {
  mkdirSync(stateDir);
  chmodSync(join(stateDir, '..'), 0o755);
  chownSync(stateDir, 0, OUTSIDER);
  chmodSync(stateDir, 0o2770);
  return stateDir;
}

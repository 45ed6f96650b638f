// Those who run in the shared pool: they leave what becomes exclusive, come back, and keep what
// they have chosen.
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

const MANY = budget(200, 40);

const OUTSIDER = 65534;

/** A process that a manager of user {@link OUTSIDER} cannot move, in a folder that both can use. */
const foreignManager = async (stateDir: string, options = {}) => {
  const as = ['setpriv', '--reuid', String(OUTSIDER), '--regid', String(OUTSIDER), '--clear-groups'];
  const agent = new Agent(as, forStrangers(AGENT));
  await agent.tell('open', { stateDir, ...options });
  return agent;
};

describe.skipIf(!isUsable)('a shared member that is moved by its masks', () => {
  it('gets back for each thread what that had chosen, and a thread keeps what it chooses in between', async () => {
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
    // What is given out is given out again.
    choose(third, `${ALL}`);
    await manager.addSharedMember({ pid });
    expect(maskOf(third)).toBe(pool);
    await grant.release();
    expect([first, second, third].map(maskOf)).toEqual([String(taken), other, `${ALL}`]);
    expect(filesOf(stateDir).filter((name) => name.endsWith('.masks'))).toEqual([]);
  });

  it('stays on the CPUs of a grant whose owner has started it there, and nowhere else on exclusive CPUs', async () => {
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

  it('is widened with the threads that were born while it was confined', async () => {
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

  it('is widened by the next opener where the one that moved it was killed, whenever that was', async () => {
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
      // Some time on its way, or behind it.
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
    // As if another had had this pid before.
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
  it('has its CPUs set where it is below the root', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups(), sharedMember: false });
    // Its CPUs and memory nodes must be there before anybody else can make something below it.
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

  it('has them moved by their masks where it is elsewhere, new ones at the next change', async () => {
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

describe.skipIf(!isUsable)('a member that nobody here can move', () => {
  it.runIf(canBeStranger)('has an admission fail, and everybody is where he was', async () => {
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
    // Where it may stay, that is said.
    const grant = await others.tell('acquire', { cpu: 1, unmovableMembers: 'report' });
    expect(grant.enforcement).toBe('recorded');
    expect(grant.warnings).toMatchObject([
      { code: 'ENFORCEMENT_SHORTFALL', message: expect.stringContaining(String(pid)) },
    ]);
    expect(masksOf(mine.pid!)).not.toContain(`${ALL}`);
    // And is no reason to keep what was granted.
    await others.tell('release', { uid: grant.uid });
    expect(masksOf(mine.pid!)).toEqual([`${ALL}`]);
    await others.tell('close');
  });

  it.runIf(canUnshare)(
    'is asked where it lives in another pid namespace, leaves by itself, and comes back',
    async () => {
      const stateDir = makeStateDir();
      // Each cannot move the other.
      const manager = await opened({ stateDir });
      const far = new Agent(['unshare', '--pid', '--fork', '--mount-proc']);
      await far.tell('open', { stateDir });
      const grant = await acquiredAtLast(manager);
      expect(await far.tell('mask')).toBe(String(manager.sharedPool()));
      await grant.release();
      await expect.poll(() => far.tell('mask'), { timeout: 20_000 }).toBe(`${ALL}`);
      // Nobody answers what was told by telling it again.
      const told = () => readFileSync(join(stateDir, 'members', 'clear'), 'utf8');
      const last = told();
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(told()).toBe(last);
      await far.tell('close');
    },
  );

  it.runIf(canUnshare)('has an admission fail where it does not answer there', async () => {
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
    // Who dies while he is asked is no member any more.
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

describe.skipIf(!isUsable)('a shared member with a grant that is no process’s', () => {
  it('stays on its CPUs with the threads that it has pinned there', async () => {
    const stateDir = makeStateDir();
    const agent = new Agent();
    const pid = await agent.tell('open', { stateDir });
    const { uid, cpus } = await agent.tell('acquire', { cpu: 1, owner: 'persistent' });
    await agent.tell('pin', { uid });
    const manager = await opened({ stateDir, sharedMember: false });
    expect(await manager.reconcile()).toMatchObject({ drifts: [] });
    // Every member is looked at, and moved where it should not be.
    await manager.addSharedMember({ pid: child('sleep', ['1000']).pid! });
    expect(masksOf(pid)).toEqual([cpus]);
    await agent.tell('release', { uid });
    expect(masksOf(pid)).toEqual([`${ALL}`]);
  });
});

describe.skipIf(!isUsable)('the list of shared members', () => {
  it('takes processes that run and cgroups, each once, and gives them back', async () => {
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

  it('refuses what is no process and no cgroup', async () => {
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
  it('are gone by their name where they are damaged: nobody is taken for nobody', async () => {
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
      // Nor does it matter what becomes of what it had chosen, but that it is not known any more.
      await grant.release();
      expect(masksOf(pid)).toEqual([`${ALL}`]);
    }
  });

  it('keep CPUs from being granted where they are a cgroup of which nobody knows which', async () => {
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

  it('do not matter where they are files of others', async () => {
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
    'have an admission fail where what members had chosen cannot be written down, and nobody has moved',
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
      // Whether there is room for what is recorded or not: who holds the CPU and who may run there
      // agree.
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

  it.runIf(canBeStranger)('have an admission fail where their folder cannot be written or read', async () => {
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

// needs: machine
// Other processes on the CPUs of a grant, on the real kernel.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CpuSet } from '../../lib/index.js';
import { ALL, hierarchy, idler, isUsable, threadedIdler } from '../cgroups/own-root.js';
import { Agent } from '../support/agent.js';
import { errorOf } from '../support/error-of.js';
import { breakCommits } from '../support/full-disk.js';
import { guaranteed } from '../support/simulated.js';
import { makeStateDir } from '../support/state-dir.js';
import {
  cgroupOf,
  child,
  choose,
  ended,
  filesOf,
  groupPath,
  maskOf,
  masksOf,
  nextCpu,
  opened,
  ownCgroups,
  threadsOf,
} from './members.js';

const POD = {
  uid: 'pod-1',
  name: 'pod',
  containers: [guaranteed('main', { cpu: '1' }), guaranteed('side', { cpu: '500m' })],
} as never;

// Folders of grants below our root.
const groupsOf = () =>
  readdirSync(groupPath(), { withFileTypes: true }).filter(
    (each) => each.isDirectory() && each.name !== 'shared',
  );

describe.skipIf(!isUsable)('a process that is attached to a grant', () => {
  it('runs on its CPUs through its cgroup, with all threads and children, and in the shared pool afterwards', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const grant = await manager.acquire({ cpu: 1 });
    const { pid, threads } = await threadedIdler();
    const attached = await grant.attach(pid);
    expect(attached).toEqual({ pid, cpus: grant.cpus, guaranteed: true, memory: null });
    for (const tid of threads()) expect(cgroupOf(pid, tid)).toContain(grant.uid);
    expect(masksOf(pid)).toEqual([String(grant.cpus)]);
    expect(manager.sharedMembers()).toContainEqual(expect.objectContaining({ kind: 'process', pid }));
    const parent = idler('sleep 1000 & echo; wait');
    while (!readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8')) await new Promise(setImmediate);
    const grandchild = Number(readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8'));
    await grant.attach(parent);
    expect(masksOf(grandchild)).toEqual([String(grant.cpus)]);
    await grant.release();
    for (const each of [pid, parent, grandchild]) {
      expect(cgroupOf(each)).toMatch(/\/shared$/);
      expect(masksOf(each)).toEqual([`${ALL}`]);
    }
    expect(groupsOf()).toEqual([]);
    // A shared member from now on.
    const next = await manager.acquire({ cpu: 1, require: 'cpuset' });
    expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
    await next.release();
  });

  it('has memory of the booked nodes, and its other memory moves as last requested', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const pod = await manager.admit(POD);
    const main = pod.container('main');
    for (const migrate of [true, false]) {
      const { memory } = await main.attach(idler(), { migrate });
      expect(memory).toMatchObject({ applied: true, reason: null, migrates: migrate });
      expect(readFileSync(`${memory!.cgroup}/cpuset.memory_migrate`, 'utf8')).toBe(migrate ? '1\n' : '0\n');
      expect(readFileSync(`${memory!.cgroup}/cpuset.mems`, 'utf8')).toBe(`${memory!.wanted}\n`);
      expect(pod.memoryEnforcement[0]).toEqual(memory);
      expect(pod.toJSON().memoryEnforcement[0]).toEqual(memory);
    }
    const error = await errorOf(() => main.attach(idler(), { migrate: 'yes' as never }));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { value: 'yes' } });
    await pod.release();
    expect(pod.memoryEnforcement).toEqual([]);
  });

  it('has memory of any node with the memory policy None, and its group migrates nothing', async () => {
    const manager = await opened({
      ...{ stateDir: makeStateDir(), ...ownCgroups() },
      memoryManagerPolicy: 'None',
    });
    const pod = await manager.admit(POD);
    const pid = idler();
    expect(await pod.container('main').attach(pid, { migrate: true })).toMatchObject({ memory: null });
    expect(pod.memoryEnforcement).toEqual([]);
    const folder = `${hierarchy!.mount.point}${cgroupOf(pid)}`;
    expect(readFileSync(`${folder}/cpuset.memory_migrate`, 'utf8')).toBe('0\n');
    await pod.release();
  });

  it('comes back if the release cannot be recorded', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir, ...ownCgroups() });
    const grant = await manager.acquire({ cpu: 1 });
    const pid = idler();
    await grant.attach(pid);
    const group = cgroupOf(pid);
    const mend = breakCommits(stateDir);
    onTestFinished(mend);
    expect(await errorOf(() => grant.release())).toMatchObject({ code: 'ERR_SYSCALL', errnoName: 'EFBIG' });
    expect(cgroupOf(pid)).toBe(group);
    expect(masksOf(pid)).toEqual([String(grant.cpus)]);
    mend();
    await grant.release();
    expect(groupsOf()).toEqual([]);
  });

  it.each([
    ['cgroups', () => ownCgroups()],
    ['masks', () => ({})],
  ])('runs in the shared pool of its pod by %s, where the pod has one', async (_, cgroups) => {
    const featureGates = { PodLevelResourceManagers: true };
    const scope = { scope: 'pod', featureGates } as const;
    const manager = await opened({ stateDir: makeStateDir(), ...scope, ...cgroups() });
    const pids = [idler(), idler(), idler()];
    const limits = { cpu: 1, memory: '64Mi' };
    const containers = [{ name: 'a' }, { name: 'b' }];
    const pod = await manager.admit({ resources: { requests: limits, limits }, containers });
    const { cpus } = pod.booking!;
    expect(cpus.size).toBe(1);
    await pod.container('a').attach(pids[0]!);
    await pod.container('b').attach(pids[1]!);
    for (const pid of pids.slice(0, 2)) expect(masksOf(pid)).toEqual([String(cpus)]);
    await manager.addSharedMember({ pid: pids[2]! });
    expect(masksOf(pids[2]!)).toEqual([String(manager.sharedPool())]);
    await pod.release();
    expect(pids.map((pid) => masksOf(pid))).toEqual(pids.map(() => [`${ALL}`]));
  });

  it('runs there by its masks if there are no cgroups, and gets its own masks back', async () => {
    const stateDir = makeStateDir();
    const manager = await opened({ stateDir });
    const { pid, threads } = await threadedIdler();
    const own = threads().at(-1)!;
    const chosen = String(ALL.difference(CpuSet.of(await nextCpu(manager))).first);
    choose(own, chosen);
    const grant = await manager.acquire({ cpu: 1 });
    expect(await grant.attach(pid)).toEqual({ pid, cpus: grant.cpus, guaranteed: false, memory: null });
    expect(masksOf(pid)).toEqual([String(grant.cpus)]);
    // Other grants come and go.
    const other = idler();
    await manager.addSharedMember({ pid: other });
    expect(masksOf(pid)).toEqual([String(grant.cpus)]);
    expect(masksOf(other)).toEqual([String(manager.sharedPool())]);
    await grant.release();
    expect(maskOf(own)).toBe(chosen);
    expect(masksOf(pid)).toEqual([`${ALL}`, chosen].sort());
    const next = await manager.acquire({ cpu: 1 });
    expect(maskOf(own)).toBe(chosen);
    // With two CPUs, that is all of the pool.
    expect(masksOf(pid)).toEqual([...new Set([chosen, String(manager.sharedPool())])].sort());
    await next.release();
    expect(masksOf(pid)).toEqual([`${ALL}`, chosen].sort());
  });

  it.each([['cgroups'], ['masks']])(
    'is off its CPUs by %s before they are free, if the owner dies',
    async (by) => {
      const options = { stateDir: makeStateDir(), ...(by === 'cgroups' && ownCgroups()) };
      const owner = new Agent();
      await owner.tell('open', options);
      const { uid, cpus } = await owner.tell('acquire', { cpu: 1 });
      const pid = idler();
      await owner.tell('attach', { uid, pid });
      expect(masksOf(pid)).toEqual([cpus]);
      const manager = await opened(options);
      await owner.kill();
      const grant = await manager.acquire({ cpu: 1 });
      expect(String(grant.cpus)).toBe(cpus);
      expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
      await grant.release();
      expect(masksOf(pid)).toEqual([`${ALL}`]);
      if (by === 'cgroups') expect(groupsOf()).toEqual([]);
    },
  );

  it.each([['cgroups'], ['masks']])('runs on the CPUs of its container, by %s', async (by) => {
    const manager = await opened({ stateDir: makeStateDir(), ...(by === 'cgroups' && ownCgroups()) });
    // Children of a confined process inherit its mask.
    const [main, side] = [idler(), idler()];
    const pod = await manager.admit(POD);
    const { cpus } = pod.container('main');
    expect(await pod.container('main').attach(main)).toMatchObject({ cpus, guaranteed: by === 'cgroups' });
    expect(await pod.container('side').attach(side)).toEqual({
      pid: side,
      cpus: manager.sharedPool(),
      guaranteed: false,
      memory: expect.objectContaining({ applied: false, reason: 'no-cgroup' }),
    });
    expect(masksOf(main)).toEqual([String(cpus)]);
    expect(masksOf(side)).toEqual([String(manager.sharedPool())]);
    await pod.release();
    for (const pid of [main, side]) expect(masksOf(pid)).toEqual([`${ALL}`]);
    expect(await errorOf(() => pod.container('main').attach(main))).toMatchObject({
      code: 'ERR_UNKNOWN_GRANT',
    });
  });

  it.each([['cgroups'], ['masks']])(
    'is not shared while it is on exclusive CPUs, and leaves them for a container without, by %s',
    async (by) => {
      const stateDir = makeStateDir();
      const manager = await opened({ stateDir, ...(by === 'cgroups' && ownCgroups()) });
      const pid = idler();
      const pod = await manager.admit(POD);
      const { cpus } = pod.container('main');
      await pod.container('main').attach(pid);
      const before = filesOf(stateDir);
      expect(await errorOf(() => manager.addSharedMember({ pid }))).toMatchObject({
        code: 'ERR_MEMBER_UNMOVABLE',
        message: expect.stringContaining(`process ${pid} is attached to pod (container main)`),
        details: { value: pid, grant: 'pod-1', container: 'main' },
      });
      expect([filesOf(stateDir), masksOf(pid)]).toEqual([before, [String(cpus)]]);
      const moved = await pod.container('side').attach(pid);
      expect([moved.cpus, masksOf(pid)]).toEqual([manager.sharedPool(), [String(manager.sharedPool())]]);
      if (by === 'cgroups') expect(cgroupOf(pid)).toMatch(/\/shared$/);
      await manager.addSharedMember({ pid });
      expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
      await pod.release();
      expect(masksOf(pid)).toEqual([`${ALL}`]);
    },
  );

  it('takes its children along out of the cgroup of a grant', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const pod = await manager.admit(POD);
    const parent = idler('sleep 1000 & echo; wait');
    const children = () => readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8');
    while (!children()) await new Promise(setImmediate);
    await pod.container('main').attach(parent);
    expect(masksOf(Number(children()))).toEqual([String(pod.container('main').cpus)]);
    await pod.container('side').attach(parent);
    for (const pid of [parent, Number(children())]) {
      expect(cgroupOf(pid)).toMatch(/\/shared$/);
      expect(masksOf(pid)).toEqual([String(manager.sharedPool())]);
    }
    await pod.release();
  });

  it.each([['cgroups'], ['masks']])(
    'must be another running process: else nothing changes, by %s',
    async (by) => {
      const stateDir = makeStateDir();
      const manager = await opened({ stateDir, ...(by === 'cgroups' && ownCgroups()) });
      const grant = await manager.acquire({ cpu: 1 });
      const files = () => filesOf(stateDir).filter((name) => name !== 'clear');
      const before = files();
      for (const pid of [0, -1, 1.5, process.pid, '7', undefined, null]) {
        expect(await errorOf(() => grant.attach(pid as never))).toMatchObject({
          code: 'ERR_INVALID_OPTION',
          details: { value: pid },
        });
      }
      const program = child('true', []);
      await ended(program);
      expect(await errorOf(() => grant.attach(program.pid!))).toMatchObject({
        code: 'ERR_UNKNOWN_MEMBER',
        details: { value: program.pid },
      });
      // A thread of the kernel, bound to its CPU.
      const bound = readdirSync('/proc')
        .filter((each) => /^\d+$/.test(each))
        .map(Number)
        .find(
          (pid) =>
            existsSync(`/proc/${pid}/comm`) &&
            readFileSync(`/proc/${pid}/comm`, 'utf8').startsWith('ksoftirqd/1'),
        );
      if (bound !== undefined) {
        expect(await errorOf(() => grant.attach(bound))).toMatchObject({
          code: by === 'cgroups' ? 'ERR_CGROUP' : 'ERR_SYSCALL',
        });
      }
      expect(files()).toEqual(before);
      await grant.release();
      expect(await errorOf(() => grant.attach(idler()))).toMatchObject({ code: 'ERR_GRANT_RELEASED' });
    },
  );
});

describe.skipIf(!isUsable)('threads of this process in the cgroup of a grant', () => {
  it('go there one by one, and so do children and Workers, from their start', async () => {
    const manager = await opened({ stateDir: makeStateDir(), ...ownCgroups() });
    const grant = await manager.acquire({ cpu: 1 });
    const home = cgroupOf(process.pid);
    const spawned = grant.spawn('sh', ['-c', 'grep cpuset /proc/self/cgroup; read line'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const [line] = await new Promise<Buffer[]>((resolve) =>
      spawned.stdout!.once('data', (...data) => resolve(data)),
    );
    expect(String(line)).toContain(grant.uid);
    // The thread that starts it has returned.
    expect(cgroupOf(process.pid)).toBe(home);
    const worker = grant.worker('setInterval(() => {}, 1000)', { eval: true });
    await new Promise((resolve) => worker.once('online', resolve));
    expect(
      threadsOf(process.pid).filter((tid) => cgroupOf(process.pid, tid).includes(grant.uid)),
    ).toHaveLength(1);
    const { guaranteed } = grant.pin({ threads: 'current' });
    expect(guaranteed).toBe(true);
    expect(cgroupOf(process.pid)).toContain(grant.uid);
    await grant.unpin();
    expect(cgroupOf(process.pid)).toBe(home);
    await worker.terminate();
    spawned.stdin!.end();
    await new Promise((resolve) => spawned.once('exit', resolve));
    grant.pin();
    expect(new Set(threadsOf(process.pid).map((tid) => cgroupOf(process.pid, tid))).size).toBe(1);
    expect(masksOf(process.pid)).toEqual([String(grant.cpus)]);
    await grant.release();
    expect(groupsOf()).toEqual([]);
    expect(masksOf(process.pid)).toEqual([`${ALL}`]);
    expect(cgroupOf(process.pid)).toBe(home);
  });
});

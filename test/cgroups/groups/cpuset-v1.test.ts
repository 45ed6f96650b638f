// needs: machine
// The real cpuset hierarchy of cgroup v1, in a cgroup of the test's own.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { openCpusetHierarchy } from '../../../lib/cgroups/cpuset-hierarchy.js';
import { findHierarchy } from '../../../lib/cgroups/files/hierarchies.js';
import { MadeGroupsInMemory } from '../../../lib/cgroups/files/made-groups.js';
import { cgroupFolder, limitsOf, limitsOfProcess } from '../../../lib/cgroups/limits.js';
import { CpuSet, NodeSet } from '../../../lib/index.js';
import { thrownBy } from '../../support/error-of.js';
import {
  cpus,
  hierarchy,
  idler,
  isUsable,
  madeRoot,
  NODE0,
  ownRoot,
  ROOT,
  read,
  removeAll,
  threadedIdler,
} from '../own-root.js';

const allowedOf = (pid: number) =>
  /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1];

describe.skipIf(!isUsable)('cgroup v1', () => {
  describe('our root', () => {
    it('is inspected without a write, and can be written by root', () => {
      const { tree, files } = ownRoot();
      expect(tree).toMatchObject({
        version: 1,
        mount: hierarchy!.mount.point,
        rootPath: hierarchy!.mount.point + ROOT,
      });
      expect(tree.canWrite()).toBe(true);
      expect(tree.list()).toEqual([]);
      expect(tree.group('a').exists()).toBe(false);
      expect(tree.partition()).toMatchObject({ kind: 'none', valid: false });
      expect(files.log).toEqual([]);
    });

    it('is created once with CPUs and memory nodes, and then left alone', () => {
      const { tree, files } = ownRoot();
      tree.ensureRoot(cpus('0-1'), NODE0);
      expect(read(tree.rootPath, 'cpuset.cpus')).toBe('0-1');
      expect(read(tree.rootPath, 'cpuset.mems')).toBe('0');
      expect(files.log).toHaveLength(3);
      tree.ensureRoot(cpus('0-1'), NODE0);
      expect(files.log).toHaveLength(3);
      tree.group().remove();
      expect(tree.group().exists()).toBe(false);
    });

    it('is not removed while a process is in it, or when another made it', () => {
      const { tree } = madeRoot();
      const reason = (root: typeof tree) => thrownBy(() => root.group().remove())?.details.reason;
      const pid = idler();
      tree.group().attach(pid);
      expect(reason(tree)).toBe('in-use');
      writeFileSync(join(tree.mount, 'cgroup.procs'), String(pid));
      expect(reason(openCpusetHierarchy(ROOT, new MadeGroupsInMemory()))).toBe('not-made');
      tree.group().remove();
      expect(tree.group().exists()).toBe(false);
    });

    it('has no more CPUs than the cgroup above it, such as a container’s', () => {
      const above = `/numalign-test-above-${process.pid}`;
      const folder = hierarchy!.mount.point + above;
      mkdirSync(folder);
      onTestFinished(() => removeAll(folder));
      writeFileSync(join(folder, 'cpuset.cpus'), '1');
      writeFileSync(join(folder, 'cpuset.mems'), '0');
      const tree = openCpusetHierarchy(`${above}/numalign`, new MadeGroupsInMemory());
      tree.ensureRoot(cpus('0-1'), NODE0);
      expect(read(tree.rootPath, 'cpuset.cpus')).toBe('1');
      const error = thrownBy(() => tree.ensureRoot(cpus('0'), NODE0));
      expect(error).toMatchObject({ code: 'ERR_CGROUP', details: { reason: 'outside-parent' } });
    });

    it('must be a plain path below the hierarchy with an existing parent', () => {
      for (const path of [
        'numalign',
        '/',
        '',
        '/a/../b',
        '/..',
        '/a/./b',
        '/a//b',
        '/a/',
        '/a\nb',
        7 as never,
      ]) {
        expect(thrownBy(() => openCpusetHierarchy(path, new MadeGroupsInMemory()))).toMatchObject({
          code: 'ERR_CGROUP',
          details: { reason: 'bad-path', value: path },
        });
      }
      const error = thrownBy(() => openCpusetHierarchy('/not-there/numalign', new MadeGroupsInMemory()));
      expect(error).toMatchObject({ code: 'ERR_CGROUP', details: { reason: 'missing' } });
    });

    it('cannot be where the kernel has a file', () => {
      const error = thrownBy(() => openCpusetHierarchy('/tasks', new MadeGroupsInMemory()));
      expect(error).toMatchObject({ code: 'ERR_CGROUP', details: { reason: 'bad-path' } });
      expect(error!.message).toContain('not a folder');
    });

    it('cannot be in a systemd unit that is not delegated', () => {
      const unit = join(hierarchy!.mount.point, `numalign-test-${process.pid}.service`);
      mkdirSync(unit);
      try {
        for (const path of [basename(unit), `${basename(unit)}/numalign`]) {
          expect(thrownBy(() => openCpusetHierarchy(`/${path}`, new MadeGroupsInMemory()))).toMatchObject({
            code: 'ERR_CGROUP',
            details: { reason: 'systemd-unit', path: unit },
          });
        }
      } finally {
        rmdirSync(unit);
      }
    });
  });

  it('cannot be in a systemd unit until systemd marks it as delegated', () => {
    const unit = join(hierarchy!.mount.point, `numalign-test-${process.pid}.scope`);
    mkdirSync(unit);
    try {
      expect(
        thrownBy(() => openCpusetHierarchy(`/${basename(unit)}/numalign`, new MadeGroupsInMemory())),
      ).toMatchObject({
        details: { reason: 'systemd-unit' },
      });
      execFileSync('python3', [
        '-c',
        'import os, sys; os.setxattr(sys.argv[1], "trusted.delegate", b"1")',
        unit,
      ]);
      expect(openCpusetHierarchy(`/${basename(unit)}/numalign`, new MadeGroupsInMemory()).canWrite()).toBe(
        true,
      );
      expect(
        thrownBy(() => openCpusetHierarchy(`/${basename(unit)}`, new MadeGroupsInMemory())),
      ).toMatchObject({
        details: { reason: 'systemd-unit' },
      });
    } finally {
      rmdirSync(unit);
    }
  });

  describe('limits', () => {
    /** A process with a limit of memory, in a cgroup below one with a quota. */
    function limitedProcess(): { pid: number; folders: string[] } {
      const [cpu, memory] = ['cpu', 'memory'].map((controller) => findHierarchy(controller)!.mount.point);
      const name = `numalign-test-${process.pid}`;
      const folders = [join(cpu!, name), join(cpu!, name, 'inner'), join(memory!, name)];
      for (const folder of folders) mkdirSync(folder);
      onTestFinished(() => {
        for (const folder of folders.toReversed()) rmdirSync(folder);
      });
      writeFileSync(join(folders[0]!, 'cpu.cfs_quota_us'), '50000');
      writeFileSync(join(folders[2]!, 'memory.limit_in_bytes'), String(64 << 20));
      const pid = idler();
      for (const folder of folders.slice(1)) writeFileSync(join(folder, 'cgroup.procs'), String(pid));
      return { pid, folders };
    }

    it('of CPU time and memory are reported, the tightest above a process', () => {
      const { pid, folders } = limitedProcess();
      expect(limitsOfProcess(pid)).toEqual({
        cpuMax: {
          path: folders[0],
          cpus: 0.5,
          quotaUs: 50_000,
          periodUs: 100_000,
          throttled: { nrThrottled: expect.any(Number), throttledUs: expect.any(Number) },
        },
        memoryMax: { path: folders[2], bytes: 64 << 20 },
      });
      expect(thrownBy(() => limitsOfProcess(2 ** 22 + 1))).toMatchObject({
        code: 'ERR_CGROUP',
        details: { reason: 'no-process' },
      });
    });

    it('of its own cgroups are those of a process alone', () => {
      const { pid, folders } = limitedProcess();
      const own = ['cpu', 'memory'].map((controller) => cgroupFolder(pid, controller));
      expect(own).toEqual(folders.slice(1));
      expect(limitsOf([own[0]!], [own[1]!])).toEqual({
        cpuMax: null,
        memoryMax: { path: folders[2], bytes: 64 << 20 },
      });
    });
  });

  describe('groups', () => {
    it('are made with those between, which grow with them', () => {
      const { tree } = madeRoot();
      tree.group('pod', 'a').create(cpus('0'), NODE0);
      expect(tree.group('pod').cpus()).toEqual(cpus('0'));
      tree.group('pod', 'b').create(cpus('1'), NODE0);
      expect(tree.group('pod').cpus()).toEqual(cpus('0-1'));
      expect(tree.group('pod', 'a').cpus()).toEqual(cpus('0'));
      expect(tree.group('pod', 'b').effectiveCpus()).toEqual(cpus('1'));
      expect(tree.group('pod', 'b').effectiveMems()).toEqual(NODE0);
      expect(tree.list()).toEqual(['pod']);
    });

    it("have names that cannot leave our root, nor be one of the kernel's files", () => {
      const { tree } = madeRoot();
      const names = [
        '..',
        '.',
        '../../x',
        'a/b',
        'tasks',
        'cpuset.cpus',
        'notify_on_release',
        'a b',
        'ü',
        '%2E',
        '-',
      ];
      for (const name of names) {
        const group = tree.group(name);
        expect(group.path).toMatch(new RegExp(`^${tree.rootPath}/[^/.]+$`));
        group.create(cpus('0'), NODE0);
      }
      expect(tree.list()).toEqual([...names].sort());
      for (const name of ['', 'x'.repeat(256), '\ud800', 3 as never]) {
        expect(thrownBy(() => tree.group(name))).toMatchObject({
          code: 'ERR_CGROUP',
          details: { reason: 'bad-name' },
        });
      }
    });

    it('need our root', () => {
      const { tree, files } = ownRoot();
      const error = thrownBy(() => tree.group('a').create(cpus('0'), NODE0));
      expect(error).toMatchObject({ code: 'ERR_CGROUP', details: { reason: 'missing' } });
      expect(files.log).toEqual([]);
    });

    it('are written only as far as they differ', () => {
      const { tree, files } = madeRoot();
      const group = tree.group('pod', 'a');
      group.create(cpus('0'), NODE0);
      group.setMigration(true);
      expect(read(group.path, 'cpuset.memory_migrate')).toBe('1');
      files.log.length = 0;
      group.create(cpus('0'), NODE0);
      group.setCpus(cpus('0'));
      group.setMems(NODE0, { migrate: true });
      expect(files.log).toEqual([]);
      group.create(cpus('0-1'), NODE0);
      expect(files.log).toEqual([
        `${tree.group('pod').path}/cpuset.cpus=0-1`,
        `${group.path}/cpuset.cpus=0-1`,
      ]);
    });

    it('have pages migrate, or stay', () => {
      const { tree, files } = madeRoot();
      const group = tree.group('a');
      group.create(cpus('0'), NODE0);
      const migrates = () => read(group.path, 'cpuset.memory_migrate');
      for (const each of [true, false]) {
        group.setMigration(each);
        expect(migrates()).toBe(each ? '1' : '0');
        files.log.length = 0;
        group.setMigration(each);
        expect(files.log).toEqual([]);
      }
    });

    it('leave nothing behind where they cannot be made', () => {
      const { tree, made } = ownRoot();
      tree.ensureRoot(cpus('0'), NODE0);
      const [add, remove] = [vi.spyOn(made, 'add'), vi.spyOn(made, 'remove')];
      const error = thrownBy(() => tree.group('pod', 'a').create(cpus('1'), NODE0));
      expect(error).toMatchObject({
        code: 'ERR_CGROUP',
        errnoName: 'EACCES',
        details: { reason: 'outside-parent' },
      });
      expect(tree.list()).toEqual([]);
      expect(remove.mock.calls).toEqual(add.mock.calls.toReversed());
      tree.group('pod').create(cpus('0'), NODE0);
      const { dev, ino } = statSync(tree.group('pod').path, { bigint: true });
      expect(made.has(tree.group('pod').path, dev, ino)).toBe(true);
    });

    it('hold processes, whole', async () => {
      const { tree } = madeRoot();
      const group = tree.group('a');
      group.create(cpus('1'), NODE0);
      const { pid, threads } = await threadedIdler();
      group.attach(pid);
      expect(group.processes()).toEqual([pid]);
      expect(group.threads()).toEqual(threads().sort((a, b) => a - b));
      expect(allowedOf(pid)).toBe('1');
      expect(group.isPopulated()).toBe(true);
      expect(tree.group().isPopulated()).toBe(true);
      expect(tree.folderOf(pid)).toBe(group.path);
    });

    it('hold single threads', async () => {
      const { tree } = madeRoot();
      const group = tree.group('a');
      group.create(cpus('1'), NODE0);
      const { pid, threads } = await threadedIdler();
      const tid = threads().find((id) => id !== pid)!;
      group.attachThread(tid);
      expect(group.threads()).toEqual([tid]);
      expect(tree.folderOf(pid, tid)).toBe(group.path);
      expect(tree.folderOf(pid)).not.toContain(tree.rootPath);
      // What stays elsewhere is not moved with it.
      group.remove(tree.rootPath);
      expect(tree.group().threads()).toEqual([tid]);
    });

    it('are left by the other threads of a process when one ends', async () => {
      const { tree } = madeRoot();
      const pod = tree.group('pod');
      pod.create(cpus('0'), NODE0);
      const { pid, threads } = await threadedIdler();
      const inside = threads().slice(1);
      for (const tid of inside) pod.attachThread(tid);
      let hasEnded = false;
      const ending = openCpusetHierarchy(ROOT, new MadeGroupsInMemory(), {
        ...tree,
        makeFolder: mkdirSync,
        removeFolder: rmdirSync,
        write(path: string, text: string) {
          writeFileSync(path, `${text}\n`);
          // As if it had ended before.
          const error = Object.assign(new Error('ESRCH'), { errno: -3, code: 'ESRCH', syscall: 'write' });
          if (!hasEnded) {
            hasEnded = true;
            throw error;
          }
        },
      });
      ending.group('pod').moveBack(pid, tree.rootPath);
      expect(inside.length).toBeGreaterThan(1);
      expect(pod.threads()).toEqual([]);
    });

    it('shrink from the bottom, grow from the top, and move', () => {
      const { tree, files } = madeRoot();
      const [pod, a, b] = [tree.group('pod'), tree.group('pod', 'a'), tree.group('pod', 'b')];
      pod.create(cpus('0-1'), NODE0);
      a.create(cpus('0'), NODE0);
      b.create(cpus('0-1'), NODE0);
      const pid = idler();
      a.attach(pid);
      files.log.length = 0;
      pod.setCpus(cpus('1'));
      expect(files.log).toEqual([
        `${a.path}/cpuset.cpus=1`,
        `${b.path}/cpuset.cpus=1`,
        `${pod.path}/cpuset.cpus=1`,
      ]);
      expect(allowedOf(pid)).toBe('1');
      files.log.length = 0;
      pod.setCpus(cpus('0'));
      expect(files.log).toEqual([
        `${pod.path}/cpuset.cpus=0-1`,
        `${a.path}/cpuset.cpus=0`,
        `${b.path}/cpuset.cpus=0`,
        `${pod.path}/cpuset.cpus=0`,
      ]);
      files.log.length = 0;
      pod.setCpus(cpus('0-1'));
      expect(files.log).toEqual([`${pod.path}/cpuset.cpus=0-1`]);
      expect(a.cpus()).toEqual(cpus('0'));
    });

    it('are restored if a change fails half-way', () => {
      const { tree } = madeRoot();
      const [pod, a] = [tree.group('pod'), tree.group('pod', 'a')];
      pod.create(cpus('0'), NODE0);
      a.create(cpus('0'), NODE0);
      const failing = openCpusetHierarchy(ROOT, new MadeGroupsInMemory(), {
        ...tree,
        makeFolder: mkdirSync,
        removeFolder: rmdirSync,
        write(path: string, text: string) {
          if (path === `${pod.path}/cpuset.cpus` && text === '1') writeFileSync(path, '4000000');
          writeFileSync(path, `${text}\n`);
        },
      });
      const error = thrownBy(() => failing.group('pod').setCpus(cpus('1')));
      expect(error).toMatchObject({ code: 'ERR_CGROUP', errnoName: 'ERANGE' });
      expect([pod.cpus(), a.cpus()]).toEqual([cpus('0'), cpus('0')]);
    });

    it('are reported as half-changed if a change fails and cannot be undone', () => {
      const { tree } = madeRoot();
      tree.group('pod', 'a').create(cpus('0'), NODE0);
      const file = join(tree.group('pod').path, 'cpuset.cpus');
      let writes = 0;
      const failing = openCpusetHierarchy(ROOT, new MadeGroupsInMemory(), {
        ...tree,
        makeFolder: mkdirSync,
        removeFolder: rmdirSync,
        write(path: string, text: string) {
          // The first write is done, what comes after it is not, nor is its undoing.
          writeFileSync(path, path === file && ++writes > 1 ? '4000000' : `${text}\n`);
        },
      });
      const error = thrownBy(() => failing.group('pod').setCpus(cpus('1')));
      expect(error).toMatchObject({
        code: 'ERR_CGROUP',
        errnoName: 'ERANGE',
        message: expect.stringContaining('the former value could not be restored'),
        details: { reason: expect.any(String), path: file, restored: false },
      });
    });

    it('are removed from the bottom, and their processes go to the given cgroup', async () => {
      const { tree, files } = madeRoot();
      const [pod, a, b] = [tree.group('pod'), tree.group('pod', 'a'), tree.group('pod', 'b')];
      a.create(cpus('0'), NODE0);
      b.create(cpus('1'), NODE0);
      const first = idler();
      const second = idler();
      a.attach(first);
      b.attach(second);
      expect(thrownBy(() => pod.remove())).toMatchObject({
        code: 'ERR_CGROUP',
        errnoName: 'EBUSY',
        details: { reason: 'in-use' },
      });
      expect(b.exists()).toBe(true);
      pod.remove(tree.mount);
      expect(pod.exists()).toBe(false);
      expect(files.log.filter((line) => line.startsWith('rmdir'))).toEqual([
        `rmdir ${a.path}`,
        `rmdir ${b.path}`,
        `rmdir ${pod.path}`,
      ]);
      for (const pid of [first, second]) expect(tree.folderOf(pid)).toBe(tree.mount);
      pod.remove();
    });

    // Now and then one has just ended, which the kernel counts a moment longer than it tells of it.
    it('are left by processes that keep being born', { repeats: 30 }, async () => {
      const { tree } = madeRoot();
      const group = tree.group('a');
      group.create(cpus('0'), NODE0);
      const pid = idler('while :; do /bin/true; done');
      group.attach(pid);
      group.remove(tree.rootPath);
      expect(group.exists()).toBe(false);
      expect(tree.group().processes()).toContain(pid);
    });

    it('are not removed if numalign did not create them, or one below', () => {
      const { tree, files } = madeRoot();
      const pod = tree.group('pod');
      mkdirSync(pod.path);
      expect(thrownBy(() => pod.remove())).toMatchObject({
        code: 'ERR_CGROUP',
        details: { reason: 'not-made' },
      });
      rmdirSync(pod.path);
      tree.group('pod', 'a').create(cpus('0'), NODE0);
      mkdirSync(join(pod.path, 'a', 'theirs'));
      files.log.length = 0;
      const error = thrownBy(() => pod.remove(tree.rootPath));
      expect(error).toMatchObject({
        code: 'ERR_CGROUP',
        details: { reason: 'not-made', path: join(pod.path, 'a', 'theirs') },
      });
      expect(files.log).toEqual([]);
      // Another of the same path is not the one that was made.
      rmdirSync(join(pod.path, 'a', 'theirs'));
      rmdirSync(join(pod.path, 'a'));
      mkdirSync(join(pod.path, 'a'));
      expect(thrownBy(() => pod.remove())).toMatchObject({ details: { reason: 'not-made' } });
    });

    it('let processes go only to other cgroups of the hierarchy', () => {
      const { tree } = madeRoot();
      const group = tree.group('a');
      group.create(cpus('0'), NODE0);
      group.attach(idler());
      for (const place of ['/tmp', group.path, `${tree.mount}/../cpu`, 'x', `${tree.mount}/`]) {
        expect(thrownBy(() => group.remove(place))).toMatchObject({
          code: 'ERR_CGROUP',
          details: { reason: 'bad-path' },
        });
      }
      expect(group.processes()).toHaveLength(1);
    });
  });

  describe('refusals of the kernel', () => {
    const refusal = (action: () => unknown) => {
      const error = thrownBy(action);
      return { code: error?.code, errno: error?.errnoName, reason: error?.details.reason };
    };

    it('name the problem in words', () => {
      const { tree } = madeRoot();
      const [bare, group] = [tree.group('bare'), tree.group('a')];
      mkdirSync(bare.path);
      group.create(cpus('0'), NODE0);
      const pid = idler();
      const code = 'ERR_CGROUP';
      expect(refusal(() => bare.attach(pid))).toEqual({ code, errno: 'ENOSPC', reason: 'no-cpus' });
      expect(refusal(() => bare.attachThread(pid))).toEqual({ code, errno: 'ENOSPC', reason: 'no-cpus' });
      expect(refusal(() => group.attach(2 ** 22 + 1))).toEqual({
        code,
        errno: 'ESRCH',
        reason: 'no-process',
      });
      expect(refusal(() => tree.folderOf(2 ** 22 + 1))).toMatchObject({ code, reason: 'no-process' });
      expect(refusal(() => group.attach(0))).toMatchObject({ code, reason: 'no-process' });
      expect(refusal(() => group.attach(-1))).toMatchObject({ code, reason: 'no-process' });
      expect(refusal(() => tree.group('none').attach(pid))).toEqual({
        code,
        errno: 'ENOENT',
        reason: 'missing',
      });
      expect(refusal(() => tree.group('none').cpus())).toEqual({ code, errno: 'ENOENT', reason: 'missing' });
      expect(refusal(() => group.setCpus(CpuSet.EMPTY))).toMatchObject({ code, reason: 'no-cpus' });
      expect(refusal(() => group.setMems(NodeSet.EMPTY))).toMatchObject({ code, reason: 'no-cpus' });
      expect(refusal(() => group.setCpus(CpuSet.of(60_000)))).toEqual({
        code,
        errno: 'ERANGE',
        reason: 'invalid-ids',
      });
      expect(refusal(() => group.setMems(NodeSet.of(900)))).toMatchObject({ code, reason: 'invalid-ids' });
      expect(refusal(() => group.setPartition('root', cpus('0')))).toMatchObject({ code, reason: 'version' });
      expect(refusal(() => tree.setPartition('isolated', cpus('0')))).toMatchObject({
        code,
        reason: 'version',
      });
    });

    it('name the system call, the file, the value and what would be valid', () => {
      const { tree } = madeRoot();
      tree.ensureRoot(cpus('0'), NODE0);
      const group = tree.group('a');
      group.create(cpus('0'), NODE0);
      const error = thrownBy(() => group.setCpus(cpus('0-1')))!;
      expect(error.message).toContain('the cgroup above does not have all of them (EACCES, write');
      expect(error.details).toMatchObject({
        errno: 13,
        syscall: 'write',
        path: `${group.path}/cpuset.cpus`,
        value: '0-1',
        valid: 'a part of what the cgroup above has',
      });
      expect(group.cpus()).toEqual(cpus('0'));
    });
  });
});

// needs: machine
// Where hierarchies are mounted and which folder a path of /proc/PID/cgroup is, in mount and cgroup
// namespaces of the test's own.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { checkFolder } from '../../../lib/cgroups/files/cgroup-path.js';
import { folderOf, type Hierarchy, pathIn } from '../../../lib/cgroups/files/hierarchies.js';
import { mountOf, overlayOf } from '../../../lib/cgroups/files/mounts.js';
import { thrownBy } from '../../support/error-of.js';
import { canMount, canUnshare } from '../../support/rights.js';
import { canBeStranger, forStrangers } from '../../support/strangers.js';
import { cpus, hierarchy, isUsable, madeRoot, NODE0, ROOT } from '../own-root.js';

describe('the path of a process', () => {
  const text = '9:name=systemd:/\n5:cpu,cpuacct:/a:b\n3:cpuset:/pods/x\n0::/user.slice/s (deleted)\n';

  it('is found by its controller, or in cgroup v2 by having none', () => {
    expect(pathIn({ version: 1, controller: 'cpuset' }, text)).toBe('/pods/x');
    expect(pathIn({ version: 1, controller: 'cpu' }, text)).toBe('/a:b');
    expect(pathIn({ version: 1, controller: 'name=systemd' }, text)).toBe('/');
    expect(pathIn({ version: 2, controller: 'cpuset' }, text)).toBe('/user.slice/s');
    expect(pathIn({ version: 1, controller: 'memory' }, text)).toBeUndefined();
  });

  it('is a folder below the mount, as far as the mount shows it', () => {
    const at = (root: string): Hierarchy => ({
      version: 1,
      controller: 'cpuset',
      mount: { point: '/mnt', root, type: 'cgroup', options: [] },
    });
    expect(folderOf(at('/'), '/')).toBe('/mnt');
    expect(folderOf(at('/'), '/a/b')).toBe('/mnt/a/b');
    expect(folderOf(at('/a'), '/a')).toBe('/mnt');
    expect(folderOf(at('/a'), '/a/b')).toBe('/mnt/b');
    expect(folderOf(at('/a'), '/ab')).toBeUndefined();
    expect(folderOf(at('/..'), '/../b')).toBe('/mnt/b');
    expect(folderOf(at('/..'), '/')).toBeUndefined();
  });
});

describe('a folder of a hierarchy', () => {
  it('is not reached over a link or a file', () => {
    const top = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(top, { recursive: true }));
    mkdirSync(join(top, 'a', 'b'), { recursive: true });
    symlinkSync(join(top, 'a'), join(top, 'link'));
    checkFolder(top, join(top, 'a', 'b', 'not-yet', 'there'));
    expect(thrownBy(() => checkFolder(top, join(top, 'link', 'b')))).toMatchObject({
      code: 'ERR_CGROUP',
      message: expect.stringContaining(`${join(top, 'link')} is a link`),
      details: {
        reason: 'bad-path',
        path: join(top, 'link'),
        value: join(top, 'link', 'b'),
        valid: expect.any(String),
      },
    });
  });

  it('is not reached over another mount', () => {
    expect(thrownBy(() => checkFolder('/sys', '/sys/fs/cgroup/x'))).toMatchObject({
      code: 'ERR_CGROUP',
      message: expect.stringContaining('/sys/fs/cgroup is another file system'),
    });
  });

  it('lies in the latest of the deepest mounts above it', () => {
    const mount = (point: string, root: string) => ({ point, root, type: 'cgroup', options: [] });
    const mounts = [mount('/', '/'), mount('/c', '/old'), mount('/c', '/new'), mount('/c/d', '/d')];
    expect(mountOf('/c/x', mounts)!.root).toBe('/new');
    expect(mountOf('/c', mounts)!.root).toBe('/new');
    expect(mountOf('/c/d/e', mounts)!.root).toBe('/d');
    expect(mountOf('/cd', mounts)!.root).toBe('/');
  });
});

describe.runIf(isUsable && canUnshare)('in a container', () => {
  /**
   * Runs a script that opens `tree` at `root`, after commands in namespaces of its own. Returns its
   * output.
   */
  function inside(options: string[], commands: string, root: string, script: string): any {
    const program = `
      import { openCpusetHierarchy } from './dist-test/lib/cgroups/cpuset-hierarchy.js';
      import { MadeGroupsInMemory } from './dist-test/lib/cgroups/files/made-groups.js';
      import { CpuSet, NodeSet } from './dist-test/lib/index.js';
      const refusal = (action) => { try { action(); } catch (e) { return [e.code, e.details?.reason, e.errnoName]; } };
      const open = () => openCpusetHierarchy(${JSON.stringify(root)}, new MadeGroupsInMemory());
      console.log(JSON.stringify(${script}));`;
    const args = [...options, 'sh', '-ec', `${commands}\nexec "$0" "$@"`, process.execPath];
    // Its `./dist` is the common one.
    const where = { cwd: forStrangers('.'), encoding: 'utf8' } as const;
    return JSON.parse(execFileSync('unshare', [...args, '--input-type=module', '-e', program], where));
  }
  const mount = () => hierarchy!.mount.point;

  it('that has a part of the hierarchy at the place of the whole, processes are where they are seen', () => {
    const { tree } = madeRoot();
    const box = tree.group('box');
    box.create(cpus('0-1'), NODE0);
    const said = inside(
      ['-m'],
      `echo $$ > ${box.path}/cgroup.procs; mount --bind ${box.path} ${mount()}`,
      '/numalign',
      '(() => { const tree = open(); tree.ensureRoot(CpuSet.of(0), NodeSet.of(0)); tree.group().attach(process.pid); const inner = tree.folderOf(process.pid); tree.group().remove(tree.mount); return { inner, outer: tree.folderOf(process.pid), other: refusal(() => tree.folderOf(process.ppid)) }; })()',
    );
    expect(said).toEqual({
      inner: join(mount(), 'numalign'),
      outer: mount(),
      other: ['ERR_CGROUP', 'missing', null],
    });
    expect(box.exists()).toBe(true);
  });

  it('that has a cgroup namespace, too', () => {
    const { tree } = madeRoot();
    const box = tree.group('box');
    box.create(cpus('0-1'), NODE0);
    const said = inside(
      ['-m'],
      `echo $$ > ${box.path}/cgroup.procs; exec unshare -C sh -ec 'umount ${mount()}; mount -t cgroup -o cpuset cgroup ${mount()}; exec "$0" "$@"' "$0" "$@"`,
      '/numalign',
      '(() => { const tree = open(); tree.ensureRoot(CpuSet.of(0), NodeSet.of(0)); tree.group().attach(process.pid); const inner = tree.folderOf(process.pid); tree.group().remove(tree.mount); return { inner, outer: tree.folderOf(process.pid) }; })()',
    );
    expect(said).toEqual({
      inner: join(mount(), 'numalign'),
      outer: mount(),
    });
  });

  it('that has a part of the hierarchy mounted before the whole, the whole is used', () => {
    const { tree } = madeRoot();
    const box = tree.group('box');
    box.create(cpus('0-1'), NODE0);
    onTestFinished(() => rmSync('/run/numalign-test-whole', { recursive: true }));
    const said = inside(
      ['-m'],
      `mkdir -p /run/numalign-test-whole; mount -t tmpfs none /run/numalign-test-whole; mkdir /run/numalign-test-whole/all
       mount --bind ${mount()} /run/numalign-test-whole/all; umount -l ${mount()}
       mount --bind /run/numalign-test-whole/all${ROOT}/box ${mount()}; cd /run/numalign-test-whole; mkdir last
       mount --bind all last; umount all; cd ${process.cwd()}`,
      '/numalign',
      '({ mount: open().mount })',
    );
    expect(said).toEqual({ mount: '/run/numalign-test-whole/last' });
  });

  it('where the hierarchy is read-only, it can be looked at', () => {
    const said = inside(
      ['-m'],
      `mount -o remount,bind,ro ${mount()}`,
      ROOT,
      '{ canWrite: open().canWrite(), why: refusal(() => open().checkWritable()), made: refusal(() => open().ensureRoot(CpuSet.of(0), NodeSet.of(0))), here: open().folderOf(process.pid) }',
    );
    expect(said).toEqual({
      canWrite: false,
      why: ['ERR_CGROUP', 'readonly', 'EROFS'],
      made: ['ERR_CGROUP', 'readonly', 'EROFS'],
      here: mount(),
    });
  });

  it('without the hierarchy, that is said', () => {
    expect(inside(['-m'], `umount ${mount()}`, ROOT, 'refusal(open)')).toEqual(['ERR_CGROUP', 'none', null]);
    expect(inside(['-m'], `mount -t tmpfs none /sys/fs/cgroup`, ROOT, 'refusal(open)')).toEqual([
      'ERR_CGROUP',
      'none',
      null,
    ]);
  });

  it.runIf(canBeStranger)('of another user, it can be looked at', () => {
    const said = inside(
      ['-m'],
      'set -- --reuid=65534 --regid=65534 --clear-groups "$0" "$@"; set -- setpriv "$@"; exec "$@"',
      ROOT,
      '{ canWrite: open().canWrite(), why: refusal(() => open().checkWritable()), made: refusal(() => open().ensureRoot(CpuSet.of(0), NodeSet.of(0))), here: open().folderOf(process.pid) }',
    );
    expect(said).toEqual({
      canWrite: false,
      why: ['ERR_CGROUP', 'no-access', 'EACCES'],
      made: ['ERR_CGROUP', 'no-access', 'EACCES'],
      here: mount(),
    });
  });
});

describe.runIf(canMount)('the upper layer of an overlay', () => {
  it('is found by every name that leads there, and nothing beside it', () => {
    // On tmpfs, since not every file system can be an upper layer.
    const base = mkdtempSync('/dev/shm/numalign-test-');
    onTestFinished(() => rmSync(base, { recursive: true }));
    const [lower, upper, work, merged] = ['lower', 'a, b', 'work', 'merged'].map((name) => join(base, name));
    for (const folder of [lower, upper, work, merged]) mkdirSync(folder!);
    const layers = `lowerdir=${lower},upperdir=${upper!.replace(',', '\\,')},workdir=${work}`;
    execFileSync('mount', ['-t', 'overlay', 'overlay', '-o', layers, merged!]);
    onTestFinished(() => void execFileSync('umount', [merged!]));
    symlinkSync(upper!, join(base, 'link'));
    expect(
      [upper!, join(upper!, 'not/there'), join(base, 'link/state')].map((path) => overlayOf(path)?.point),
    ).toEqual([merged, merged, merged]);
    expect([merged!, lower!, work!, base, '/'].map((path) => overlayOf(path))).toEqual(
      Array(5).fill(undefined),
    );
  });
});

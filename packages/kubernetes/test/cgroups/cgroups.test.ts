import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cgroupPath, isOfContainer } from '../../lib/cgroups/cgroup-path.js';
import { cpusetOfProcess } from '../../lib/cgroups/cpuset.js';
import { folderOfProcess } from '../../lib/cgroups/hierarchies.js';
import { limitsOfProcess } from '../../lib/cgroups/limits.js';

const PID = 4711;

/** A folder with a /proc and cgroups: files by their paths; `MOUNT` is the folder. */
function machineWith(files: Record<string, string>): { proc: string; folder: string } {
  const folder = mkdtempSync(join(tmpdir(), 'numalign cgroups-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text.replaceAll('MOUNT', folder.replaceAll(' ', '\\040')));
  }
  return { proc: join(folder, 'proc'), folder };
}

const mount = (point: string, rest: string, root = '/') => `30 20 0:25 ${root} MOUNT/${point} rw - ${rest}\n`;
const V1 = {
  'proc/self/mountinfo':
    '1 0 8:1 / / rw - ext4 /dev/vda rw\n' +
    mount('cpu', 'cgroup cgroup rw,cpu,cpuacct') +
    mount('cpuset', 'cgroup cgroup rw,cpuset') +
    mount('memory', 'cgroup cgroup rw,memory') +
    mount('unified', 'cgroup2 cgroup2 rw'),
  'unified/cgroup.controllers': '\n',
  [`proc/${PID}/cgroup`]: '5:cpuset:/k/a\n4:memory:/k/m\n3:cpu,cpuacct:/k/c\n1:name=systemd:/s\n0::/u\n',
  'cpuset/k/a/cpuset.cpus': '0-3\n',
  'cpuset/k/a/cpuset.mems': '0-1\n',
  'cpuset/k/a/cpuset.effective_cpus': '0-2\n',
  'cpuset/k/a/cpuset.effective_mems': '0\n',
  'cpu/k/c/cpu.cfs_quota_us': '150000\n',
  'cpu/k/c/cpu.cfs_period_us': '50000\n',
  'memory/k/m/memory.limit_in_bytes': '1048576\n',
};
const V2 = {
  'proc/self/mountinfo': mount('cgroup', 'cgroup2 cgroup2 rw,nsdelegate'),
  'cgroup/cgroup.controllers': 'cpuset cpu memory\n',
  [`proc/${PID}/cgroup`]: '0::/k/a\n',
  'cgroup/k/a/cgroup.procs': '',
  'cgroup/k/a/cpuset.cpus': '\n',
  'cgroup/k/a/cpuset.mems': '1\n',
  'cgroup/k/a/cpuset.cpus.effective': '0-7\n',
  'cgroup/k/a/cpuset.mems.effective': '1\n',
  'cgroup/k/a/cpu.max': '200000 100000\n',
  'cgroup/k/a/memory.max': '4096\n',
};
const textOf = (proc: string) => {
  const { cpus, mems, effectiveCpus, effectiveMems } = cpusetOfProcess(PID, proc);
  return [cpus, mems, effectiveCpus, effectiveMems].map(String);
};

describe("A container's cpuset", () => {
  it('is what the kernel has with cgroup v1', () => {
    const { proc, folder } = machineWith(V1);
    expect(cpusetOfProcess(PID, proc).folder).toBe(join(folder, 'cpuset/k/a'));
    expect(textOf(proc)).toEqual(['0-3', '0-1', '0-2', '0']);
  });

  it('is the configured one if a kernel of cgroup v1 has no effective one', () => {
    const { 'cpuset/k/a/cpuset.effective_cpus': _, 'cpuset/k/a/cpuset.effective_mems': __, ...older } = V1;
    expect(textOf(machineWith(older).proc)).toEqual(['0-3', '0-1', '0-3', '0-1']);
  });

  it('is the kernel’s with cgroup v2, even if nothing is set', () => {
    const { proc, folder } = machineWith(V2);
    expect(cpusetOfProcess(PID, proc).folder).toBe(join(folder, 'cgroup/k/a'));
    expect(textOf(proc)).toEqual(['', '1', '0-7', '1']);
  });

  it('is that of the cgroup above if the controller ends there', () => {
    const { proc, folder } = machineWith({
      ...V2,
      [`proc/${PID}/cgroup`]: '0::/k/a/b/c\n',
      'cgroup/k/a/b/cgroup.procs': '',
      'cgroup/k/a/b/c/cgroup.procs': '',
    });
    expect(cpusetOfProcess(PID, proc).folder).toBe(join(folder, 'cgroup/k/a/b/c'));
    expect(textOf(proc)).toEqual(['', '', '0-7', '1']);
  });

  it('is found if only a part of the hierarchy is mounted', () => {
    const files = { ...V2, 'proc/self/mountinfo': mount('cgroup/k', 'cgroup2 cgroup2 rw', '/k') };
    const { proc, folder } = machineWith({ ...files, 'cgroup/k/cgroup.controllers': 'cpuset' });
    expect(cpusetOfProcess(PID, proc).folder).toBe(join(folder, 'cgroup/k/a'));
  });

  it.each([
    ['no process', { [`proc/${PID}/cgroup`]: undefined }],
    ['a cgroup outside of its namespace', { [`proc/${PID}/cgroup`]: '0::/../../k/a\n' }],
    ['no hierarchy with the controller', { 'cgroup/cgroup.controllers': 'cpu\n' }],
    ['no such folder', { [`proc/${PID}/cgroup`]: '0::/k/gone (deleted)\n' }],
    ['a list that is none', { 'cgroup/k/a/cpuset.mems': 'x' }],
    ['a part that it is not in', { 'proc/self/mountinfo': mount('cgroup', 'cgroup2 cgroup2 rw', '/ka') }],
  ])('cannot be read with %s', (_, change) => {
    const files = Object.entries({ ...V2, ...change }).filter(([, text]) => text !== undefined);
    const { proc } = machineWith(Object.fromEntries(files) as Record<string, string>);
    expect(() => cpusetOfProcess(PID, proc)).toThrow(expect.objectContaining({ code: 'ERR_CGROUP' }));
  });

  it('has other folders for other controllers', () => {
    const { proc, folder } = machineWith(V1);
    expect(folderOfProcess(PID, 'cpuacct', proc)).toBe(join(folder, 'cpu/k/c'));
    expect(folderOfProcess(PID, 'memory', proc)).toBe(join(folder, 'memory/k/m'));
  });
});

describe("A container's limits", () => {
  it('are those of its cgroups', () => {
    expect(limitsOfProcess(PID, machineWith(V1).proc)).toEqual({ cpu: 3, memory: 1 << 20 });
    expect(limitsOfProcess(PID, machineWith(V2).proc)).toEqual({ cpu: 2, memory: 4096 });
  });

  it('are none if the kernel has none', () => {
    const v1 = {
      ...V1,
      'cpu/k/c/cpu.cfs_quota_us': '-1',
      'memory/k/m/memory.limit_in_bytes': `${2n ** 63n - 4096n}`,
    };
    const v2 = { ...V2, 'cgroup/k/a/cpu.max': 'max 100000', 'cgroup/k/a/memory.max': 'max' };
    for (const files of [v1, v2])
      expect(limitsOfProcess(PID, machineWith(files).proc)).toEqual({ cpu: undefined, memory: undefined });
  });
});

describe('The path of a cgroup', () => {
  it.each([
    ['/kubepods/burstable/pod1/abc', '/kubepods/burstable/pod1/abc'],
    ['/k8s.io/abc', '/k8s.io/abc'],
    [
      'kubepods-burstable-pod1_2.slice:cri-containerd:abc',
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-abc.scope',
    ],
    ['kubepods.slice:crio:abc', '/kubepods.slice/crio-abc.scope'],
    [':docker:abc', '/system.slice/docker-abc.scope'],
    ['-.slice:docker:abc', '/docker-abc.scope'],
    ['system.slice::abc', '/system.slice/abc.scope'],
    ['/a:b:c', '/a:b:c'],
  ])('of %s is %s', (text, path) => {
    expect(cgroupPath(text)).toBe(path);
  });

  it('belongs to a container if a part of it has that name', () => {
    for (const path of [
      '/k/abc',
      '/k/abc/init',
      '/x.slice/cri-containerd-abc.scope',
      '/x.slice/crio-abc.scope/y',
    ])
      expect(isOfContainer(path, 'abc')).toBe(true);
    for (const path of ['/k/abcd', '/k/xabc', '/x.slice/crio-conmon-abc.scope', '/', '/k/ab'])
      expect(isOfContainer(path, 'abc')).toBe(false);
  });
});

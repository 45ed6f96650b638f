import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { cgroupPath, isOfContainer } from '../../lib/cgroups/cgroup-path.js';
import { cpusetOfProcess, readCpuset } from '../../lib/cgroups/cpuset.js';

const V1 = {
  'cpuset.cpus': '0-3\n',
  'cpuset.mems': '0-1\n',
  'cpuset.effective_cpus': '0-2\n',
  'cpuset.effective_mems': '0\n',
};
const V2 = {
  'cgroup.procs': '',
  'cpuset.cpus': '\n',
  'cpuset.mems': '1\n',
  'cpuset.cpus.effective': '0-7\n',
  'cpuset.mems.effective': '1\n',
};

/** A folder with these files, by their paths. */
function folderWith(files: Record<string, string | undefined>): string {
  const folder = mkdtempSync(join(tmpdir(), 'numalign cgroups-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    if (text === undefined) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

const textOf = (folder: string) => {
  const { cpus, mems, effectiveCpus, effectiveMems } = readCpuset(folder);
  return [cpus, mems, effectiveCpus, effectiveMems].map(String);
};

describe("A container's cpuset", () => {
  it('is what the kernel has with cgroup v1', () => {
    expect(textOf(folderWith(V1))).toEqual(['0-3', '0-1', '0-2', '0']);
  });

  it('is the configured one if a kernel of cgroup v1 has no effective one', () => {
    const older = { ...V1, 'cpuset.effective_cpus': undefined, 'cpuset.effective_mems': undefined };
    expect(textOf(folderWith(older))).toEqual(['0-3', '0-1', '0-3', '0-1']);
  });

  it('is the kernel’s with cgroup v2, even if nothing is set', () => {
    expect(textOf(folderWith(V2))).toEqual(['', '1', '0-7', '1']);
  });

  it('is that of the cgroup above if the controller ends there', () => {
    const folder = folderWith({ ...V2, 'b/cgroup.procs': '', 'b/c/cgroup.procs': '' });
    expect(textOf(join(folder, 'b/c'))).toEqual(['', '', '0-7', '1']);
  });

  it.each([
    ['no such folder', 'gone', {}],
    ['a list that is none', '', { 'cpuset.mems': 'x' }],
  ])('cannot be read with %s', (_, below, change) => {
    const folder = join(folderWith({ ...V2, ...change }), below);
    expect(() => readCpuset(folder)).toThrow(expect.objectContaining({ code: 'ERR_CGROUP' }));
  });

  it('of a process is that of its cgroup', () => {
    const { folder, effectiveCpus } = cpusetOfProcess(process.pid);
    expect(readCpuset(folder).effectiveCpus).toEqual(effectiveCpus);
    expect(effectiveCpus.isEmpty).toBe(false);
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

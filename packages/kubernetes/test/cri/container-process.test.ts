import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findContainerProcess } from '../../lib/cri/container-process.js';
import { temporaryFolder } from './fake-runtime.js';

const ID = 'c0ffee'.repeat(10);

/** A folder such as /proc: of each process its cgroup and its parent. */
function procWith(processes: Record<number, [cgroup: string, parent: number]>): string {
  const proc = temporaryFolder(onTestFinished);
  for (const [pid, [cgroup, parent]] of Object.entries(processes)) {
    mkdirSync(join(proc, pid));
    writeFileSync(join(proc, pid, 'cgroup'), `1:name=systemd:/\n0::${cgroup}\n`);
    writeFileSync(join(proc, pid, 'status'), `Name:\tx\nPPid:\t${parent}\n`);
  }
  mkdirSync(join(proc, 'self'));
  return proc;
}

describe('The first process of a container', () => {
  it.each([
    `/kubepods/pod1/${ID}`,
    `/kubepods.slice/x.slice/cri-containerd-${ID}.scope`,
    `/crio-${ID}.scope/sub`,
  ])('is the one whose parent is outside of %s', (cgroup) => {
    const proc = procWith({ 1: ['/', 0], 7: [cgroup, 9], 9: [cgroup, 5], 5: ['/system.slice/shim', 1] });
    expect(findContainerProcess(ID, proc)).toBe(9);
  });

  it("is not CRI-O's monitor", () => {
    const proc = procWith({
      3: [`/x.slice/crio-conmon-${ID}.scope`, 1],
      4: [`/x.slice/crio-${ID}.scope`, 3],
    });
    expect(findContainerProcess(ID, proc)).toBe(4);
  });

  it.each([`/kubepods/${ID}0`, `/kubepods/0${ID}`, `/${ID.slice(1)}`])('is none of %s', (cgroup) => {
    expect(findContainerProcess(ID, procWith({ 2: [cgroup, 1] }))).toBeUndefined();
  });

  it('is found even if processes end meanwhile', () => {
    const proc = procWith({ 8: [`/${ID}`, 1] });
    mkdirSync(join(proc, '6'));
    expect(findContainerProcess(ID, proc)).toBe(8);
  });
});

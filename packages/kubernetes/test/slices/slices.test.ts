// The kubelet's slices, as files of a folder: where they are, and what they have.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { cgroupPath } from '../../lib/cgroups/cgroup-path.js';
import { SliceFiles } from '../../lib/slices/slice-files.js';
import { classSlices, slicesAbove } from '../../lib/slices/slice-paths.js';
import { resetSlices, Slices } from '../../lib/slices/slices.js';
import { simulatedNode } from '../support/simulated-node.js';

describe('slices', () => {
  it.each([
    ['/kubepods/pod1/a', ['/kubepods']],
    ['/kubepods/burstable/pod1/a', ['/kubepods', '/kubepods/burstable']],
    ['/x/kubepods/besteffort/pod1/a', ['/x/kubepods', '/x/kubepods/besteffort']],
    ['kubepods-pod1.slice:cri-containerd:a', ['/kubepods.slice']],
    [
      'kubepods-besteffort-pod1.slice:cri-containerd:a',
      ['/kubepods.slice', '/kubepods.slice/kubepods-besteffort.slice'],
    ],
    [
      '/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/x/a',
      [
        '/kubelet.slice/kubelet-kubepods.slice',
        '/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice',
      ],
    ],
    ['/system.slice/a', []],
  ])('above %s are known', (path, slices) => {
    expect(slicesAbove(cgroupPath(path))).toEqual(slices);
  });

  it('of the classes are where each driver has them', () => {
    expect(classSlices('/kubepods')).toEqual(['/kubepods/burstable', '/kubepods/besteffort']);
    expect(classSlices('/k.slice/k-kubepods.slice')).toEqual([
      '/k.slice/k-kubepods.slice/k-kubepods-burstable.slice',
      '/k.slice/k-kubepods.slice/k-kubepods-besteffort.slice',
    ]);
  });
});

describe.each([1, 2])('with cgroup v%i', (version) => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'numalign-slices-'));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    if (version === 2) writeFileSync(join(root, 'cgroup.controllers'), 'cpuset');
  });
  const make = (path: string, cpus: string) => {
    mkdirSync(join(root, path), { recursive: true });
    writeFileSync(join(root, path, 'cpuset.cpus'), cpus);
  };
  const cpusOf = (path: string) => readFileSync(join(root, path, 'cpuset.cpus'), 'utf8').trim();

  async function open() {
    const empty = version === 2 ? '' : '0-7';
    for (const path of ['kubepods', 'kubepods/burstable', 'kubepods/besteffort', 'kubepods/burstable/podx'])
      make(path, empty);
    const { manager } = await simulatedNode();
    const files = new SliceFiles(root);
    const log = vi.fn();
    const slices = new Slices({ manager, prefix: 'numalign', files, containers: () => [], log });
    onTestFinished(() => slices.close());
    return { manager, files, slices, log };
  }

  it('they have the pool, and what containers have', async () => {
    const { manager, slices, log } = await open();
    const process = await manager.acquire({ cpu: 2 });
    slices.start();
    const pool = `${manager.sharedPool()}`;
    await expect.poll(() => cpusOf('kubepods')).toBe(pool);
    expect(cpusOf('kubepods/burstable')).toBe(pool);
    expect(cpusOf('kubepods/burstable/podx')).toBe(version === 1 ? pool : '');
    await process.release();
    await expect.poll(() => cpusOf('kubepods/besteffort')).toBe('0-7');
    await expect.poll(() => cpusOf('kubepods/burstable/podx')).toBe(version === 1 ? '0-7' : '');
    expect(log).not.toHaveBeenCalled();
  });

  it('nothing is taken from them before the containers are known', async () => {
    const { manager } = await open();
    await manager.acquire({ cpu: 2 });
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(cpusOf('kubepods')).toBe(version === 1 ? '0-7' : '');
  });

  it('they have all CPUs again if that is asked for', async () => {
    const { files } = await open();
    if (version === 1) writeFileSync(join(root, 'cpuset.cpus'), '0-7');
    for (const path of ['kubepods', 'kubepods/burstable', 'kubepods/besteffort']) make(path, '0-3');
    resetSlices(files, [], () => {});
    const all = version === 1 ? '0-7' : '';
    expect(['kubepods', 'kubepods/burstable', 'kubepods/besteffort'].map(cpusOf)).toEqual([all, all, all]);
  });
});

// needs: nothing
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import type { Hierarchy } from '../../lib/cgroups/files/hierarchies.js';
import { readForeignCpusets } from '../../lib/doctor/foreign-cpusets.js';

/**
 * The findings in plain folders that look like these cgroups: their CPUs by path, with the content
 * of cpuset.cpus.partition.
 */
function seenIn(
  cgroups: Record<string, readonly [cpus: string, partition?: string]>,
  { own = '/numalign', most, version = 2 }: { own?: string; most?: number; version?: 1 | 2 } = {},
) {
  const point = mkdtempSync(join(tmpdir(), 'numalign-cpusets-'));
  onTestFinished(() => rmSync(point, { recursive: true }));
  for (const [path, [cpus, partition]] of Object.entries(cgroups)) {
    mkdirSync(join(point, path), { recursive: true });
    writeFileSync(join(point, path, 'cpuset.cpus'), `${cpus}\n`);
    if (partition !== undefined) writeFileSync(join(point, path, 'cpuset.cpus.partition'), `${partition}\n`);
  }
  const mount = { point, root: '/', type: version === 2 ? 'cgroup2' : 'cgroup', options: [] };
  const hierarchy: Hierarchy = { version, controller: 'cpuset', mount };
  const { cpusets, isComplete } = readForeignCpusets(join(point, own), hierarchy, most)!;
  const found = cpusets.map(
    ({ path, cpus, isPartition }) => `${path} ${cpus}${isPartition ? ' partition' : ''}`,
  );
  return { found: found.sort(), isComplete };
}

it('foreign cgroups with CPUs are found, and partitions among them are marked', () => {
  const cgroups = {
    '/system.slice': [''],
    '/system.slice/a.service': ['0-1'],
    '/rt': ['2-3', 'isolated'],
    '/broken': ['4', 'root invalid (Cpu list in cpuset.cpus not exclusive)'],
  } as const;
  expect(seenIn(cgroups)).toEqual({
    found: ['/broken 4', '/rt 2-3 partition', '/system.slice/a.service 0-1'],
    isComplete: true,
  });
});

it('in cgroup v1 a group counts if its CPUs differ from its parent’s', () => {
  const cgroups = { '/': ['0-3'], '/docker': ['0-3'], '/docker/a': ['2'], '/docker/b': ['0-3'] } as const;
  expect(seenIn(cgroups, { version: 1 }).found).toEqual(['/docker/a 2']);
});

it('our root and the groups below and above it are not foreign, but those beside them are', () => {
  const cgroups = {
    '/part': ['0-5', 'root'],
    '/part/beside': ['4'],
    '/part/numalign': ['0-3', 'root'],
    '/part/numalign/grant': ['1', 'root'],
    '/part/numalign-test': ['5'],
    '/partition': ['6', 'root'],
  } as const;
  expect(seenIn(cgroups, { own: '/part/numalign' }).found).toEqual([
    '/part/beside 4',
    '/part/numalign-test 5',
    '/partition 6 partition',
  ]);
});

it('a cgroup with very many below it hides none beside it, and the result says that it is incomplete', () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`/a.slice/${i}`, ['7']] as const));
  const cgroups = { '/a.slice': ['0'], '/b.slice': ['1'], '/c.slice': ['2'], ...many } as const;
  const { found, isComplete } = seenIn(cgroups, { most: 10 });
  expect(found.slice(-2)).toEqual(['/b.slice 1', '/c.slice 2']);
  expect([found.length, isComplete]).toEqual([9, false]);
  expect(seenIn(cgroups, { most: 54 })).toMatchObject({ isComplete: true });
});

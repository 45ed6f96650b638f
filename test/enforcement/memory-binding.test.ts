// needs: machine
// Files of cgroups for booked memory, in folders that look like them.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Assignments } from '../../lib/account/assignments.js';
import type { PodAssignment } from '../../lib/account/pod-assignment.js';
import { memoryBindings, withMemoryRefusals } from '../../lib/enforcement/memory-binding.js';
import { CpuSet } from '../../lib/index.js';

interface Folder {
  readonly v1?: string;
  readonly v2?: string;
  readonly migrate?: '0' | '1';
}

/** The root of groups, and those of containers that exist. */
function folders(root: Folder, groups: Record<string, Folder> = {}): string {
  const top = mkdtempSync(join(tmpdir(), 'numalign-binding-'));
  onTestFinished(() => rmSync(top, { recursive: true }));
  for (const [name, { v1, v2, migrate }] of [['.', root], ...Object.entries(groups)] as [string, Folder][]) {
    const folder = join(top, name);
    mkdirSync(folder, { recursive: true });
    if (v1 !== undefined) writeFileSync(join(folder, 'cpuset.effective_mems'), `${v1}\n`);
    if (v2 !== undefined) writeFileSync(join(folder, 'cpuset.mems.effective'), `${v2}\n`);
    if (migrate !== undefined) writeFileSync(join(folder, 'cpuset.memory_migrate'), `${migrate}\n`);
  }
  return top;
}

/** Containers with the nodes of their memory; those named `pool…` have no CPUs. */
function pod(
  root: string | null,
  containers: Record<string, readonly number[]>,
  memory?: Record<string, string>,
): PodAssignment {
  return {
    uid: 'p',
    admittedAt: 'then',
    upcoming: null,
    containers: Object.entries(containers).map(([name, nodes], i) => ({
      name,
      cpus: name.startsWith('pool') ? CpuSet.EMPTY : CpuSet.of(i),
      memory: nodes.length > 0 ? [{ nodes, type: 'memory', bytes: 1 }] : [],
    })),
    enforcement: { level: 'cpuset', target: root === null ? null : `${root}/p%2Fmain`, memory },
  } as unknown as PodAssignment;
}

const summary = (of: PodAssignment) =>
  memoryBindings(of).map(({ container, wanted, nodes, applied, reason, migrates }) => [
    container,
    `${wanted}`,
    nodes && `${nodes}`,
    ...[applied, reason, migrates],
  ]);

const MAIN = 'p%2Fmain';

describe('the memory nodes of the group of a container', () => {
  it.each([
    {
      title: 'are applied with cgroup v1',
      root: { v1: '0-3' },
      group: { v1: '2', migrate: '0' as const },
      found: ['2', true, null, false],
    },
    {
      title: 'are applied, and pages migrate if the request says so',
      root: { v1: '0-3' },
      group: { v1: '2', migrate: '1' as const },
      found: ['2', true, null, true],
    },
    {
      title: 'are applied with cgroup v2, where pages always migrate',
      root: { v2: '0-3' },
      group: { v2: '2' },
      found: ['2', true, null, true],
    },
    {
      title: 'are changed by another program',
      root: { v2: '0-3' },
      group: { v2: '1' },
      found: ['1', false, 'changed', true],
    },
    {
      title: 'are not those of the group above',
      root: { v2: '0-1' },
      group: { v2: '0-1' },
      found: ['0-1', false, 'outside-parent', true],
    },
    {
      title: 'belong to a missing group',
      root: { v2: '0-3' },
      found: [null, false, 'not-made', null],
    },
    {
      title: 'are refused by the kernel',
      root: { v2: '0-3' },
      group: { v2: '0-3' },
      refused: 'EINVAL',
      found: ['0-3', false, 'EINVAL', true],
    },
    {
      title: 'were refused once, and are applied',
      root: { v2: '0-3' },
      group: { v2: '2' },
      refused: 'EINVAL',
      found: ['2', true, null, true],
    },
  ])('$title', ({ root, group, refused, found }) => {
    const top = folders(root, group && { [MAIN]: group });
    const of = pod(top, { main: [2] }, refused === undefined ? undefined : { main: refused });
    expect(summary(of)).toEqual([['main', '2', ...found]]);
  });

  it('are clipped if the group above has only some of them', () => {
    const top = folders({ v2: '0-2' }, { [MAIN]: { v2: '2' } });
    expect(summary(pod(top, { main: [2, 3] }))).toEqual([['main', '2-3', '2', false, 'clipped', true]]);
  });

  it('are none without cgroups, and for a container without exclusive CPUs', () => {
    const none = ['no-cgroup', null];
    expect(summary(pod(null, { main: [2] }))).toEqual([['main', '2', null, false, ...none]]);
    const top = folders({ v2: '0-3' }, { [MAIN]: { v2: '2' } });
    expect(summary(pod(top, { main: [2], pool: [1] })).slice(1)).toEqual([
      ['pool', '1', null, false, ...none],
    ]);
  });

  it('are not reported for a container without booked memory', () => {
    expect(summary(pod(folders({ v2: '0-3' }, { [MAIN]: { v2: '0-3' } }), { main: [] }))).toEqual([]);
  });

  it('are those of all containers in the common group, once it exists', () => {
    const groups = { [MAIN]: { v2: '2' }, 'p%2Fside': { v2: '3' } };
    const containers = { main: [2], side: [3] };
    expect(summary(pod(folders({ v2: '0-3' }, groups), containers))).toHaveLength(2);
    const all = folders({ v2: '0-3' }, { ...groups, 'p%2F%2Eall': { v2: '2-3' } });
    expect(summary(pod(all, containers))[2]).toEqual([null, '2-3', '2-3', true, null, true]);
  });
});

describe('refusals on record', () => {
  const state = (memory?: Record<string, string>) =>
    ({ pods: [pod('/r', { main: [2], side: [3] }, memory)] }) as unknown as Assignments;
  const recorded = (before: Assignments, outcomes: Record<string, string | null>) =>
    withMemoryRefusals(before, new Map([['p', new Map(Object.entries(outcomes))]]));
  const memoryOf = ({ pods }: Assignments) => pods[0]!.enforcement.memory;

  it('are added, changed and removed by container', () => {
    const one = recorded(state(), { main: 'EINVAL' });
    expect(memoryOf(one)).toEqual({ main: 'EINVAL' });
    const two = recorded(one, { side: 'EACCES', main: 'EBUSY' });
    expect(memoryOf(two)).toEqual({ main: 'EBUSY', side: 'EACCES' });
    expect(memoryOf(recorded(two, { main: null }))).toEqual({ side: 'EACCES' });
    expect(memoryOf(recorded(one, { main: null }))).toBeUndefined();
    expect(one.pods[0]!.enforcement.level).toBe('cpuset');
  });

  it('are none for a container with the name of an inherited property', () => {
    const known = state({ main: 'EINVAL' });
    expect(recorded(known, { constructor: null })).toBe(known);
    const top = folders({ v2: '0-3' }, { 'p%2Fconstructor': { v2: '1' } });
    const [binding] = summary(pod(top, { constructor: [2] }, { main: 'EINVAL' }));
    expect(binding).toEqual(['constructor', '2', '1', false, 'changed', true]);
  });

  it('change neither a state that has them already, nor grants that are not on record', () => {
    const known = state({ main: 'EINVAL' });
    expect(recorded(known, { main: 'EINVAL', side: null })).toBe(known);
    expect(withMemoryRefusals(known, new Map([['other', new Map([['main', 'EINVAL']])]]))).toBe(known);
  });
});

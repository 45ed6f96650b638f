// needs: machine
// Layouts and the differences from them, without a kernel.
import { describe, expect, it } from 'vitest';
import type { Assignments } from '../../../lib/account/assignments.js';
import type { EnforcementLevel } from '../../../lib/account/levels.js';
import type { PodAssignment } from '../../../lib/account/pod-assignment.js';
import type { Partition } from '../../../lib/cgroups/groups/cpuset-tree.js';
import {
  groupDifferences,
  leftoverDifferences,
  memoryDifferences,
  partitionDifferences,
  poolDifferences,
  rootDifferences,
  uncoveredPods,
} from '../../../lib/enforcement/layout/differences.js';
import type { GroupFacts, PartitionFacts } from '../../../lib/enforcement/layout/facts.js';
import { layoutOf, uidOf } from '../../../lib/enforcement/layout/layout.js';
import type { Step } from '../../../lib/enforcement/layout/steps.js';
import { CpuSet, NodeSet } from '../../../lib/index.js';

const cpus = (text: string) => CpuSet.parse(text);

/** Containers as `name: CPUs`. */
function grant(
  uid: string,
  level: EnforcementLevel,
  containers: Record<string, string>,
  upcoming: string | null = null,
): PodAssignment {
  return {
    uid,
    admittedAt: '2026-01-01T00:00:00.000Z',
    containers: Object.entries(containers).map(([name, running]) => ({
      name,
      cpus: cpus(running),
      held: cpus(running),
      reusable: { cpus: CpuSet.EMPTY },
      memory: [],
    })),
    upcoming: upcoming === null ? null : { cpus: cpus(upcoming), held: cpus(upcoming) },
    enforcement: { level, target: level === 'recorded' ? null : `/root/${uid}` },
  } as unknown as PodAssignment;
}

const booked = (pod: PodAssignment, list: string): PodAssignment => ({
  ...pod,
  booking: { cpus: cpus(list), held: CpuSet.EMPTY, memory: [] },
});

const state = (...pods: PodAssignment[]) => ({ pods }) as unknown as Assignments;

const partition = (text: string, running: string): Partition => ({
  kind: text.split(' ')[0] as Partition['kind'],
  valid: !text.includes('invalid') && !text.startsWith('member'),
  text,
  cpus: cpus(running),
  effective: cpus(running),
});

/** The groups that exist, as `name: CPUs` or `name: CPUs partition`. */
function groups(found: Record<string, string>): ReadonlyMap<string, GroupFacts> {
  return new Map(
    Object.entries(found).map(([name, words]) => {
      const [running, ...text] = words.split(' ');
      const its = text.length > 0 ? partition(text.join(' '), running!) : undefined;
      return [name, { path: `/root/${name}`, cpus: cpus(running!), mems: undefined, partition: its }];
    }),
  );
}

const facts = (root: string, running: string, found: Record<string, string> = {}): PartitionFacts => ({
  rootPath: '/root',
  root: partition(root, running),
  online: undefined,
  groups: groups(found),
  nodes: NodeSet.EMPTY,
});

/** With what the cgroups above leave each group of 0-7. */
const withEffective = (found: PartitionFacts, effective: string): PartitionFacts => ({
  ...found,
  present: cpus('0-7'),
  groups: new Map([...found.groups].map(([name, group]) => [name, { ...group, effective: cpus(effective) }])),
});

const inWords = (step: Step) => {
  switch (step.kind) {
    case 'fit':
      return `fit ${step.path} ${step.cpus}`;
    case 'bind':
      return `bind ${step.path} ${step.nodes}`;
    case 'partition':
      return `partition ${step.cpus}`;
    case 'isolate':
      return `isolate ${step.name} ${step.cpus}`;
    case 'remove':
      return `remove ${step.path} to ${step.home}`;
  }
};

const summary = (differences: ReturnType<typeof groupDifferences>) =>
  differences.map(({ kind, isDrift, steps }) => [kind, isDrift ? 'drift' : '', ...steps.map(inWords)]);

describe('the layout of states', () => {
  const a = grant('a', 'cpuset', { main: '1-2' });

  it.each([
    {
      title: 'has no group for a grant without cgroups',
      states: [state(grant('r', 'recorded', { m: '1' }))],
      found: [],
    },
    { title: 'has the groups of a grant', states: [state(a)], found: ['a/main 1-2', 'a/.all 1-2'] },
    {
      title: 'has none for a container of the shared pool',
      states: [state(grant('p', 'cpuset', { app: '1', side: '' }))],
      found: ['p/app 1', 'p/.all 1'],
    },
    {
      title: 'gives a grant that changes its CPUs both the old and the new ones',
      states: [state(a), state(grant('a', 'cpuset', { main: '2-3' }))],
      found: ['a/main 1-3', 'a/.all 1-3'],
    },
    {
      title: 'gives each container of a changing pod its next CPUs',
      states: [
        state(grant('p', 'cpuset', { app: '1', side: '2' })),
        state(grant('p', 'cpuset', { app: '3', side: '2' })),
      ],
      found: ['p/app 3', 'p/side 2', 'p/.all 2-3'],
    },
    {
      title: 'gives containers that share the CPUs of their pod the same CPUs, and all booked memory',
      states: [state(booked(grant('p', 'cpuset', { own: '1', a: '2-3', b: '2-3' }), '1-4'))],
      found: ['p/own 1', 'p/a 2-3', 'p/b 2-3', 'p/.all 1-4'],
    },
    {
      title: 'has one group for a grant with parts, with the old and the new CPUs if they change',
      states: [
        state(booked(grant('g', 'cpuset', { io: '1', '.shared': '2' }), '1-2')),
        state(booked(grant('g', 'cpuset', { io: '3', '.shared': '2' }), '2-3')),
      ],
      found: ['g/.all 1-3'],
    },
    { title: 'has the groups of the last state', states: [state(a), state()], found: [] },
  ])('$title', ({ states, found }) => {
    expect(layoutOf(states).groups.map(({ name, cpus }) => `${name} ${cpus}`)).toEqual(found);
  });

  it('isolates containers, but not their common group', () => {
    const isolated = layoutOf([state(grant('i', 'isolated', { main: '4' }))]).groups.filter(
      ({ isolatesCpus }) => isolatesCpus,
    );
    expect(isolated.map(({ name }) => name)).toEqual(['i/main']);
  });

  it('isolates all CPUs of a grant with parts as one', () => {
    const { groups: made } = layoutOf([state(grant('i', 'isolated', { io: '4', '.shared': '5' }))]);
    expect(made.map(({ name, isolatesCpus }) => [name, isolatesCpus])).toEqual([['i/.all', true]]);
  });

  it('makes the root a partition of the CPUs that all its states keep in one', () => {
    const before = state(a, grant('b', 'partition', { main: '3' }));
    const next = state(a, grant('c', 'isolated', { main: '4' }, '5'));
    expect(String(layoutOf([before, next]).partition)).toBe('3-5');
  });

  it.each([
    { name: 'uid/container', uid: 'uid' },
    { name: 'a/b/container', uid: 'a/b' },
    { name: 'shared', uid: undefined },
  ])('finds the grant of the group $name', ({ name, uid }) => {
    expect(uidOf(name)).toBe(uid);
  });
});

describe('groups of grants', () => {
  const running = grant('a', 'cpuset', { main: '1-2' });
  const changing = grant('a', 'cpuset', { main: '1-2' }, '2-3');

  it.each([
    { title: 'are missing', pod: running, found: {}, expected: [] },
    { title: 'are right', pod: running, found: { 'a/main': '1-2' }, expected: [] },
    {
      title: 'have lost a CPU',
      pod: running,
      found: { 'a/main': '1' },
      expected: [['cgroup', 'drift', 'fit /root/a/main 1-2']],
    },
    {
      title: 'have a CPU that is not theirs',
      pod: running,
      found: { 'a/main': '1-3' },
      expected: [['cgroup', 'drift', 'fit /root/a/main 1-2']],
    },
    {
      title: 'have all CPUs that a changing grant holds',
      pod: changing,
      found: { 'a/main': '1-3' },
      expected: [['cgroup', '', 'fit /root/a/main 1-2']],
    },
  ])('$title', ({ pod, found, expected }) => {
    const layout = layoutOf([state(pod)]);
    expect(summary(groupDifferences(layout.groups, facts('member', '', found)))).toEqual(expected);
  });

  it.each([
    { effective: '1-2', expected: [] },
    { effective: '1', expected: [['cgroup', 'drift', 'fit /root/a/main 1-2']] },
    { effective: '0,3', expected: [['cgroup', 'drift', 'fit /root/a/main 1-2']] },
  ])('drift if the cgroups above leave them $effective of 1-2', ({ effective, expected }) => {
    const found = withEffective(facts('member', '', { 'a/main': '1-2' }), effective);
    expect(summary(groupDifferences(layoutOf([state(running)]).groups, found))).toEqual(expected);
  });

  it('do not drift while CPUs are offline', () => {
    const found = { ...withEffective(facts('member', '', { 'a/main': '1-2' }), '1'), present: cpus('0-1') };
    expect(groupDifferences(layoutOf([state(running)]).groups, found)).toEqual([]);
  });

  it.each([
    { title: 'is on its CPUs', found: { 'a/main': '1-2', 'p/main': '4' }, expected: [] },
    { title: 'lacks one', found: { 'a/main': '1', 'p/main': '4' }, expected: ['a'] },
    { title: 'shares one with another grant', found: { 'a/main': '1-3', 'p/main': '4' }, expected: ['b'] },
    { title: 'lacks one in its partition', found: { 'a/main': '1-2', 'p/main': '0' }, expected: [] },
    { title: 'shares one of a partition', found: { 'a/main': '1-2', 'p/main': '4-5' }, expected: ['q'] },
  ])('leave a grant uncovered if a group $title', ({ found, expected }) => {
    const pods = [
      running,
      grant('b', 'members', { main: '3' }),
      grant('p', 'partition', { main: '4' }),
      grant('q', 'partition', { main: '5' }),
    ];
    const { groups: wanted } = layoutOf([state(...pods)]);
    const uncovered = uncoveredPods(pods, wanted, facts('member', '', found));
    expect([...uncovered].map(({ uid }) => uid)).toEqual(expected);
  });

  it('get no CPU that is offline', () => {
    const { groups: wanted } = layoutOf([state(running)]);
    const found = { ...facts('member', '', { 'a/main': '3' }), online: cpus('0-1') };
    expect(summary(groupDifferences(wanted, found))).toEqual([['cgroup', 'drift', 'fit /root/a/main 1']]);
  });

  it('are left alone while all their CPUs are offline', () => {
    const { groups: wanted } = layoutOf([state(running)]);
    const found = { ...facts('member', '', { 'a/main': '0' }), online: cpus('0') };
    expect(groupDifferences(wanted, found)).toEqual([]);
  });
});

describe('the root', () => {
  const none = state(grant('a', 'cpuset', { main: '1' }));
  const one = state(grant('b', 'partition', { main: '2-3' }));
  const isolated = state(grant('i', 'isolated', { main: '2-3' }));

  it.each([
    { title: 'is no partition, as it should be', wanted: none, found: facts('member', ''), expected: [] },
    { title: 'is the partition', wanted: one, found: facts('root', '2-3'), expected: [] },
    {
      title: 'becomes a partition',
      wanted: one,
      found: facts('member', ''),
      expected: [['partition', 'drift', 'partition 2-3']],
    },
    {
      title: 'stops being a partition',
      wanted: none,
      found: facts('root', '2-3'),
      expected: [['partition', 'drift', 'partition ']],
    },
    {
      title: 'ends an invalid partition too',
      wanted: none,
      found: facts('root invalid (why)', '2-3'),
      expected: [['partition', 'drift', 'partition ']],
    },
    {
      title: 'is no valid partition',
      wanted: one,
      found: facts('root invalid (why)', '2-3'),
      expected: [['partition', 'drift', 'partition 2-3']],
    },
    {
      title: 'loses a CPU after the groups in it have left it',
      wanted: one,
      found: facts('root', '2-4', { 'b/main': '2-4' }),
      expected: [['partition', 'drift', 'fit /root/b/main 2-3', 'partition 2-3']],
    },
    {
      title: 'leaves a group without its CPUs alone',
      wanted: one,
      found: facts('root', '2-4', { 'b/main': '4' }),
      expected: [['partition', 'drift', 'partition 2-3']],
    },
    {
      title: 'isolates new groups in it',
      wanted: isolated,
      found: facts('member', ''),
      expected: [['partition', 'drift', 'partition 2-3', 'isolate i/main 2-3']],
    },
    {
      title: 'isolates groups that became ordinary again',
      wanted: isolated,
      found: facts('root', '2-3', { 'i/main': '2-3 member' }),
      expected: [['partition', 'drift', 'partition 2-3', 'isolate i/main 2-3']],
    },
    {
      title: 'makes a missing isolated group, which is no drift',
      wanted: isolated,
      found: facts('root', '2-3'),
      expected: [['partition', '', 'partition 2-3', 'isolate i/main 2-3']],
    },
    {
      title: 'isolates nothing if the kernel cannot',
      wanted: isolated,
      found: facts('root', '2-3', { 'i/main': '2-3 none' }),
      expected: [],
    },
  ])('$title', ({ wanted, found, expected }) => {
    expect(summary(partitionDifferences(layoutOf([wanted]), found))).toEqual(expected);
  });

  it.each([
    { title: 'has its CPUs with the groups isolated in it', running: '2', nested: '3', expected: [] },
    { title: 'lacks CPUs', running: '2', nested: '', expected: ['partition'] },
    { title: 'runs on CPUs of the cgroup above', running: '0-3', nested: '3', expected: ['partition'] },
  ])('differs if a valid partition $title', ({ running, nested, expected }) => {
    const found = facts('root', '2-3', { 'i/main': '3 isolated' });
    const group = found.groups.get('i/main')!;
    const its = { ...group, partition: { ...group.partition!, effective: cpus(nested) } };
    const now = {
      ...found,
      present: cpus('0-7'),
      root: { ...found.root, effective: cpus(running) },
      groups: new Map([['i/main', its]]),
    };
    const wanted = state(grant('i', 'isolated', { main: '3' }), grant('b', 'partition', { main: '2' }));
    expect(partitionDifferences(layoutOf([wanted]), now).map(({ kind }) => kind)).toEqual(expected);
  });

  it.each([
    { title: 'has all', has: '0-3', mems: '0-1', expected: [] },
    { title: 'has those of the cgroup above (cgroup v2)', has: '', mems: '', expected: [] },
    { title: 'has what the cgroup above has', has: '0-1', mems: '0', above: ['0-1', '0'], expected: [] },
    { title: 'lacks CPUs', has: '0,2', mems: '0-1', expected: [['cgroup', 'drift', 'fit /root 0-3']] },
    {
      title: 'lacks CPUs that the cgroup above has',
      has: '0',
      mems: '0-1',
      above: ['0-1', '0-1'],
      expected: [['cgroup', 'drift', 'fit /root 0-1']],
    },
    {
      title: 'lacks a memory node',
      has: '0-3',
      mems: '1',
      expected: [['memory', 'drift', 'bind /root 0-1']],
    },
  ])('of no partition differs unless it $title', ({ has, mems, above = ['0-7', '0-1'], expected }) => {
    const machine = { cpus: cpus('0-3'), mems: NodeSet.parse('0-1') };
    const [aboveCpus, aboveMems] = [cpus(above[0]!), NodeSet.parse(above[1]!)];
    const its = {
      path: '/root',
      cpus: cpus(has),
      isPartition: false,
      mems: NodeSet.parse(mems),
      above: { cpus: aboveCpus, mems: aboveMems },
    };
    expect(summary(rootDifferences(layoutOf([none]), machine, its))).toEqual(expected);
    // A partition has only the CPUs of its grants.
    const others = expected.filter(([kind]) => kind !== 'cgroup');
    expect(summary(rootDifferences(layoutOf([one]), machine, its))).toEqual(others);
    expect(summary(rootDifferences(layoutOf([none]), machine, { ...its, isPartition: true }))).toEqual(
      others,
    );
  });

  it('has nothing to compare with cgroup v1', () => {
    expect(partitionDifferences(layoutOf([one]), undefined)).toEqual([]);
  });

  it('isolates everything in it when it is made again', () => {
    const wanted = state(grant('i', 'isolated', { main: '2' }), grant('j', 'isolated', { main: '3' }));
    const found = facts('root invalid (why)', '2-3', { 'i/main': '2 isolated', 'j/main': '3 isolated' });
    expect(summary(partitionDifferences(layoutOf([wanted]), found))).toEqual([
      ['partition', 'drift', 'partition 2-3', 'isolate i/main 2', 'isolate j/main 3'],
    ]);
  });
});

describe('groups of the shared pool', () => {
  const found = (running: string, online?: string) => ({
    online: online === undefined ? undefined : cpus(online),
    groups: [{ path: '/root/shared', cpus: cpus(running), mems: undefined, partition: undefined }],
  });

  it.each([
    { title: 'are right', pool: '0-3', facts: found('0-3'), expected: [] },
    {
      title: 'are narrowed',
      pool: '0-1',
      facts: found('0-3'),
      expected: [['pool', 'drift', 'fit /root/shared 0-1']],
    },
    { title: 'keep their CPUs if the pool is empty', pool: '', facts: found('0-3'), expected: [] },
    { title: 'are right without offline CPUs', pool: '0-3', facts: found('0-2', '0-2'), expected: [] },
    {
      title: 'get only online CPUs',
      pool: '0-3',
      facts: found('0', '0-2'),
      expected: [['pool', 'drift', 'fit /root/shared 0-2']],
    },
  ])('$title', ({ pool, facts: its, expected }) => {
    expect(summary(poolDifferences(cpus(pool), its))).toEqual(expected);
  });
});

describe('remains of grants', () => {
  it('are removed, and their processes go back', () => {
    expect(summary(leftoverDifferences(['/root/a/main'], '/'))).toEqual([
      ['leftover', 'drift', 'remove /root/a/main to /'],
    ]);
  });
});

describe('memory nodes of groups', () => {
  /** Containers as `name: [CPUs, nodes of each block]`. */
  const booked = (containers: Record<string, readonly [string, ...number[][]]>): PodAssignment => {
    const pod = grant(
      'p',
      'cpuset',
      Object.fromEntries(Object.entries(containers).map(([name, [running]]) => [name, running])),
    );
    const blocks = (name: string) =>
      containers[name]!.slice(1).map((nodes) => ({ nodes, type: 'memory', bytes: 1 }));
    return {
      ...pod,
      containers: pod.containers.map((each) => ({ ...each, memory: blocks(each.name) })),
    } as PodAssignment;
  };
  const nodes = (text: string) => NodeSet.parse(text);
  /** The groups that exist, as `name: nodes`, below a root with these nodes. */
  const found = (root: string, mems: Record<string, string>) => ({
    online: undefined,
    nodes: nodes(root),
    groups: new Map(
      Object.entries(mems).map(([name, list]) => [
        name,
        { path: `/root/${name}`, cpus: cpus('1'), mems: nodes(list), partition: undefined },
      ]),
    ),
  });
  const layout = (...pods: PodAssignment[]) => layoutOf(pods.map((pod) => state(pod))).groups;

  it('are those of all blocks of a container, and of all containers for their common group', () => {
    const pod = booked({ app: ['1', [2], [2, 3]], side: ['2', [0]], none: ['3'], pool: ['', [1]] });
    expect(layout(pod).map(({ name, mems }) => `${name} ${mems}`)).toEqual([
      'p/app 2-3',
      'p/side 0',
      'p/none ',
      'p/.all 0-3',
    ]);
  });

  it('do not include returned memory', () => {
    const pod = booked({ app: ['1', [2]] });
    const [app] = pod.containers;
    const ended = { ...pod, containers: [{ ...app!, memory: [{ ...app!.memory[0]!, bytes: 0 }] }] };
    expect(layout(ended).map(({ mems }) => `${mems}`)).toEqual(['', '']);
  });

  const one = booked({ app: ['1', [2, 3]] });
  it.each([
    { title: 'are right', mems: '2-3', root: '0-3', expected: [] },
    {
      title: 'were changed by another program',
      mems: '0',
      root: '0-3',
      expected: [['memory', 'drift', 'bind /root/p/app 2-3']],
    },
    {
      title: 'exceed the nodes of the booked memory',
      mems: '0-3',
      root: '0-3',
      expected: [['memory', 'drift', 'bind /root/p/app 2-3']],
    },
    {
      title: 'are all those of the group above (cgroup v2)',
      mems: '',
      root: '0-3',
      expected: [['memory', 'drift', 'bind /root/p/app 2-3']],
    },
    { title: 'are the ones that the root has', mems: '2', root: '0-2', expected: [] },
    {
      title: 'become the ones that the root has',
      mems: '0-2',
      root: '0-2',
      expected: [['memory', 'drift', 'bind /root/p/app 2']],
    },
    { title: 'are left alone if the root has none of them', mems: '0', root: '0-1', expected: [] },
  ])('$title', ({ mems, root, expected }) => {
    expect(summary(memoryDifferences(layout(one), found(root, { 'p/app': mems })))).toEqual(expected);
  });

  it('are left alone without booked memory, and for missing groups', () => {
    const none = layout(booked({ app: ['1'] }));
    expect(memoryDifferences(none, found('0-3', { 'p/app': '0' }))).toEqual([]);
    expect(memoryDifferences(layout(one), found('0-3', {}))).toEqual([]);
  });

  it('become those of the next booking', () => {
    const groups = layout(booked({ app: ['1', [0]] }), one);
    expect(summary(memoryDifferences(groups, found('0-3', { 'p/app': '0' })))).toEqual([
      ['memory', 'drift', 'bind /root/p/app 2-3'],
    ]);
  });

  it('name the container', () => {
    const [difference] = memoryDifferences(layout(one), found('0-3', { 'p/app': '0' }));
    expect(difference).toMatchObject({ container: 'app', pod: one });
  });

  it('become those of the root again if a resize gives all memory back', () => {
    const groups = layout(one, booked({ app: ['1'] }));
    expect(summary(memoryDifferences(groups, found('0-3', { 'p/app': '2-3' })))).toEqual([
      ['memory', 'drift', 'bind /root/p/app 0-3'],
    ]);
  });
});

// needs: nothing
// Results for lists of pods follow the changes between them.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { emptyAssignments, findPod, type MachineSettings } from '../../lib/account/assignments.js';
import { type BookedMemory, bookMemory, NOTHING_BOOKED } from '../../lib/account/booked-memory.js';
import { cpusOfPartitions, cpusOfPods, cpusOfSome, heldCpus } from '../../lib/account/cpus-of-pods.js';
import { deviceKeysOf, devicesOfPods } from '../../lib/account/held-devices.js';
import { bookingFlaw, groupsOfPods } from '../../lib/account/memory-of-pods.js';
import { mortalOwners } from '../../lib/account/owners-of-pods.js';
import type { ContainerAssignment, PodAssignment } from '../../lib/account/pod-assignment.js';
import { removePods, replacePod } from '../../lib/account/pod-changes.js';
import { podListChanges, podsAfter, podsOfBoth, podsThat } from '../../lib/account/pod-list-changes.js';
import { CpuSet } from '../../lib/index.js';

const GROUPS = [[0], [1, 2]] as const;

/** `id`: its uid and one CPU; a `variant` of it has more. */
function podOf(id: number, variant: number): PodAssignment {
  const memory = variant > 0 ? [{ nodes: GROUPS[id % 2]!, type: 'memory', bytes: variant }] : [];
  const devices = variant > 1 ? { 'example.com/gpu': [{ id: `${id}`, nodes: null }] } : {};
  const reusable = { cpus: CpuSet.EMPTY, memory: [], devices: {} };
  const container: ContainerAssignment = {
    ...{ name: 'main', kind: 'app' as const, started: true, request: {}, held: CpuSet.EMPTY },
    isolation: 'container',
    cpus: CpuSet.from(variant > 1 ? [id, 100 + id] : [id]),
    ...{ hint: { nodes: null, preferred: true }, memory, devices, reusable, unknown: {} },
  };
  const kind = (['process', 'persistent', 'cgroup'] as const)[id % 3]!;
  return {
    ...{
      uid: `${id}`,
      name: `${id}`,
      containers: [container],
      booking: null,
      policy: 'none',
      scope: 'container',
    },
    ...{
      options: {},
      enforcement: { level: id % 5 === 0 ? ('isolated' as const) : ('recorded' as const), target: null },
      upcoming: null,
      transfer: null,
    },
    owner: { kind, uuid: `owner ${id % 4}`, pid: null, command: null, cgroup: null, unknown: {} },
    ...{ formerOwner: null, admittedAt: 'now', unknown: {} },
  };
}

const pods = new Map<string, PodAssignment>();
function pod(id: number, variant: number): PodAssignment {
  const key = `${id} ${variant}`;
  if (!pods.has(key)) pods.set(key, podOf(id, variant));
  return pods.get(key)!;
}

/** What some pods have of memory, all of it on the first node of its group. */
function bookedBy(pods: readonly PodAssignment[]): BookedMemory {
  const blocks = pods.flatMap(({ containers }) => containers.flatMap(({ memory }) => memory));
  return blocks.reduce((booked, block) => bookMemory(booked, block, () => block.bytes), NOTHING_BOOKED);
}

const list = fc
  .uniqueArray(fc.tuple(fc.nat(40), fc.nat(2)), { selector: ([id]) => id, maxLength: 30 })
  .map((each) => each.map(([id, variant]) => pod(id, variant)));

// One list after the other, each with most of the one before.
const lists = fc
  .tuple(
    list,
    fc.array(fc.tuple(fc.nat(40), fc.nat(2), fc.constantFrom('add', 'drop', 'vary')), { maxLength: 20 }),
  )
  .map(([first, steps]) => {
    const all = [first];
    for (const [id, variant, step] of steps) {
      const before = all.at(-1)!;
      const others = before.filter(({ uid }) => uid !== `${id}`);
      if (step === 'drop') all.push(others);
      else if (others.length < before.length && step === 'vary')
        all.push(before.map((each) => (each.uid === `${id}` ? pod(id, variant) : each)));
      else all.push([...others, pod(id, variant)]);
    }
    return all;
  });

it('the changes between two lists lead from one to the other, in order', () => {
  fc.assert(
    fc.property(list, list, (before, after) => {
      const { removed, changed, added } = podListChanges(before, after);
      const next = new Map(changed.map((each) => [each.before, each.after]));
      const left = before.filter((each) => !removed.includes(each)).map((each) => next.get(each) ?? each);
      expect([...left, ...added]).toEqual(after);
    }),
  );
});

it('the changes to a list that has one more pod are that pod', () => {
  const before = [pod(1, 0), pod(2, 0)];
  expect(podListChanges(before, [...before, pod(3, 0)])).toEqual({
    removed: [],
    changed: [],
    added: [pod(3, 0)],
  });
  expect(podListChanges(before, [pod(2, 0)])).toEqual({ removed: [pod(1, 0)], changed: [], added: [] });
  expect(podsAfter(podListChanges(before, [pod(1, 1), pod(2, 0)]))).toEqual([pod(1, 1)]);
});

it('two lists together have each pod once, one that has changed in both forms', () => {
  fc.assert(
    fc.property(list, list, (before, after) => {
      const both = podsOfBoth(before, after);
      expect(new Set(both)).toEqual(new Set([...before, ...after]));
      expect(both).toHaveLength(new Set(both).size);
    }),
  );
});

it('two lists together differ from each by what is different between the two', () => {
  const before = [pod(1, 0), pod(2, 0), pod(3, 0), pod(4, 0)];
  const after = [pod(1, 0), pod(3, 1), pod(4, 0)];
  const both = podsOfBoth(before, after);
  const [left, had] = [podListChanges(after, both), podListChanges(before, both)];
  expect(left).toEqual({ removed: [], changed: [], added: [pod(2, 0), pod(3, 0)] });
  expect(podsAfter(had)).toEqual([pod(3, 1), pod(2, 0), pod(3, 0)]);
});

it('CPUs of partitions are the same object where other grants come and go', () => {
  const before = [pod(1, 0), pod(2, 0), pod(5, 0)];
  const cpus = cpusOfPartitions(before);
  expect(String(cpus)).toBe('5');
  expect(cpusOfPartitions([...before, pod(7, 0)])).toBe(cpus);
});

it('sums over a list do not depend on earlier lists', () => {
  fc.assert(
    fc.property(lists, (all) => {
      for (const each of all) {
        expect(String(cpusOfPods(each))).toBe(String(cpusOfSome(each)));
        expect(heldCpus(each).isDisjoint).toBe(true);
        const isolated = each.filter(({ enforcement }) => enforcement.level === 'isolated');
        expect(String(cpusOfPartitions(each))).toBe(String(cpusOfSome(isolated)));
        expect([...devicesOfPods(each).keys].sort()).toEqual(
          each.flatMap((p) => [...deviceKeysOf(p)]).sort(),
        );
        const blocks = each.flatMap(({ containers }) => containers.flatMap(({ memory }) => memory));
        const nodes = [...new Set(blocks.flatMap((block) => block.nodes))].sort();
        expect([...groupsOfPods(each).keys()].sort()).toEqual(nodes);
        const sum = (group: readonly number[]) =>
          blocks.reduce((bytes, block) => bytes + (block.nodes[0] === group[0] ? block.bytes : 0), 0);
        const [first, second] = [sum(GROUPS[0]), sum(GROUPS[1])];
        const booked = { 0: { memory: first }, 1: { memory: second } };
        expect(bookingFlaw(booked, each)).toBeUndefined();
        expect(bookingFlaw({ ...booked, 2: { memory: 1 } }, each)).toMatch(/by 1 bytes/);
        const owners = each.flatMap(({ owner }) => (owner.kind === 'persistent' ? [] : [owner.uuid]));
        expect(
          mortalOwners(each)
            .map(({ uuid }) => uuid)
            .sort(),
        ).toEqual([...new Set(owners)].sort());
      }
    }),
  );
});

it('a pod is found by its uid in each list, independent of earlier lists', () => {
  fc.assert(
    fc.property(lists, (all) => {
      for (const pods of [...all, ...all.toReversed()])
        for (let id = 0; id <= 40; id++)
          expect(findPod({ pods }, `${id}`)).toBe(pods.find(({ uid }) => uid === `${id}`));
    }),
  );
});

const podsWithDevices = podsThat((each) => deviceKeysOf(each).size > 0);

it('the pods that match a condition are in the order of their list, independent of earlier lists', () => {
  fc.assert(
    fc.property(lists, (all) => {
      for (const pods of all)
        expect(podsWithDevices(pods)).toEqual(pods.filter((each) => deviceKeysOf(each).size > 0));
    }),
  );
});

it('a list less some pods, or with one in another form, has the others in their order', () => {
  const uids = fc.uniqueArray(fc.nat(40).map(String), { maxLength: 8 });
  fc.assert(
    fc.property(list, uids, fc.nat(40), (unnamed, gone, id) => {
      const pods = unnamed.map((each) => ({ ...each, name: `pod ${each.uid}` }));
      const state = { ...emptyAssignments({} as MachineSettings), pods, memory: bookedBy(pods) };
      const left = removePods(state, new Set(gone));
      expect(left.pods).toEqual(pods.filter(({ uid }) => !gone.includes(uid)));
      const names = pods.filter(({ uid }) => gone.includes(uid)).map(({ name }) => name);
      expect(left.lastCpus.map(({ name }) => name)).toEqual(names);
      expect(replacePod(state, pod(id, 1)).pods).toEqual(
        pods.map((each) => (each.uid === `${id}` ? pod(id, 1) : each)),
      );
    }),
  );
});

it('the list of mortal owners stays the same object as long as the same owners have pods', () => {
  const pods = [0, 1, 2, 3, 4, 5, 6, 7].map((id) => pod(id, 0));
  const owners = mortalOwners(pods);
  // One more of an owner that has some.
  const more = [...pods, { ...pod(9, 0), owner: pods[2]!.owner }];
  expect(mortalOwners(more)).toBe(owners);
  expect(mortalOwners(more.slice(0, -1))).toBe(owners);
});

it('a CPU that two pods hold is free only once both have released it', () => {
  const [a, b] = [pod(1, 0), { ...pod(2, 0), containers: pod(1, 0).containers }];
  const others = Array.from({ length: 10 }, (_, i) => pod(10 + i, 0));
  const both = [a, b, ...others];
  expect(heldCpus(both).isDisjoint).toBe(false);
  const one = [b, ...others];
  expect(cpusOfPods(one).has(1)).toBe(true);
  expect(cpusOfPods(others).has(1)).toBe(false);
});

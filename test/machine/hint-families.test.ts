// needs: nothing
// The packed families of memory and devices, read hint by hint: in both forms they equal the result
// of the kubelet's rules, walked mask by mask.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { native } from '../../lib/base/native.js';
import type {
  DeviceHintsCall,
  HintQuestion,
  MemoryHintsCall,
  PackedHints,
} from '../../lib/base/native-hints.js';
import { type Hints, mergeOffered, policyAt } from '../../lib/decision/hints/merge-hints.js';
import { HintFamily } from '../../lib/entries/topology.js';
import { NodeSet } from '../../lib/index.js';
import type { TopologyManagerPolicy } from '../../lib/input/policies.js';
import { budget } from '../support/budget.mjs';

interface MemoryMachine {
  /** For each type. */
  types: { request: number; free: number[]; allocatable: number[] }[];
  /** By node: those that share its allocations. */
  groups: number[][];
  reusable: { nodes: number[]; bytes: number[] }[];
}

interface Device {
  near: number[];
  available: boolean;
  reusable: boolean;
}

const wordsOf = (nodes: readonly number[]): [number, number] => {
  const words: [number, number] = [0, 0];
  for (const node of nodes) words[node >> 5]! |= 1 << (node & 31);
  return [words[0] >>> 0, words[1] >>> 0];
};
const sum = (amounts: readonly number[], nodes: readonly number[]) =>
  nodes.reduce((total, node) => total + amounts[node]!, 0);
const idsOf = (count: number) => Array.from({ length: count }, (_, node) => node);

function memoryCall(
  { types, groups, reusable }: MemoryMachine,
  must: readonly number[] = [],
): MemoryHintsCall {
  return {
    nodes: groups.length,
    types: types.length,
    amounts: types.flatMap(({ request, free, allocatable }) => [request, ...free, ...allocatable]),
    groups: groups.flatMap(wordsOf),
    reusable: reusable.flatMap(({ nodes, bytes }) => [...wordsOf(nodes), ...bytes]),
    must: wordsOf(must),
    closed: [0, 0],
  };
}

function memoryHints(machine: MemoryMachine, must: readonly number[] = []): HintFamily {
  return new HintFamily(native.memoryHints(memoryCall(machine, must)), idsOf(machine.groups.length));
}

interface DeviceMachine {
  nodes: number;
  request: number;
  onlyNearDevices: boolean;
  devices: readonly Device[];
}

function deviceCall({ nodes, request, onlyNearDevices, devices }: DeviceMachine): DeviceHintsCall {
  const rows = devices.flatMap(({ near, available, reusable }) => [
    ...wordsOf(near),
    (available ? 1 : 0) | (reusable ? 2 : 0),
  ]);
  return { nodes, request, onlyNearDevices, devices: rows };
}

function deviceHints(machine: DeviceMachine): HintFamily {
  return new HintFamily(native.deviceHints(deviceCall(machine)), idsOf(machine.nodes));
}

/** All sets of `nodes` in the order of hints. */
function* masksOf(nodes: number): Generator<number[]> {
  function* ofSize(from: number, size: number): Generator<number[]> {
    if (size === 0) yield [];
    for (let node = from; node <= nodes - size && size > 0; node++) {
      for (const rest of ofSize(node + 1, size - 1)) yield [node, ...rest];
    }
  }
  for (let size = 1; size <= nodes; size++) yield* ofSize(0, size);
}

function walk(
  nodes: number,
  isEver: (mask: readonly number[]) => boolean,
  isOffered: (mask: readonly number[]) => boolean,
) {
  let narrowest = nodes;
  const offered: number[][] = [];
  for (const mask of masksOf(nodes)) {
    if (isEver(mask)) narrowest = Math.min(narrowest, mask.length);
    if (isOffered(mask)) offered.push(mask);
  }
  return offered.map((mask) => ({ nodes: mask, preferred: mask.length === narrowest }));
}

function walkedMemoryHints({ types, groups, reusable }: MemoryMachine) {
  const isEver = (mask: readonly number[]) =>
    types.every((type) => sum(type.allocatable, mask) >= type.request);
  return walk(groups.length, isEver, (mask) => {
    const text = mask.join();
    const isOpen = mask.every((node) => {
      const group = groups[node]!;
      return mask.length === 1 ? group.length <= 1 : group.length === 0 || group.join() === text;
    });
    const left = reusable.filter((row) => row.nodes.join() === text);
    const hasNow = ({ free, request }: (typeof types)[0], i: number) =>
      sum(free, mask) + left.reduce((total, { bytes }) => total + bytes[i]!, 0) >= request;
    return isOpen && isEver(mask) && types.every(hasNow);
  });
}

function walkedDeviceHints({ nodes, request, onlyNearDevices, devices }: DeviceMachine) {
  const near = new Set(devices.flatMap((device) => device.near));
  const isInside = (mask: readonly number[]) =>
    !onlyNearDevices || near.size === 0 || mask.every((node) => near.has(node));
  const isNear = (mask: readonly number[]) => (device: Device) =>
    device.near.some((node) => mask.includes(node));
  return walk(
    nodes,
    (mask) => devices.filter(isNear(mask)).length >= request,
    (mask) =>
      isInside(mask) &&
      devices.every((device) => !device.reusable || device.near.length === 0 || isNear(mask)(device)) &&
      devices.filter((device) => device.available || device.reusable).filter(isNear(mask)).length >= request,
  );
}

const plain = (family: HintFamily, limit = Number.POSITIVE_INFINITY) =>
  family.first(limit).map(({ nodes, preferred }) => ({ nodes: nodes?.toArray() ?? null, preferred }));

/** One machine that is enumerated, and one that is not. */
const sizes = fc.constantFrom(1, 5, 8, 17);

const memoryMachineOf = (nodes: number) => {
  const type = fc.integer({ min: 1, max: 9 }).chain((most) =>
    fc.record({
      request: fc.integer({ min: 1, max: Math.ceil((most * nodes) / 3) }),
      allocatable: fc.array(fc.integer({ min: 0, max: most }), { minLength: nodes, maxLength: nodes }),
      taken: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: nodes, maxLength: nodes }),
    }),
  );
  return fc.integer({ min: 1, max: 2 }).chain((count) =>
    fc.record({
      types: fc.array(type, { minLength: count, maxLength: count }).map((types) =>
        types.map(({ request, allocatable, taken }) => ({
          request,
          allocatable,
          free: allocatable.map((amount, node) => Math.max(0, amount - taken[node]!)),
        })),
      ),
      // Nodes of the same number share their allocations; 0: they have none.
      groups: fc
        .array(fc.integer({ min: 0, max: 4 }), { minLength: nodes, maxLength: nodes })
        .map((numbers) =>
          numbers.map((number) =>
            number === 0 ? [] : idsOf(nodes).filter((node) => numbers[node] === number),
          ),
        ),
      reusable: fc.array(
        fc.record({
          nodes: fc.subarray(idsOf(nodes), { minLength: 1 }),
          bytes: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: count, maxLength: count }),
        }),
        { maxLength: 2 },
      ),
    }),
  );
};

const memoryMachines = sizes.chain(memoryMachineOf);

const deviceMachineOf = (nodes: number) =>
  fc.record({
    nodes: fc.constant(nodes),
    request: fc.integer({ min: 1, max: 4 }),
    onlyNearDevices: fc.boolean(),
    devices: fc.array(
      fc.record({
        // Near several nodes only where masks are enumerated: it is not exact elsewhere.
        near: fc.subarray(idsOf(nodes), { maxLength: nodes > 16 ? 1 : Math.min(nodes, 3) }),
        available: fc.boolean(),
        reusable: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
      }),
      { maxLength: 10 },
    ),
  });

const deviceMachines = sizes.chain(deviceMachineOf);

// First: hints are shared by all tests of a process.
describe('a family whose words have more nodes than its list', () => {
  it('does not change the hints of other machines', () => {
    const [few, more] = [idsOf(2), idsOf(3)];
    const right = HintFamily.from([{ nodes: NodeSet.of(0, 2), preferred: true }], more);
    new HintFamily(right.words, few).toArray();
    expect(right.toArray().map(({ nodes }) => `${nodes}`)).toEqual(['0,2']);
  });
});

describe('the hints of memory', () => {
  it('are those of the walked rules, in the kubelet’s order', () => {
    fc.assert(
      fc.property(memoryMachines, (machine) => {
        expect(plain(memoryHints(machine))).toEqual(walkedMemoryHints(machine));
      }),
      { numRuns: budget({ all: 30, usual: 6 }) },
    );
  });

  it('are read one by one on 64 nodes, nodes in use in their place', () => {
    const nodes = idsOf(64);
    const amounts = nodes.map(() => 2 ** 34);
    const groups = nodes.map((node) => (node === 1 ? [1] : node === 2 || node === 63 ? [2, 63] : []));
    const types = [{ request: 2 ** 33, free: amounts, allocatable: amounts }];
    const family = memoryHints({ types, groups, reusable: [] });
    const hints = plain(family, 200);
    expect(hints.slice(0, 3).map((hint) => hint.nodes)).toEqual([[0], [1], [3]]);
    expect(hints.slice(0, 62).every((hint) => hint.preferred)).toBe(true);
    const pairs = hints.slice(62).map((hint) => hint.nodes);
    expect(pairs[0]).toEqual([0, 3]);
    const place = pairs.findIndex((pair) => pair?.[0] === 2);
    expect(pairs.slice(place - 1, place + 2)).toEqual([
      [0, 62],
      [2, 63],
      [3, 4],
    ]);
  });

  it('are found quickly if each type alone has enough on nodes that lack the other', () => {
    const half = (rest: number) => idsOf(64).map((node) => (node % 2 === rest ? 1 : 0));
    const types = [0, 1].map((rest) => ({ request: 20, free: half(rest), allocatable: half(rest) }));
    const [first] = plain(memoryHints({ types, groups: idsOf(64).map(() => []), reusable: [] }), 1);
    expect(first).toEqual({ nodes: idsOf(40), preferred: true });
  });

  it('that must have some nodes are those of all hints that have them', () => {
    fc.assert(
      fc.property(memoryMachines, fc.nat(), (machine, which) => {
        const count = machine.groups.length;
        if (count > 16) return;
        const must = [which % count];
        const expected = plain(memoryHints(machine)).filter(({ nodes }) => nodes?.includes(must[0]!));
        expect(plain(memoryHints(machine, must))).toEqual(expected);
      }),
      { numRuns: budget({ all: 50, usual: 10 }) },
    );
  });

  const right = {
    nodes: 2,
    types: 1,
    amounts: [1, 2, 2, 2, 2],
    groups: [0, 0, 0, 0],
    reusable: [1, 0, 5],
    must: [0, 0],
    closed: [0, 0],
  };
  it.each<[string, keyof typeof right, unknown, typeof TypeError | typeof RangeError]>([
    ['no nodes', 'nodes', 0, RangeError],
    ['65 nodes', 'nodes', 65, RangeError],
    ['no type', 'types', 0, RangeError],
    ['another number of types', 'types', 2, RangeError],
    ['amounts in a typed array', 'amounts', Float64Array.of(1, 2, 2, 2, 2), TypeError],
    ['a request for nothing', 'amounts', [0, 2, 2, 2, 2], RangeError],
    ['a negative amount', 'amounts', [1, -2, 2, 2, 2], RangeError],
    ['half a byte', 'amounts', [1, 2, 2.5, 2, 2], RangeError],
    ['an amount that is no number', 'amounts', [1, 2, 2, Number.NaN, 2], RangeError],
    ['amounts of 2^53 together', 'amounts', [1, 2, 2, 2 ** 52, 2 ** 52], RangeError],
    ['amounts of one node', 'amounts', [1, 2, 2], RangeError],
    ['groups of one node', 'groups', [0, 0], RangeError],
    ['a group with a node beyond', 'groups', [4, 0, 0, 0], RangeError],
    ['reusable memory of no node', 'reusable', [0, 0, 5], RangeError],
    ['reusable memory of a node beyond', 'reusable', [0, 1, 5], RangeError],
    ['reusable memory without an amount', 'reusable', [1, 0], RangeError],
    ['half a mask of nodes that must be in', 'must', [1], RangeError],
    ['a node beyond that must be in', 'must', [4, 0], RangeError],
  ])('refuse %s', (_, name, value, error) => {
    expect(native.memoryHints(right)).toBeInstanceOf(Uint32Array);
    expect(() => native.memoryHints({ ...right, [name]: value })).toThrow(error);
  });
});

describe('the hints of devices', () => {
  it('are those of the walked rules, in the kubelet’s order', () => {
    fc.assert(
      fc.property(deviceMachines, (machine) => {
        const limit = machine.nodes > 16 ? 500 : undefined;
        const expected = walkedDeviceHints(machine).slice(0, limit);
        expect(plain(deviceHints(machine), limit)).toEqual(expected);
      }),
      { numRuns: budget({ all: 30, usual: 6 }) },
    );
  });

  it.each<[string, number, unknown, typeof TypeError | typeof RangeError]>([
    ['a request for none', 0, [], RangeError],
    ['half a device', 1, [1, 0], RangeError],
    ['an unknown flag', 1, [1, 0, 4], RangeError],
    ['a node beyond', 1, [4, 0, 1], RangeError],
    ['devices in a typed array', 1, Uint32Array.of(1, 0, 1), TypeError],
  ])('refuse %s', (_, request, devices, error) => {
    const call = { nodes: 2, request, onlyNearDevices: true, devices: devices as number[] };
    expect(() => native.deviceHints(call)).toThrow(error);
  });
});

describe('a question to the core in a merge', () => {
  const machines = sizes.chain((nodes) =>
    fc.record({
      memory: fc.array(memoryMachineOf(nodes), { maxLength: 2 }),
      devices: fc.array(deviceMachineOf(nodes), { minLength: 1, maxLength: 2 }),
    }),
  );
  const policies = fc.constantFrom<TopologyManagerPolicy>('best-effort', 'restricted', 'single-numa-node');

  it('counts as the hints that the core returns for it alone, and is returned as these', () => {
    fc.assert(
      fc.property(machines, policies, ({ memory, devices }, policy) => {
        const numaNodes = idsOf(devices[0]!.nodes);
        const host = { numaNodes, policy: policyAt(policy), distances: undefined };
        const questions: HintQuestion[] = [
          ...memory.map((machine) => ({ kind: 'memory' as const, call: memoryCall(machine) })),
          ...devices.map((each) => ({ kind: 'devices' as const, call: deviceCall(each) })),
        ];
        const alone = [...memory.map((machine) => memoryHints(machine)), ...devices.map(deviceHints)];
        // Each type of memory is a resource.
        const ofEach = (list: readonly Hints[]) =>
          list.flatMap((hints, i) =>
            Array.from({ length: memory[i]?.types.length ?? 1 }, () => ({
              provider: null,
              resource: `resource ${i}`,
              hints,
            })),
          );
        const { merged, offered } = mergeOffered(ofEach(questions), host);
        expect(offered.map(({ hints }) => hints.words)).toEqual(
          ofEach(alone).map(({ hints }) => (hints as HintFamily).words),
        );
        expect(merged).toEqual(mergeOffered(ofEach(alone), host).merged);
        const last = [...questions.slice(0, -1), alone.at(-1)!];
        expect(mergeOffered(ofEach(last), host).merged).toEqual(merged);
      }),
      { numRuns: budget({ all: 200, usual: 30 }) },
    );
  });

  it.each<[string, (call: MemoryHintsCall) => HintQuestion | PackedHints]>([
    ['memory of no type', (call) => ({ kind: 'memory', call: { ...call, types: 0 } })],
    [
      'memory of more types than resources',
      (call) => ({
        kind: 'memory',
        call: { ...call, types: 2, amounts: [...call.amounts, ...call.amounts] },
      }),
    ],
    ['memory of a type without amounts', (call) => ({ kind: 'memory', call: { ...call, types: 2 } })],
    ['memory of another number of nodes', (call) => ({ kind: 'memory', call: { ...call, groups: [0, 0] } })],
    [
      'no device',
      () => ({ kind: 'devices', call: { nodes: 2, request: 0, onlyNearDevices: true, devices: [] } }),
    ],
    [
      'devices of another machine',
      () => ({ kind: 'devices', call: { nodes: 2, request: 1, onlyNearDevices: true, devices: [4, 0, 1] } }),
    ],
    ['words that are no hints', () => ({ words: Uint32Array.of(7, 2, 0) })],
  ])('is refused: %s', (_, wrong) => {
    const call = memoryCall({
      types: [{ request: 1, free: [2, 2], allocatable: [2, 2] }],
      groups: [[], []],
      reusable: [],
    });
    const merge = (hints: (HintQuestion | PackedHints)[]) =>
      native.mergeHints(
        hints.map((each) => ({ hints: each })),
        { numaNodes: [0, 1], policy: 1, distances: undefined },
      );
    const answer = merge([{ kind: 'memory', call }]);
    // The mask, whether any, and whether preferred come before whether admitted.
    answer.skip(4);
    expect(answer.flag()).toBe(true);
    expect(() => merge([{ kind: 'memory', call }, wrong(call)])).toThrow();
    expect(() => merge([wrong(call)])).toThrow();
  });
});

describe('a family without preferred masks', () => {
  // In each form: written by hand, enumerated, and by amounts.
  const families = fc.oneof(
    memoryMachines.map(memoryHints),
    deviceMachines.map(deviceHints),
    memoryMachines.map((machine) =>
      HintFamily.from(
        walkedMemoryHints(machine)
          .slice(0, 50)
          .map(({ nodes, preferred }) => ({ nodes: NodeSet.from(nodes), preferred })),
        idsOf(machine.groups.length),
      ),
    ),
  );

  it('offers them still, and prefers the others as before', () => {
    fc.assert(
      fc.property(
        families,
        fc.array(fc.uniqueArray(fc.integer({ min: 0, max: 19 })), { maxLength: 4 }),
        fc.nat(20),
        (family, others, at) => {
          const before = plain(family, 500);
          const masks = [...others, before[at]?.nodes ?? [], before[0]?.nodes ?? []];
          const plainMasks = masks.map((nodes) => NodeSet.from(nodes));
          const after = family.withoutPreferred(plainMasks);
          const texts = new Set(plainMasks.map(String));
          expect(plain(after, 500)).toEqual(
            before.map(({ nodes, preferred }) => ({
              nodes,
              preferred: preferred && !texts.has(String(NodeSet.from(nodes ?? []))),
            })),
          );
          expect(plain(family, 500)).toEqual(before);
          expect(native.isHintFamily(after.words, family.numaNodes.length)).toBe(true);
        },
      ),
      { numRuns: budget({ all: 60, usual: 12 }) },
    );
  });
});

describe('the first hints', () => {
  const everywhere = deviceHints({
    nodes: 16,
    request: 1,
    onlyNearDevices: false,
    devices: idsOf(16).map((node) => ({ near: [node], available: true, reusable: false })),
  });

  it('are as many as requested, however many come at once while they are iterated', () => {
    const all = [...everywhere];
    expect(all).toHaveLength(2 ** 16 - 1);
    expect(everywhere.first(Number.POSITIVE_INFINITY)).toEqual(all);
    expect(everywhere.first(300)).toEqual(all.slice(0, 300));
    expect(everywhere.first(0)).toEqual([]);
  });

  it('of a list count those without nodes', () => {
    const family = HintFamily.from(
      [
        { nodes: NodeSet.of(1), preferred: true },
        { nodes: null, preferred: false },
      ],
      [0, 1],
    );
    expect(family.first(1)).toEqual([{ nodes: null, preferred: false }]);
  });
});

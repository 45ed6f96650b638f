// needs: nothing
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { discover, HintFamily, mergeHints, type TopologyHint } from '../../lib/entries/topology.js';
import { CpuSet, NodeSet, type NumalignError } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { cpuTimeOf } from '../support/cpu-time.js';
import { subsetsOf } from '../support/subsets.js';
import { walkedMerge } from '../support/walked-merge.js';

const hint = (nodes: number[] | null, preferred: boolean): TopologyHint => ({
  nodes: nodes && NodeSet.from(nodes),
  preferred,
});

const plain = ({ nodes, preferred }: TopologyHint) => ({ nodes: nodes?.toArray() ?? null, preferred });

/** Node ids with holes and without, and hint lists over them. */
const machines = fc.oneof(
  fc
    .uniqueArray(fc.integer({ min: 0, max: 20 }), { minLength: 1, maxLength: 4 })
    .map((ids) => ids.sort((a, b) => a - b)),
  fc.constantFrom<number[][]>([0], [0, 1], [0, 1, 2], [0, 1, 2, 3]),
);

const listOver = (ids: number[]) => {
  const masked = fc.record({ nodes: fc.subarray(ids, { minLength: 1 }), preferred: fc.boolean() });
  const unmasked = fc.record({ nodes: fc.constant(null), preferred: fc.boolean() });
  return fc.option(
    fc.array(fc.oneof({ weight: 8, arbitrary: masked }, { weight: 1, arbitrary: unmasked }), {
      maxLength: 6,
    }),
    {
      freq: 8,
    },
  );
};

const merges = machines.chain((numaNodes) =>
  fc.record({
    numaNodes: fc.constant(numaNodes),
    lists: fc.array(listOver(numaNodes), { maxLength: 4 }),
    policy: fc.constantFrom('none', 'best-effort', 'restricted', 'single-numa-node'),
    preferClosest: fc.boolean(),
    distances: fc.array(
      fc.array(fc.integer({ min: 10, max: 13 }), {
        minLength: numaNodes.length,
        maxLength: numaNodes.length,
      }),
      { minLength: numaNodes.length, maxLength: numaNodes.length },
    ),
  }),
);

describe('mergeHints', () => {
  it('returns the same as a walk over the cross product, under all policies and options', () => {
    fc.assert(
      fc.property(merges, ({ numaNodes, lists, policy, preferClosest, distances }) => {
        const providers = lists.map((list) => ({
          r: list?.map(({ nodes, preferred }) => hint(nodes, preferred)) ?? null,
        }));
        const policyOptions = { 'prefer-closest-numa-nodes': preferClosest };
        const merged = mergeHints(providers, { numaNodes, policy, policyOptions, distances });
        const walked = walkedMerge(lists, numaNodes, policy, preferClosest, distances);
        expect({ hint: plain(merged.hint), admitted: merged.admitted }).toEqual(walked);
        expect(merged.exact).toBe(true);
      }),
      { numRuns: budget({ all: 3_000, usual: 400 }) },
    );
  });

  it('mixes a list by hand with the hints of CPUs on a machine too large to enumerate', async () => {
    const topology = await discover({ synthetic: 'package:4 numa:8 core:4 pu:1' });
    const { numaNodes } = topology;
    const cpu = topology.cpuHints({ request: 2, available: topology.cpus });
    const near = (nodes: number[], preferred = true) => [{ nic: [hint(nodes, preferred)] }];
    const merge = (nic: ReturnType<typeof near>) =>
      mergeHints([{ cpu }, ...nic], { numaNodes, policy: 'restricted' });
    expect(merge(near([31]))).toEqual({ hint: hint([31], true), admitted: true, exact: true });
    // One node would suffice for the CPUs, so two are not preferred; but the device needs both.
    expect(merge(near([4, 9]))).toEqual({ hint: hint([4, 9], false), admitted: false, exact: true });
    expect(mergeHints([{ cpu }, { nic: null }], { numaNodes, policy: 'single-numa-node' }).hint).toEqual(
      hint([0], true),
    );
    expect(mergeHints([{ cpu }, { nic: [] }], { numaNodes, policy: 'best-effort' })).toEqual({
      hint: hint([0], false),
      admitted: true,
      exact: true,
    });
  });

  it('bounds its work on long lists over many nodes', () => {
    const numaNodes = Array.from({ length: 64 }, (_, node) => node);
    const list = (seed: number) =>
      Array.from({ length: 20_000 }, (_, i) => hint([i % 64, (i * seed) % 64, (i >> 6) % 64], i % 3 === 0));
    const merge = () =>
      mergeHints([{ a: list(7) }, { b: list(11) }, { c: list(13) }], { numaNodes, policy: 'best-effort' });
    const time = cpuTimeOf(() => expect(merge().hint.nodes?.isEmpty).toBe(false));
    // Not a benchmark: all combinations are 8,000,000,000,000.
    expect(time).toBeLessThan(5000);
  });

  it('keeps the nodes that all long lists have in common, even if it cuts', () => {
    const numaNodes = Array.from({ length: 24 }, (_, node) => node);
    const common = [0, 1, 2, 3, 4, 5, 6, 7];
    const list = (seed: number) =>
      Array.from({ length: 300 }, (_, i) =>
        hint([...common, ...numaNodes.filter((node) => (i * seed + node * 7) % 5 < 2)], false),
      );
    const { hint: merged } = mergeHints(
      [7, 11, 13, 17].map((seed) => ({ r: list(seed) })),
      { numaNodes, policy: 'best-effort' },
    );
    expect(NodeSet.from(common).isSubsetOf(merged.nodes!)).toBe(true);
    expect(merged.nodes!.size).toBeLessThan(24);
    const one = [{ nodes: NodeSet.of(1), preferred: false }];
    expect(mergeHints([{ r: list(7) }, { r: one }], { numaNodes, policy: 'best-effort' }).hint).toEqual(
      one[0],
    );
  });

  it('merges nothing to all nodes, preferred', () => {
    const merge = (policy: 'restricted' | 'single-numa-node') =>
      mergeHints([], { numaNodes: [0, 8], policy });
    expect(merge('restricted')).toEqual({ hint: hint([0, 8], true), admitted: true, exact: true });
    expect(merge('single-numa-node')).toEqual({ hint: hint(null, true), admitted: true, exact: true });
  });

  it.each<[string, unknown]>([
    ['a number', 5],
    ['a hint without preferred', [{ nodes: null }]],
    ['an array of ids for nodes', [{ nodes: [0], preferred: true }]],
    ['an empty mask', [hint([], true)]],
    ['a node that the machine does not have', [hint([3], true)]],
    ['a node far beyond those that the machine has', [hint([0, 40], true)]],
    ['null in a list', [null]],
  ])('refuses %s as hints', (_, hints) => {
    for (const numaNodes of [
      [0, 1],
      [0, 2],
    ]) {
      const action = () => mergeHints([{ r: hints as TopologyHint[] }], { numaNodes, policy: 'restricted' });
      expect(action).toThrow(expect.objectContaining({ code: 'ERR_INVALID_ARGUMENT' }));
    }
  });

  it.each<[string, unknown]>([
    ['none', undefined],
    ['of no hints', Uint32Array.of(7, 2, 0)],
    ['of a family without preference and others behind', Uint32Array.of(256, 2, 0, 1)],
  ])('refuses a family whose words are %s, by the name of its resource', (_, words) => {
    const numaNodes = [0, 1];
    const wrong = new HintFamily(words as Uint32Array, numaNodes);
    const right = [hint([0], true)];
    const action = () =>
      mergeHints([null, { right }, { wrong, alsoRight: right }], { numaNodes, policy: 'restricted' });
    expect(action).toThrow(/for wrong/);
  });

  it.each<[string, object]>([
    ['no node', { numaNodes: [] }],
    ['65 nodes', { numaNodes: Array.from({ length: 65 }, (_, i) => i) }],
    ['an unknown policy', { policy: 'strict' }],
    [
      'distances of another size',
      { policyOptions: { 'prefer-closest-numa-nodes': true }, distances: [[10]] },
    ],
    ['a limit below 8 nodes', { policyOptions: { 'max-allowable-numa-nodes': 4 } }],
    [
      'more nodes than are allowed',
      { numaNodes: [0, 1, 2, 3, 4, 5, 6, 7, 8], policyOptions: { 'max-allowable-numa-nodes': 8 } },
    ],
    ['an unknown option', { polcy: 'none' }],
    ['an unknown policy option', { policyOptions: { 'prefer-closest': true } }],
  ])('refuses %s', (_, options) => {
    const action = () => mergeHints([], { numaNodes: [0, 1], policy: 'restricted', ...options });
    expect(action).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }));
  });
});

describe('a family of hints', () => {
  it('equals a list that is written by hand', () => {
    fc.assert(
      fc.property(
        machines.chain((ids) => fc.tuple(fc.constant(ids), listOver(ids))),
        ([ids, list]) => {
          const family = HintFamily.from(
            list?.map(({ nodes, preferred }) => hint(nodes, preferred)) ?? null,
            ids,
          );
          const masks = (hints: readonly { nodes: unknown; preferred: boolean }[]) =>
            hints.filter(({ nodes }) => nodes);
          expect(masks(family.toArray().map(plain))).toEqual(masks(list ?? []));
          expect(family.isAny).toBe(
            list === null || (list.some((h) => !h.nodes && h.preferred) && masks(list).length === 0),
          );
        },
      ),
    );
  });

  it('is read hint by hint, so that two to the power of 64 of them cost nothing', async () => {
    const topology = await discover({ synthetic: 'package:8 numa:8 core:1 pu:1' });
    const hints = topology.cpuHints({ request: 1, available: topology.cpus })[Symbol.iterator]();
    expect(hints.next().value).toEqual(hint([0], true));
    expect(hints.next().value).toEqual(hint([1], true));
  });

  it('that is too large to enumerate is read in the same order as a small one', async () => {
    const topology = await discover({ synthetic: 'package:6 numa:3 core:1 pu:2' });
    fc.assert(
      fc.property(
        fc.subarray(topology.cpus.toArray()),
        fc.integer({ min: 1, max: 8 }),
        fc.boolean(),
        (ids, request, align) => {
          const available = CpuSet.from(ids);
          const reusable = CpuSet.from(ids.filter((id) => id % 17 === 3));
          const read = topology.cpuHints({ request, available, reusable, alignBySocket: align }).first(300);
          const expected: { nodes: number[]; preferred: boolean }[] = [];
          for (const mask of subsetsOf(topology.numaNodes)) {
            const cpus = topology.nodes
              .filter(({ id }) => mask.has(id))
              .reduce((set, node) => set.union(node.cpus), CpuSet.EMPTY);
            if (!reusable.isSubsetOf(cpus) || cpus.intersection(available).size < request) continue;
            const packages = topology.packages.filter((p) => p.cpus.intersects(cpus)).length;
            const [narrowest, nodesInPackage] = [Math.ceil(request / 2), 3];
            const aligned = align && packages === Math.ceil(narrowest / nodesInPackage);
            expected.push({ nodes: mask.toArray(), preferred: mask.size === narrowest || aligned });
            if (expected.length === 300) break;
          }
          expect(read.map(plain)).toEqual(expected);
        },
      ),
      { numRuns: budget({ all: 30, usual: 2 }) },
    );
  });

  it('of another machine is refused in a merge', async () => {
    const topology = await discover({ synthetic: 'numa:2 core:1 pu:1' });
    const cpu = topology.cpuHints({ request: 1, available: topology.cpus });
    const error = (() => {
      try {
        mergeHints([{ cpu }], { numaNodes: [0, 1, 2], policy: 'restricted' });
      } catch (e) {
        return e as NumalignError;
      }
    })();
    expect(error?.code).toBe('ERR_INVALID_ARGUMENT');
  });
});

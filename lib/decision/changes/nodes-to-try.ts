// NodesToTry: the sets of a machine's NUMA nodes that grants can move to. Pure.
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { maskOf } from '../../machine/hint-masks.js';
import { HintFamily } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';

/** A set of NUMA nodes, in the forms that a search needs. */
export interface NodesToTry {
  readonly nodes: NodeSet;
  /** [low, high] */
  readonly mask: readonly [low: number, high: number];
  readonly cpus: CpuSet;
  /** A hint for every subset; for many nodes, only for single nodes and for all together. */
  readonly hints: HintFamily;
}

// The most sets to search, the narrowest first.
const MOST_SETS = 1024;
// Larger sets have too many subsets.
const MOST_SUBSETS_OF = 8;

interface NodeLists {
  /** The sets, the narrowest first. */
  readonly list: readonly NodesToTry[];
  /** True if the list has all sets. */
  readonly isComplete: boolean;
}

const listsOf = new WeakMap<Topology, NodeLists>();

/** The sets of a machine's NUMA nodes, the narrowest first, then by node ids. */
export function nodesToTry(topology: Topology): NodeLists {
  let lists = listsOf.get(topology);
  if (!lists) {
    lists = findLists(topology);
    listsOf.set(topology, lists);
  }
  return lists;
}

function findLists(topology: Topology): NodeLists {
  const lists: (readonly number[])[] = [];
  for (const list of sublists(topology.numaNodes)) {
    lists.push(list);
    if (lists.length > MOST_SETS) break;
  }
  const list = lists.slice(0, MOST_SETS).map((each) => entryOf(topology, each));
  return { list, isComplete: lists.length <= MOST_SETS };
}

function entryOf(topology: Topology, list: readonly number[]): NodesToTry {
  const { numaNodes } = topology;
  const nodes = NodeSet.from(list);
  const cpus = topology.nodes.reduce(
    (all, node) => (nodes.has(node.id) ? all.union(node.cpus) : all),
    CpuSet.EMPTY,
  );
  const hints = subsetsOf(list).map((each) => ({ nodes: NodeSet.from(each), preferred: true }));
  return { nodes, mask: maskOf(list, numaNodes), cpus, hints: HintFamily.from(hints, numaNodes) };
}

function subsetsOf(list: readonly number[]): readonly (readonly number[])[] {
  if (list.length > MOST_SUBSETS_OF) return [...list.map((node) => [node]), list];
  return [...sublists(list)];
}

/** All sublists with members, the shortest first. */
function* sublists(list: readonly number[]): Generator<readonly number[]> {
  for (let size = 1; size <= list.length; size++) yield* combinations(list, size);
}

/** All sublists of `size` members, in the order of the list. */
function* combinations(list: readonly number[], size: number, from = 0): Generator<readonly number[]> {
  if (size === 0) {
    yield [];
    return;
  }
  for (let i = from; i + size <= list.length; i++)
    for (const rest of combinations(list, size - 1, i + 1)) yield [list[i]!, ...rest];
}

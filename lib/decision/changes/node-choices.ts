// NodeChoices: the sets of a machine's NUMA nodes that grants can move to. Pure.
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { maskOf } from '../../machine/hint-masks.js';
import { HintFamily } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';

/** A set of NUMA nodes, in the forms that a search needs. */
export interface NodeChoice {
  readonly nodes: NodeSet;
  /** [low, high] */
  readonly mask: readonly [low: number, high: number];
  readonly cpus: CpuSet;
  /** A hint for every subset; for many nodes, only for single nodes and for all together. */
  readonly hints: HintFamily;
}

// The most sets to search, the narrowest first.
const MOST_CHOICES = 1024;
// Larger sets have too many subsets.
const MOST_SUBSETS_OF = 8;

interface Choices {
  /** The sets, the narrowest first. */
  readonly list: readonly NodeChoice[];
  /** True if the list has all sets. */
  readonly isComplete: boolean;
}

const choicesOf = new WeakMap<Topology, Choices>();

/** The sets of a machine's NUMA nodes, the narrowest first, then by node ids. */
export function nodeChoices(topology: Topology): Choices {
  let choices = choicesOf.get(topology);
  if (!choices) {
    choices = findChoices(topology);
    choicesOf.set(topology, choices);
  }
  return choices;
}

function findChoices(topology: Topology): Choices {
  const { numaNodes } = topology;
  const lists: (readonly number[])[] = [];
  for (let size = 1; size <= numaNodes.length; size++) {
    for (const list of combinations(numaNodes, size)) {
      if (lists.length === MOST_CHOICES)
        return { list: lists.map((each) => choiceOf(topology, each)), isComplete: false };
      lists.push(list);
    }
  }
  return { list: lists.map((each) => choiceOf(topology, each)), isComplete: true };
}

function choiceOf(topology: Topology, list: readonly number[]): NodeChoice {
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
  return list.flatMap((_, i) => [...combinations(list, i + 1)]);
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

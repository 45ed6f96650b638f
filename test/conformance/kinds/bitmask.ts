// bitmask: the sets of NUMA nodes that hints are made of. Replayed through NodeSet; their order
// through cpuHints and mergeHints.
import type { NodeSet } from '../../../lib/index.js';
import {
  attempt,
  type Case,
  type Context,
  compareError,
  compareFields,
  describeError,
  failed,
  type Kind,
  passed,
  type Result,
} from '../case.js';

interface BitmaskCase extends Case {
  readonly op: 'new' | 'iterate' | 'remove' | 'pair';
  readonly error?: string;
  readonly bits?: readonly number[];
  readonly a?: readonly number[];
  readonly b?: readonly number[];
  readonly remove?: readonly number[];
  readonly query?: readonly number[];
}

const WIDTH = 64;
const DIGITS_AT_A_TIME = 2;

/** Node n is bit n. */
const bitsOf = (nodes: NodeSet) => nodes.toArray().reduce((bits, node) => bits | (1n << BigInt(node)), 0n);

/**
 * Upstream's text of a mask: binary, filled with zeros to the least even width whose upper digit
 * pair is needed. The pair at `shift` counts as needed only above 1 << shift, hence a lone bit at
 * an even place is not filled up: [2] is 100, [3] is 1000, [0,2] is 0101.
 */
function textOf(nodes: NodeSet): string {
  const bits = bitsOf(nodes);
  let width = WIDTH;
  while (width > DIGITS_AT_A_TIME && bits <= 1n << BigInt(width - DIGITS_AT_A_TIME))
    width -= DIGITS_AT_A_TIME;
  return bits.toString(2).padStart(width, '0');
}

/** The sets of nodes from which one CPU can be had, where each node has one: all, in their order. */
async function listed(count: number, { numalign: { discover } }: Context): Promise<number[][]> {
  const ids = Array.from({ length: count }, (_, id) => id);
  const json = {
    columns: ['cpu', 'core', 'socket', 'numa', 'uncoreCache'],
    cpus: ids.map((id) => [id, id, 0, id, 0]),
    nodes: ids.map((id) => ({ id })),
  };
  const topology = await discover({ json });
  const hints = topology.cpuHints({ request: 1, available: topology.cpus });
  return hints.first(2 ** count).map(({ nodes }) => nodes!.toArray());
}

/** Whether a merge prefers one of two hints to the other. */
function isNarrower(a: NodeSet, b: NodeSet, { numalign: { mergeHints } }: Context): boolean {
  if (a.equals(b)) return false;
  // No hint is of no node.
  if (a.isEmpty || b.isEmpty) return a.isEmpty;
  const hints = [a, b].map((nodes) => ({ nodes, preferred: true }));
  const { hint } = mergeHints([{ cpu: hints }], {
    numaNodes: Array.from({ length: WIDTH }, (_, id) => id),
    policy: 'best-effort',
    policyOptions: { 'max-allowable-numa-nodes': WIDTH },
  });
  return hint.nodes!.equals(a);
}

// What the package answers, in the fields of the case.
async function answerOf(vector: BitmaskCase, context: Context): Promise<Record<string, unknown>> {
  const { op, bits = [], a = [], b = [], remove = [], query = [] } = vector;
  const { NodeSet } = context.numalign;
  if (op === 'new') {
    const nodes = NodeSet.from(bits);
    return { result: nodes.toArray(), text: textOf(nodes), count: nodes.size };
  }
  if (op === 'iterate') {
    if (bits.length === 0) return { masks: [] };
    const places = await listed(bits.length, context);
    return { masks: places.map((list) => NodeSet.from(list.map((place) => bits[place]!)).toArray()) };
  }
  const nodesA = NodeSet.from(a);
  if (op === 'remove') return { result: nodesA.difference(NodeSet.from(remove)).toArray() };
  const nodesB = NodeSet.from(b);
  return {
    and: nodesA.intersection(nodesB).toArray(),
    or: nodesA.union(nodesB).toArray(),
    equal: nodesA.equals(nodesB),
    aNarrowerThanB: isNarrower(nodesA, nodesB, context),
    aLessThanB: bitsOf(nodesA) < bitsOf(nodesB),
    aGreaterThanB: bitsOf(nodesA) > bitsOf(nodesB),
    aEmpty: nodesA.isEmpty,
    aCount: nodesA.size,
    aText: textOf(nodesA),
    aAnySet: nodesA.intersects(NodeSet.from(query.filter((node) => node >= 0 && node < WIDTH))),
  };
}

async function run(theCase: Case, context: Context): Promise<Result> {
  const vector = theCase as BitmaskCase;
  const { NodeSet, NumalignError } = context.numalign;
  const answer = await answerOf(vector, context).then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  const nodes = [vector.bits, vector.a, vector.b, vector.remove].flatMap((list) => list ?? []);
  if (nodes.some((node) => node >= WIDTH)) {
    // A set may take such nodes; what it does not take it must refuse in an orderly way.
    if ('value' in answer || answer.error instanceof NumalignError) return passed;
    return failed('a set or an error', describeError(answer.error));
  }
  if (vector.error === undefined) {
    return 'error' in answer
      ? failed('no error', describeError(answer.error))
      : compareFields(vector, answer.value);
  }
  const refused = compareError(vector.error, answer, context);
  if (refused.outcome !== 'passed' || vector.op !== 'remove') return refused;
  // What a refused removal leaves is recorded too: the set as it was.
  const set = NodeSet.from(vector.a ?? []);
  attempt(() => set.difference(NodeSet.from(vector.remove ?? [])));
  return compareFields(vector, { result: set.toArray() });
}

export const bitmask: Kind = {
  name: 'bitmask',

  matches({ op, bits, a, b, remove }) {
    if (op === 'new' || op === 'iterate') return Array.isArray(bits);
    if (op === 'remove') return Array.isArray(a) && Array.isArray(remove);
    return op === 'pair' && Array.isArray(a) && Array.isArray(b);
  },

  run,
};

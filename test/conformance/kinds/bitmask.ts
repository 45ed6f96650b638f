// bitmask: the masks of NUMA nodes that hints are made of. Replayed through NodeMask.
import type { NodeMask } from '../../../lib/machine/node-mask.js';
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

/**
 * Upstream's text of a mask: binary, filled with zeros to the least even width whose upper digit
 * pair is needed. The pair at `shift` counts as needed only above 1 << shift, hence a lone bit at
 * an even place is not filled up: [2] is 100, [3] is 1000, [0,2] is 0101.
 */
function textOf(mask: NodeMask): string {
  let width = WIDTH;
  while (width > DIGITS_AT_A_TIME && mask.bits <= 1n << BigInt(width - DIGITS_AT_A_TIME))
    width -= DIGITS_AT_A_TIME;
  return mask.bits.toString(2).padStart(width, '0');
}

// What the package answers, in the fields of the case.
function answerOf(vector: BitmaskCase, { numalign: { NodeMask } }: Context): Record<string, unknown> {
  const { op, bits = [], a = [], b = [], remove = [], query = [] } = vector;
  if (op === 'new') {
    const mask = NodeMask.from(bits);
    return { result: mask.toArray(), text: textOf(mask), count: mask.size };
  }
  if (op === 'iterate') return { masks: Array.from(NodeMask.subsets(bits), (mask) => mask.toArray()) };
  const maskA = NodeMask.from(a);
  if (op === 'remove') return { result: maskA.without(remove).toArray() };
  const maskB = NodeMask.from(b);
  return {
    and: maskA.and(maskB).toArray(),
    or: maskA.or(maskB).toArray(),
    equal: maskA.equals(maskB),
    aNarrowerThanB: maskA.isNarrowerThan(maskB),
    aLessThanB: maskA.bits < maskB.bits,
    aGreaterThanB: maskA.bits > maskB.bits,
    aEmpty: maskA.isEmpty,
    aCount: maskA.size,
    aText: textOf(maskA),
    aAnySet: maskA.hasAny(query.filter((node) => node < WIDTH)),
  };
}

function run(theCase: Case, context: Context): Result {
  const vector = theCase as BitmaskCase;
  const { NodeMask, NumalignError } = context.numalign;
  const answer = attempt(() => answerOf(vector, context));
  const nodes = [vector.bits, vector.a, vector.b, vector.remove].flatMap((list) => list ?? []);
  if (nodes.some((node) => node >= WIDTH)) {
    // Which of the package's sets takes such nodes is its own affair; what it does not take it must
    // refuse in an orderly way.
    if ('value' in answer || answer.error instanceof NumalignError) return passed;
    return failed('a mask or an error', describeError(answer.error));
  }
  if (vector.error === undefined) {
    return 'error' in answer
      ? failed('no error', describeError(answer.error))
      : compareFields(vector, answer.value);
  }
  const refused = compareError(vector.error, answer, context);
  if (refused.outcome !== 'passed' || vector.op !== 'remove') return refused;
  // What a refused removal leaves is recorded too: the mask as it was.
  const mask = NodeMask.from(vector.a ?? []);
  attempt(() => mask.without(vector.remove ?? []));
  return compareFields(vector, { result: mask.toArray() });
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

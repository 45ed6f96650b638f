// cpuset: the list form of CPU sets, read and written, and what is done with sets. Replayed through
// CpuSet.
import {
  attempt,
  type Case,
  type Context,
  compareError,
  compareFields,
  describeError,
  diverged,
  failed,
  type Kind,
} from '../case.js';

interface ParseCase extends Case {
  readonly op: 'parse';
  readonly input: string;
  readonly error?: string;
}

interface SetopsCase extends Case {
  readonly op: 'setops';
  readonly a: string;
  readonly b: string;
}

/** D12: a range that ends at "-0". */
const isReadByAccident = (input: string) => input.split(',').some((part) => /^[+-]?0+--0+$/.test(part));

function parse(vector: ParseCase, context: Context) {
  const answer = attempt(() => context.numalign.CpuSet.parse(vector.input));
  if (vector.error !== undefined) return compareError(vector.error, answer, context);
  if ('error' in answer && isReadByAccident(vector.input)) {
    const refused = compareError('no list of CPUs', answer, context);
    return refused.outcome === 'passed' ? diverged('D12') : refused;
  }
  if ('error' in answer) return failed(`CPUs "${String(vector.formatted)}"`, describeError(answer.error));
  return compareFields(vector, { list: answer.value.toArray(), formatted: answer.value.toString() });
}

function setops(vector: SetopsCase, { numalign: { CpuSet } }: Context) {
  const [a, b] = [CpuSet.parse(vector.a), CpuSet.parse(vector.b)];
  return compareFields(vector, {
    union: a.union(b).toString(),
    intersection: a.intersection(b).toString(),
    differenceAB: a.difference(b).toString(),
    differenceBA: b.difference(a).toString(),
    aSubsetOfB: a.isSubsetOf(b),
    equal: a.equals(b),
    sizeA: a.size,
    aEmpty: a.isEmpty,
    listA: a.toArray(),
  });
}

export const cpuset: Kind = {
  name: 'cpuset',

  matches({ op, input, a, b }) {
    if (op === 'parse') return typeof input === 'string';
    return op === 'setops' && typeof a === 'string' && typeof b === 'string';
  },

  run(vector, context) {
    return vector.op === 'parse'
      ? parse(vector as ParseCase, context)
      : setops(vector as SetopsCase, context);
  },
};

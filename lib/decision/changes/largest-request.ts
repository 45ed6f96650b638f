// LargestRequest: the most CPUs for a request on one NUMA node, now and after moves. Pure.
import { removePods } from '../../account/pod-changes.js';
import { freeCpus } from '../../account/pools.js';
import type { Steps } from '../../base/steps.js';
import type { Placement } from '../../input/placement.js';
import { guaranteedPod } from '../../input/pods/pod-request.js';
import { MILLI } from '../../input/pods/resource-amounts.js';
import type { AdmissionRequest } from '../../input/requests/request.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { mustBeWhole } from '../cpus/cpu-limits.js';
import { mustAddUp } from '../cpus/cpu-manager.js';
import { decideWhether } from '../decision.js';
import type { Question } from '../question.js';
import type { Repacking } from './repacking.js';

/** A request for `cpus` CPUs of one NUMA node, under a manager's placement. */
export function alignedRequest(placement: Placement, cpus: number): AdmissionRequest {
  const requests = { cpu: cpus * MILLI };
  return {
    pod: guaranteedPod({ uid: undefined, name: undefined }, { name: 'main', kind: 'app', requests }, false),
    owner: 'persistent',
    placement: {
      ...placement,
      cpuPolicy: 'static',
      topologyPolicy: 'single-numa-node',
      alignBySocket: false,
    },
    enforcement: {},
    isForCaller: false,
    wait: false,
  };
}

/** Makes the question for a request of `cpus` CPUs. */
export type AskFor = (cpus: number) => Question;

/** The most CPUs of each node that one request can have, by the id of each node with CPUs. */
export function* largestByNode(askFor: AskFor): Steps<ReadonlyMap<number, number>> {
  const { topology, state, present } = askFor(1);
  const free = freeCpus(state, present).union(freeCpus(state, present, 'isolated'));
  const largest = new Map<number, number>();
  for (const { id, cpus } of topology.nodes) {
    if (cpus.isEmpty) continue;
    const counts = countsIn(askFor, cpus.intersection(free));
    const fits = (count: number) => decideWhether({ ...askFor(count), within: cpus });
    largest.set(id, (yield* greatest(askFor, counts, fits))?.count ?? 0);
  }
  return largest;
}

/** The repacking for the largest request; undefined if it cannot exceed `least` CPUs. */
export function* largerBy(
  askFor: AskFor,
  least: number,
  search: (question: Question) => Repacking | undefined,
): Steps<Repacking | undefined> {
  const counts = new Set(askFor(1).topology.nodes.flatMap(({ cpus }) => countsIn(askFor, cpus)));
  const larger = [...counts].filter((count) => count > least).sort((a, b) => a - b);
  return (yield* greatest(askFor, larger, (count) => search(askFor(count))))?.answer;
}

/** The state after the moves, without the request's pod. */
export const afterMoves = ({ next, pod }: Repacking) => removePods(next(), new Set([pod.uid]));

// The counts that a request could have of these CPUs, ascending.
function countsIn(askFor: AskFor, cpus: CpuSet): readonly number[] {
  const { topology, request } = askFor(1);
  if (!mustBeWhole(request.placement)) return Array.from({ length: cpus.size }, (_, i) => i + 1);
  // A bit for each sum of sizes of cores.
  let sums = 1n;
  for (const core of topology.cores) if (core.cpus.isSubsetOf(cpus)) sums |= sums << BigInt(core.cpus.size);
  return Array.from({ length: cpus.size }, (_, i) => i + 1).filter((n) => (sums >> BigInt(n)) & 1n);
}

// The greatest of the ascending counts with an answer, and the answer.
function* greatest<T>(
  askFor: AskFor,
  counts: readonly number[],
  answerFor: (count: number) => T | undefined,
): Steps<{ readonly count: number; readonly answer: T } | undefined> {
  const { topology, request } = askFor(1);
  let last: { readonly count: number; readonly answer: T } | undefined;
  let [low, high] = [0, counts.length - 1];
  // Cores of different sizes may add up to a count, but not to a lower one.
  const isOneByOne = mustAddUp(topology, request.placement);
  while (low <= high) {
    const at = isOneByOne ? high : Math.floor((low + high) / 2);
    const count = counts[at]!;
    const answer = answerFor(count);
    if (answer === undefined) high = at - 1;
    else {
      last = { count, answer };
      low = at + 1;
    }
    yield;
  }
  return last;
}

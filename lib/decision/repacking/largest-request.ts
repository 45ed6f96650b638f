// LargestRequest: the most CPUs for a request on one NUMA node, now and after moves. Pure.
import { removePods } from '../../account/pod-changes.js';
import type { Placement } from '../../input/placement.js';
import { guaranteedPod } from '../../input/pods/pod-request.js';
import { MILLI } from '../../input/pods/resource-amounts.js';
import type { AdmissionRequest } from '../../input/request.js';
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
export function largestByNode(askFor: AskFor): ReadonlyMap<number, number> {
  const nodes = askFor(1).topology.nodes.filter(({ cpus }) => !cpus.isEmpty);
  return new Map(nodes.map(({ id, cpus }) => [id, largestWithin(askFor, cpus)]));
}

function largestWithin(askFor: AskFor, cpus: CpuSet): number {
  const fits = (count: number) => decideWhether({ ...askFor(count), within: cpus });
  return greatest(askFor, 0, cpus.size, fits)?.count ?? 0;
}

/** The repacking for the largest request; undefined if it cannot exceed `least` CPUs. */
export function largerBy(
  askFor: AskFor,
  least: number,
  search: (question: Question) => Repacking | undefined,
): Repacking | undefined {
  const most = Math.max(...askFor(1).topology.nodes.map(({ cpus }) => cpus.size));
  return greatest(askFor, least, most, (count) => search(askFor(count)))?.answer;
}

/** The state after the moves, without the request's pod. */
export const afterMoves = ({ next, pod }: Repacking) => removePods(next(), new Set([pod.uid]));

// The greatest count above `least`, up to `most`, with an answer, and the answer.
function greatest<T>(
  askFor: AskFor,
  least: number,
  most: number,
  answerFor: (count: number) => T | undefined,
): { readonly count: number; readonly answer: T } | undefined {
  const { topology, request } = askFor(1);
  const unit = mustBeWhole(request.placement) ? topology.cpusPerCore : 1;
  let last: { readonly count: number; readonly answer: T } | undefined;
  let [low, high] = [Math.floor(least / unit) + 1, Math.floor(most / unit)];
  // Cores of different sizes may add up to a count, but not to a lower one.
  const isOneByOne = mustAddUp(topology, request.placement);
  while (low <= high) {
    const half = isOneByOne ? high : Math.floor((low + high) / 2);
    const count = half * unit;
    const answer = answerFor(count);
    if (answer === undefined) high = half - 1;
    else {
      last = { count, answer };
      low = half + 1;
    }
  }
  return last;
}

// Which grants ask for quiet, and on which CPUs. Pure.
import type { Assignments } from '../../account/assignments.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { presentCpus } from '../../account/pod-holdings.js';
import { oncePerPods, podsThat } from '../../account/pod-list-changes.js';
import type { QuietPart, QuietRequest } from '../../account/quiet/quiet-request.js';
import { CpuSet } from '../../machine/cpu-set.js';

/** The CPUs of one grant, and what it asks for them. */
export interface QuietDemand {
  /** The grant's id. */
  readonly uid: string;
  readonly cpus: CpuSet;
  readonly request: QuietRequest;
}

/** The pods that ask for quiet. */
export const quietPods = podsThat(({ quiet }) => quiet !== undefined);

function demandOf(pod: PodAssignment): QuietDemand[] {
  const cpus = presentCpus(pod);
  return cpus.isEmpty ? [] : [{ uid: pod.uid, cpus, request: pod.quiet! }];
}

const demandsOf = oncePerPods((pods) => pods.flatMap(demandOf));

/** What all grants on record ask for. */
export const quietDemands = ({ pods }: Pick<Assignments, 'pods'>): readonly QuietDemand[] =>
  demandsOf(quietPods(pods));

const isAsked = (request: QuietRequest, part: QuietPart) => request[part] !== false && request[part] !== null;

/** Those that ask for one part. */
export const demandsFor = (demands: readonly QuietDemand[], part: QuietPart): readonly QuietDemand[] =>
  demands.filter(({ request }) => isAsked(request, part));

/** The parts that a grant asks for. */
export const partsOf = (request: QuietRequest, parts: readonly QuietPart[]): readonly QuietPart[] =>
  parts.filter((part) => isAsked(request, part));

export const cpusOfDemands = (demands: readonly QuietDemand[]): CpuSet =>
  demands.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);

const isSame = (a: QuietDemand, b: QuietDemand) =>
  a === b || (a.uid === b.uid && a.cpus.equals(b.cpus) && isSameRequest(a.request, b.request));

// Requests are small, and their members have one order.
const isSameRequest = (a: QuietRequest, b: QuietRequest) =>
  a === b || JSON.stringify(a) === JSON.stringify(b);

/** Whether they ask for the same, in whatever order. */
export function areSameDemands(demands: readonly QuietDemand[], others: readonly QuietDemand[]): boolean {
  if (demands === others) return true;
  if (demands.length !== others.length) return false;
  const byUid = new Map(others.map((each) => [each.uid, each]));
  return demands.every((each) => {
    const other = byUid.get(each.uid);
    return other !== undefined && isSame(each, other);
  });
}

/** What is asked for before and after: a grant that is resized keeps the CPUs that it has in both. */
export function commonDemands(
  before: readonly QuietDemand[],
  after: readonly QuietDemand[],
): readonly QuietDemand[] {
  const byUid = new Map(after.map((each) => [each.uid, each]));
  return before.flatMap((each) => {
    const other = byUid.get(each.uid);
    if (!other || !isSameRequest(each.request, other.request)) return [];
    const cpus = each.cpus.intersection(other.cpus);
    return cpus.isEmpty ? [] : [{ ...each, cpus }];
  });
}

// Which grants ask for quiet, and on which CPUs. Pure.
import type { Assignments } from '../../account/assignments.js';
import type { PodAssignment, QuietPart, QuietRequest } from '../../account/pod-assignment.js';
import { presentCpus, runningCpus } from '../../account/pod-holdings.js';
import { oncePerPods, podsThat } from '../../account/pod-list-changes.js';
import { CpuSet } from '../../machine/cpu-set.js';

/** The CPUs of one grant, and the quiet that it asks for. */
export interface QuietDemand {
  /** The grant's id. */
  readonly uid: string;
  readonly cpus: CpuSet;
  /** Those of them that kernel work may use. */
  readonly housekeeping?: CpuSet;
  readonly request: QuietRequest;
}

/** The pods that ask for quiet. */
export const quietPods = podsThat(({ quiet }) => quiet !== undefined);

function demandOf(pod: PodAssignment): QuietDemand[] {
  const { uid, quiet } = pod;
  const cpus = presentCpus(pod);
  if (cpus.isEmpty) return [];
  const count = quiet!.housekeeping;
  const kept = count !== undefined && {
    housekeeping: CpuSet.from(runningCpus(pod).toArray().slice(0, count)),
  };
  return [{ uid, cpus, request: quiet!, ...kept }];
}

const demandsOf = oncePerPods((pods) => pods.flatMap(demandOf));

/** What all grants on record ask for. */
export const quietDemands = ({ pods }: Pick<Assignments, 'pods'>): readonly QuietDemand[] =>
  demandsOf(quietPods(pods));

const asksFor = (request: QuietRequest, part: QuietPart) => request[part] !== false && request[part] !== null;

const KERNEL_WORK: ReadonlySet<QuietPart> = new Set(['interrupts', 'workqueues', 'packets']);

/** The demands that ask for one part, on the CPUs where they do. */
export const demandsFor = (demands: readonly QuietDemand[], part: QuietPart): readonly QuietDemand[] =>
  demands
    .filter(({ request }) => asksFor(request, part))
    .map((each) =>
      each.housekeeping && KERNEL_WORK.has(part)
        ? { ...each, cpus: each.cpus.difference(each.housekeeping) }
        : each,
    );

/** The parts that a grant asks for. */
export const partsOf = (request: QuietRequest, parts: readonly QuietPart[]): readonly QuietPart[] =>
  parts.filter((part) => asksFor(request, part));

export const cpusOfDemands = (demands: readonly QuietDemand[]): CpuSet =>
  demands.reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);

// Requests are small, and their members have a fixed order.
const isSameRequest = (a: QuietRequest, b: QuietRequest) => JSON.stringify(a) === JSON.stringify(b);

/**
 * The demands in `demands` that `others` has too: by the same grant, on the CPUs that both have.
 * Returns the same list if nothing is missing.
 */
export function demandsAmong(
  demands: readonly QuietDemand[],
  others: readonly QuietDemand[],
): readonly QuietDemand[] {
  if (demands === others) return demands;
  const byUid = new Map(others.map((each) => [each.uid, each]));
  const among = demands.flatMap((each) => {
    const other = byUid.get(each.uid);
    if (!other || !isSameRequest(each.request, other.request)) return [];
    const cpus = each.cpus.intersection(other.cpus);
    if (cpus.isEmpty) return [];
    const { housekeeping = CpuSet.EMPTY } = each;
    const kept = housekeeping.union(other.housekeeping ?? CpuSet.EMPTY);
    if (cpus.equals(each.cpus) && kept.equals(housekeeping)) return [each];
    return [{ ...each, cpus, ...(!kept.isEmpty && { housekeeping: kept }) }];
  });
  return among.length === demands.length && among.every((each, i) => each === demands[i]) ? demands : among;
}

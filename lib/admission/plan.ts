// Plan: a decision that is not carried out.
import type { Assignments } from '../account/assignments.js';
import type { MemoryBlock } from '../account/booked-memory.js';
import { cpusNow } from '../account/cpus-now.js';
import type { ContainerAssignment, DeviceAssignment, PodAssignment } from '../account/pod-assignment.js';
import { removePods } from '../account/pod-changes.js';
import type { CpuSnapshot } from '../account/pools.js';
import { randomUUID } from '../base/builtins.js';
import type { ErrorCode } from '../base/errors.js';
import type { AdmissionReason } from '../base/refusal.js';
import { decide } from '../decision/decision.js';
import type { Explanation } from '../decision/explanation.js';
import { NEVER, type Offer, type Question, undo } from '../decision/place.js';
import type { AdmissionRequest } from '../input/request.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';
import { PERSISTENT_OWNER, placedPod } from './admit.js';
import { knownCheckpoint, type ReadOnlySite } from './site.js';
import { type Warning, warningsOf } from './warnings.js';

/** What a container of an admitted pod has. */
export interface PodContainer {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  /** Its exclusive CPUs; null: it runs in the shared pool. */
  readonly cpus: CpuSet | null;
  /** CPUs that are kept from others though nothing runs on them. */
  readonly held: CpuSet;
  /** What the Topology Manager decided for it. */
  readonly hint: TopologyHint;
  /**
   * Its memory and hugepages, each type on NUMA nodes that share it; empty where none is booked for
   * it.
   */
  readonly memory: readonly MemoryBlock[];
  /** Its devices by resource. */
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

/** The answer to {@link Manager.plan}. */
export interface Plan {
  readonly admitted: boolean;
  /** Why not, in the kubelet's words; null where it is admitted. */
  readonly reason: AdmissionReason | null;
  /** The code that admit would fail with. */
  readonly code: ErrorCode | null;
  /** What each container would get; empty where it is not admitted. */
  readonly containers: readonly PodContainer[];
  /**
   * What was merged, step by step until it was admitted or rejected; empty with the policy `none`,
   * and where the pod is placed already.
   */
  readonly hints: readonly Offer[];
  readonly explanation: Explanation | null;
  readonly warnings: readonly Warning[];
  /** False: on a machine of more than 16 NUMA nodes a better hint may exist. */
  readonly exact: boolean;
}

/** What is told of a container on record. */
export function podContainer(assignment: ContainerAssignment): PodContainer {
  const { name, kind, cpus, held, hint, memory, devices } = assignment;
  return Object.freeze({
    name,
    kind,
    cpus: cpus.isEmpty ? null : cpus,
    held,
    hint: Object.freeze({ ...hint }),
    memory: Object.freeze([...memory]),
    devices: Object.freeze({ ...devices }),
  });
}

// Member by member: to add one to a spread object takes many times as long.
function admittedPlan(
  { containers }: PodAssignment,
  { hints, warnings, exact }: Pick<Plan, 'hints' | 'warnings' | 'exact'>,
): Plan {
  const told = containers.map(podContainer);
  return {
    admitted: true,
    reason: null,
    code: null,
    containers: told,
    hints,
    explanation: null,
    warnings,
    exact,
  };
}

/** The plan for a pod that is placed already. */
export function planOfPlaced(pod: PodAssignment): Plan {
  return admittedPlan(pod, { hints: [], warnings: [], exact: true });
}

/**
 * Decides without doing it; with the state as it would be, if the pod is admitted.
 * @throws ERR_HINT_PROVIDER
 */
export function plan(question: Question): { readonly plan: Plan; readonly next: Assignments | undefined } {
  const decision = decide(question);
  const hints = decision.offers;
  const exact = hints.every(({ merged }) => merged.exact);
  if (!decision.admitted) {
    const { code, reason, explanation } = decision;
    const rejected = {
      admitted: false,
      reason,
      code,
      containers: [],
      hints,
      explanation,
      warnings: [],
      exact,
    };
    return { plan: rejected, next: undefined };
  }
  const failure = undo(question);
  if (failure !== undefined) throw failure;
  const { pod, next } = decision;
  const warnings = warningsOf(pod, question);
  return { plan: admittedPlan(pod, { hints, warnings, exact }), next };
}

/** What pods are planned on: what is on record, without the grants of dead owners. */
export interface PlanningGround {
  readonly generation: number;
  readonly state: Assignments;
  readonly present: CpuSnapshot;
}

/** @throws ERR_STATE_CORRUPT where somebody who lives may hold more than is known */
export function planningGround(site: ReadOnlySite): PlanningGround {
  const { generation, assignments } = knownCheckpoint(site);
  const dead = site.ledger.owners.deadPods(assignments.pods).map((pod) => pod.uid);
  const state = removePods(assignments, new Set(dead));
  return { generation, state, present: cpusNow(site.topology, assignments.pods) };
}

/** `uid`: by which the pod would be on record, where no custom provider must know it by another. */
export function questionOf(
  { topology, resources, providers }: ReadOnlySite,
  { state, present }: PlanningGround,
  request: AdmissionRequest,
  uid: string,
): Question {
  // A pod of this uid may be on its way to be admitted, and what providers hold for it must stay.
  const ownUid = providers.isEmpty ? uid : randomUUID();
  return {
    ...{ topology, present, state, request, resources, providers: providers.list },
    owner: PERSISTENT_OWNER,
    uid: ownUid,
    trialUid: ownUid,
    now: NEVER,
    dryRun: true,
  };
}

/**
 * The same decision, on the state as it is, without doing it.
 * @throws ERR_HINT_PROVIDER, ERR_POD_CONFLICT, ERR_STATE_*
 */
export function planFor(site: ReadOnlySite, request: AdmissionRequest): PlanOnRecord {
  const ground = planningGround(site);
  const placed = placedPod(ground.state, request.pod);
  const planned = placed ? planOfPlaced(placed) : plan(questionOf(site, ground, request, '')).plan;
  return onRecord(planned, ground.generation);
}

/**
 * The answer of {@link Manager.plan}: a plan, and the generation of the state that it is made for.
 */
export type PlanOnRecord = Plan & { readonly generation: number };

// Member by member: to add one to a spread object takes many times as long.
function onRecord(plan: Plan, generation: number): PlanOnRecord {
  const { admitted, reason, code, containers, hints, explanation, warnings, exact } = plan;
  return { admitted, reason, code, containers, hints, explanation, warnings, exact, generation };
}

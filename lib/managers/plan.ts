// Plan: a decision that is not carried out.
import type { CpuSet } from '../cpu-set.js';
import type { ErrorCode } from '../errors.js';
import type { TopologyHint } from '../hints.js';
import type { ContainerAssignment, PodAssignment } from '../state/assignments.js';
import { decide, type Offer, type Question, undo } from './decision.js';
import type { AdmissionReason, Explanation } from './explanation.js';

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
  /** What was merged, step by step until it was admitted or rejected; empty with the policy `none`, and where the pod is placed already. */
  readonly hints: readonly Offer[];
  readonly explanation: Explanation | null;
  /** False: on a machine of more than 16 NUMA nodes a better hint may exist. */
  readonly exact: boolean;
}

/** What is told of a container on record. */
export function podContainer({ name, kind, cpus, held, hint }: ContainerAssignment): PodContainer {
  return Object.freeze({ name, kind, cpus: cpus.isEmpty ? null : cpus, held, hint: Object.freeze({ ...hint }) });
}

const ADMITTED = { admitted: true, reason: null, code: null, hints: [], explanation: null, exact: true } as const;

/** The plan for a pod that is placed already. */
export function planOfPlaced({ containers }: PodAssignment): Plan {
  return { ...ADMITTED, containers: containers.map(podContainer) };
}

/** Decides without doing it; with the pod as it would be recorded, if it is admitted. @throws ERR_HINT_PROVIDER */
export function plan(question: Question): { readonly plan: Plan; readonly pod: PodAssignment | undefined } {
  const decision = decide(question);
  const hints = decision.offers;
  const exact = hints.every(({ merged }) => merged.exact);
  if ('error' in decision) {
    const { code, details } = decision.error;
    const { reason, explanation } = details as { reason: AdmissionReason; explanation: Explanation };
    return { plan: { admitted: false, reason, code, containers: [], hints, explanation, exact }, pod: undefined };
  }
  const failure = undo(question);
  if (failure !== undefined) throw failure;
  const { pod } = decision;
  return { plan: { ...ADMITTED, containers: pod.containers.map(podContainer), hints, exact }, pod };
}

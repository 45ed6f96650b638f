// Plan: a decision that is not carried out.
import type { CpuSet } from '../cpu-set.js';
import { type ErrorCode, NumalignError } from '../errors.js';
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
  /** What was merged, step by step; empty with the policy `none`, and where the pod is placed already. */
  readonly hints: readonly Offer[];
  readonly explanation: Explanation | null;
  /** False: on a machine of more than 16 NUMA nodes a better hint may exist. */
  readonly exact: boolean;
}

/** What is told of a container on record. */
export function podContainer({ name, kind, cpus, held, hint }: ContainerAssignment): PodContainer {
  return Object.freeze({ name, kind, cpus: cpus.isEmpty ? null : cpus, held, hint });
}

const ADMITTED = { admitted: true, reason: null, code: null, hints: [], explanation: null, exact: true } as const;

/** The plan for a pod that is placed already. */
export function planOfPlaced({ containers }: PodAssignment): Plan {
  return { ...ADMITTED, containers: containers.map(podContainer) };
}

/** Decides without doing it. @throws ERR_HINT_PROVIDER */
export function plan(question: Question): Plan {
  try {
    const { pod, offers } = decide(question);
    undo(question);
    const exact = offers.every(({ merged }) => merged.exact);
    return { ...ADMITTED, containers: pod.containers.map(podContainer), hints: offers, exact };
  } catch (error) {
    if (!(error instanceof NumalignError) || error.details.explanation === undefined) throw error;
    const { reason, explanation } = error.details as { reason: AdmissionReason; explanation: Explanation };
    return { admitted: false, reason, code: error.code, containers: [], hints: [], explanation, exact: true };
  }
}

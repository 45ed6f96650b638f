// AdmissionReason: why a pod is not admitted. Types only: nothing is loaded at runtime.

/**
 * Why a pod is not admitted, in the kubelet's words. `TopologyAffinityError`: the topology policy
 * refuses. `SMTAlignmentError`: `full-pcpus-only` needs whole cores. `EmptyPodSharedPoolError`:
 * exclusive containers leave the others of the pod nothing to share. `UnexpectedAdmissionError`:
 * every other reason, such as too few CPUs.
 */
export type AdmissionReason =
  | 'TopologyAffinityError'
  | 'SMTAlignmentError'
  | 'UnexpectedAdmissionError'
  | 'EmptyPodSharedPoolError';

/** The facts that only a rejection has. */
export type RejectionFact = 'reason' | 'reserved' | 'holders' | 'explanation' | 'repacking';

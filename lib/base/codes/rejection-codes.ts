// RejectionCodes: why a request is not admitted. Types only: nothing is loaded at runtime.
import type { RejectionFact } from './admission-reasons.js';
import type { ErrorDetails } from './error-details.js';

/** What each rejection has. */
type Rejected = Required<Pick<ErrorDetails, Exclude<RejectionFact, 'repacking'>>> &
  Pick<ErrorDetails, 'repacking'>;

// Without `value` and `valid` where no request was made: see `bestFit`.
interface CpuFacts {
  value?: number;
  valid?: string;
  free?: Readonly<Record<string, string>>;
  sharedPool?: string;
}

interface MemoryFacts {
  value: Readonly<Record<string, number>>;
  free: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** The codes of an {@link AdmissionError}, each with what it means and what to do. */
export interface RejectionCodes {
  /**
   * A hint provider (`details.value`) threw in `details.method`, returned a promise, or returned
   * hints of another shape. Its error is the `cause`. The request is not admitted. A release goes
   * through all the same.
   * @remedy Correct the provider.
   */
  ERR_HINT_PROVIDER: Partial<Rejected> & { value: string; method: string };
  /**
   * Fewer CPUs can be granted than the request asks for: others hold them, or one must stay in the
   * shared pool. `details.valid` says how many you can have, `details.free` has the free CPUs by
   * NUMA node or `details.sharedPool` the shared pool, `details.reserved` the reserved CPUs and
   * `details.holders` the grants that hold the others. The kubelet's `reason` is
   * `UnexpectedAdmissionError`.
   * @remedy Ask for as many as `details.valid` says, or use `wait` until a grant is released.
   */
  ERR_INSUFFICIENT_CPUS: Partial<Rejected> & CpuFacts;
  /**
   * Fewer healthy devices of `details.resource` are free than the request asks for. The kubelet's
   * `reason` is `UnexpectedAdmissionError`.
   * @remedy Ask for fewer, or use `wait` until a grant is released.
   */
  ERR_INSUFFICIENT_DEVICES: Rejected & { value: number; valid: string; resource: string };
  /**
   * No NUMA nodes that can be allocated together have enough free memory or hugepages. With
   * `strictHugepages`, only hugepages that the kernel has free count. `details.free` has what each
   * node has. The kubelet's `reason` is `UnexpectedAdmissionError`.
   * @remedy Ask for less, or use `wait` until a grant is released.
   */
  ERR_INSUFFICIENT_MEMORY: Rejected & MemoryFacts;
  /**
   * In a pod with resources as a whole, the exclusive containers take all of `details.resource`,
   * and another container has nothing left to share. The kubelet's `reason` is
   * `EmptyPodSharedPoolError`, or `TopologyAffinityError` under `restricted` and
   * `single-numa-node`.
   * @remedy Give the pod more of the resource, or its exclusive containers less.
   */
  ERR_POD_POOL_EMPTY: Rejected & { value: number; valid: string; resource: string };
  /**
   * The preferred-allocation callback of a resource (`details.value`) threw, or chose devices that
   * it was not offered. Its error is the `cause`. The request is not admitted.
   * @remedy Correct the callback: it returns ids out of `available`, each once and at most `size`
   *   of them, or null.
   */
  ERR_PREFERRED_ALLOCATION: Rejected & { value: string; valid: string };
  /**
   * The rest of the shared pool would be smaller than what `mixed` grants have booked in it. The
   * kubelet's `reason` is `UnexpectedAdmissionError`.
   * @remedy Ask for fewer CPUs, or for a smaller fraction: `details.valid` says how many CPUs you
   *   can have in all.
   */
  ERR_SHARED_POOL_FULL: Rejected & { value: number; valid: string; sharedPool: string };
  /**
   * Under `full-pcpus-only` the request is not a multiple of the threads of a core, or too few whole
   * cores are free. The kubelet's `reason` is `SMTAlignmentError`.
   * @remedy Ask for whole cores, or for fewer.
   */
  ERR_SMT_ALIGNMENT: Rejected & { value: number; valid?: string };
  /**
   * The resources cannot be aligned as the topology policy demands. `details.explanation` says why,
   * and under which policies the request would be admitted (`admittedUnder`). The kubelet's
   * `reason` is `TopologyAffinityError`.
   * @remedy Release what `details.holders` hold, ask for less, or use a weaker policy.
   */
  ERR_TOPOLOGY_AFFINITY: Rejected;
}

// The policies of the managers and their options, spelled as the kubelet spells them.

/** The policies of the Topology Manager, in the order of the core's enumerators. */
export const TOPOLOGY_MANAGER_POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;

/**
 * `none` asks no provider for hints; `best-effort` prefers the best hint; `restricted` admits only
 * a preferred one; `single-numa-node` only one of a single NUMA node.
 */
export type TopologyManagerPolicy = (typeof TOPOLOGY_MANAGER_POLICIES)[number];

/** Whether hints are merged for each container, or once for the whole pod. */
export type TopologyManagerScope = 'container' | 'pod';

/** The policies of the CPU Manager; the kubelet has no `dynamic`. */
export const CPU_MANAGER_POLICIES = ['none', 'static', 'dynamic'] as const;

/**
 * Whether Guaranteed containers with whole CPUs get exclusive ones. `dynamic`: as `static`; and where
 * a request is rejected though what is free in all would do, grants that consent move to make room
 * for it.
 */
export type CpuManagerPolicy = (typeof CPU_MANAGER_POLICIES)[number];

/**
 * Whether memory and hugepages of Guaranteed pods are booked on NUMA nodes. `BestEffort`, which the
 * kubelet knows on Windows, decides as `Static` does, and means that nobody counts on its being
 * enforced.
 */
export type MemoryManagerPolicy = 'None' | 'Static' | 'BestEffort';

/** The modes of {@link RequestPlacementOptions.isolation}. */
export const ISOLATION_CHOICES = ['never', 'prefer', 'require'] as const;
export type IsolationChoice = (typeof ISOLATION_CHOICES)[number];

/** The values of {@link RequestPlacementOptions.placement}. */
export const PLACEMENT_CHOICES = ['kubelet', 'joint'] as const;
export type PlacementChoice = (typeof PLACEMENT_CHOICES)[number];

type Flag = boolean | 'true' | 'false';

/**
 * Options of the static CPU policy, spelled as the kubelet spells them. Values may be booleans or
 * their text.
 */
export interface CpuManagerPolicyOptions {
  /** Whole cores only: a request must be a multiple of the threads of a core. */
  'full-pcpus-only'?: Flag;
  /** Balanced over the fewest NUMA nodes that fit, instead of packed. */
  'distribute-cpus-across-numa'?: Flag;
  /** Prefer NUMA nodes of one socket, even if there are more of them. */
  'align-by-socket'?: Flag;
  /** Single threads from all over the package instead of whole cores. */
  'distribute-cpus-across-cores'?: Flag;
  /** Whole L3 groups where the request is that large, else the fewest of them. */
  'prefer-align-cpus-by-uncorecache'?: Flag;
  /**
   * The machine setting {@link MachineOptions.strictCPUReservation} by its kubelet name; not for a
   * single request.
   */
  'strict-cpu-reservation'?: Flag;
}

export interface TopologyManagerPolicyOptions {
  /** Of hints with as many NUMA nodes the one whose nodes are closer to each other. */
  'prefer-closest-numa-nodes'?: Flag;
  /** Refuse a machine with more NUMA nodes, at least 8; default: no limit. */
  'max-allowable-numa-nodes'?: number | string;
}

/** How requests are placed. Options of a manager, for requests that do not say otherwise. */
export interface PlacementOptions {
  /** Default: static. */
  cpuManagerPolicy?: CpuManagerPolicy;
  cpuManagerPolicyOptions?: CpuManagerPolicyOptions;
  /** Default: Static. */
  memoryManagerPolicy?: MemoryManagerPolicy;
  /** Default: best-effort. */
  topologyManagerPolicy?: TopologyManagerPolicy;
  topologyManagerPolicyOptions?: TopologyManagerPolicyOptions;
  /** Default: container. */
  topologyManagerScope?: TopologyManagerScope;
  /** As {@link RequestPlacementOptions.initContainerLookahead}. Default: false. */
  initContainerLookahead?: boolean;
  /** As {@link RequestPlacementOptions.strictHugepages}. Default: false. */
  strictHugepages?: boolean;
  /** As {@link RequestPlacementOptions.placement}. Default: kubelet. */
  placement?: PlacementChoice;
}

/** What a request may say of its placement; a manager's options are translated to it. */
export interface RequestPlacementOptions {
  /** The Topology Manager's policy. */
  policy?: TopologyManagerPolicy;
  scope?: TopologyManagerScope;
  cpuManagerPolicyOptions?: CpuManagerPolicyOptions;
  topologyManagerPolicyOptions?: TopologyManagerPolicyOptions;
  /**
   * With the scope `container`: the first init containers go to NUMA nodes where the whole pod fits,
   * though others would do for themselves. It admits whatever is admitted without it, on no more
   * nodes. Without effect where there are custom hint providers.
   */
  initContainerLookahead?: boolean;
  /**
   * No more hugepages of a NUMA node count as free than the kernel has free there, whatever is on
   * record. Of a described machine nothing is read.
   */
  strictHugepages?: boolean;
  /**
   * How NUMA nodes are chosen among those that the policy admits. `kubelet`: as the kubelet chooses
   * them. `joint`: over CPUs, memory, hugepages and devices together, the fewest nodes first, then
   * the nearest to each other, then those with the least free, then the lowest; with
   * `initContainerLookahead`. It admits whatever `kubelet` admits.
   */
  placement?: PlacementChoice;
  /**
   * Hold the SMT siblings of the CPUs too: `cpus` are one thread a core, `held` are the others, on
   * which nothing runs.
   */
  smt?: 'hold-sibling';
  /**
   * Isolated CPUs: `never` (default) takes none; `require` takes no others; `prefer` takes them
   * where they will do for the whole pod, else others. The kernel balances no load over them:
   * several of them need threads that are placed one by one.
   */
  isolation?: IsolationChoice;
}

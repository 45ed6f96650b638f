// The policies of the managers and their options, by the kubelet's names.

/** The policies of the Topology Manager, in the order of the core's enumerators. */
export const TOPOLOGY_MANAGER_POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;

/**
 * The policy of the Topology Manager. `none` uses no hints. `best-effort` uses the best hint.
 * `restricted` admits only with a preferred hint, `single-numa-node` only with a preferred hint of
 * one NUMA node. More than 64 NUMA nodes need `none`.
 */
export type TopologyManagerPolicy = (typeof TOPOLOGY_MANAGER_POLICIES)[number];

/**
 * What hints are merged for: `container`, each container by itself; `pod`, once for the whole pod.
 */
export type TopologyManagerScope = 'container' | 'pod';

/** The policies of the CPU Manager; the kubelet has no `dynamic`. */
export const CPU_MANAGER_POLICIES = ['none', 'static', 'dynamic'] as const;

/**
 * The policy of the CPU Manager. `none` makes no CPUs exclusive. `static` gives exclusive CPUs to
 * Guaranteed containers that ask for whole CPUs. `dynamic` does the same, and moves grants that
 * consent if a request fits only then: see docs/dynamic.md.
 */
export type CpuManagerPolicy = (typeof CPU_MANAGER_POLICIES)[number];

/**
 * The policy of the Memory Manager. `None` books no memory. `Static` books memory and hugepages of
 * Guaranteed pods on NUMA nodes. `BestEffort` decides like `Static`, but promises no enforcement;
 * the kubelet has it on Windows.
 */
export type MemoryManagerPolicy = 'None' | 'Static' | 'BestEffort';

/** The modes of {@link RequestPlacementOptions.isolation}. */
export const ISOLATION_CHOICES = ['never', 'prefer', 'require'] as const;
/**
 * Whether a request takes isolated CPUs: `never`, `prefer` (if these are enough for the whole pod)
 * or `require` (no others). See {@link RequestPlacementOptions.isolation}.
 */
export type IsolationChoice = (typeof ISOLATION_CHOICES)[number];

/** The modes of {@link RequestPlacementOptions.placement}. */
export const PLACEMENT_CHOICES = ['kubelet', 'joint'] as const;
/**
 * How NUMA nodes are chosen: as the `kubelet` does, or `joint`, for all resources together. See
 * {@link RequestPlacementOptions.placement}.
 */
export type PlacementChoice = (typeof PLACEMENT_CHOICES)[number];

type Flag = boolean | 'true' | 'false';

/**
 * Options of the CPU policies `static` and `dynamic`, by the kubelet's names. Values are booleans
 * or `'true'` and `'false'`. All are off by default.
 */
export interface CpuManagerPolicyOptions {
  /**
   * Grants whole cores only, and never shares a core with another container or a reserved CPU.
   * Other amounts are ERR_SMT_ALIGNMENT. Not with `distribute-cpus-across-cores`.
   */
  'full-pcpus-only'?: Flag;
  /**
   * Balances the CPUs over the fewest NUMA nodes that fit. Not with `distribute-cpus-across-cores`,
   * `prefer-align-cpus-by-uncorecache`.
   */
  'distribute-cpus-across-numa'?: Flag;
  /**
   * Prefers NUMA nodes of one socket, even if it takes more nodes. Not with the policy
   * `single-numa-node`, nor on a machine with more sockets than NUMA nodes.
   */
  'align-by-socket'?: Flag;
  /**
   * Takes single threads from all cores of the package. Not with `full-pcpus-only`,
   * `distribute-cpus-across-numa`, `prefer-align-cpus-by-uncorecache`.
   */
  'distribute-cpus-across-cores'?: Flag;
  /**
   * Takes whole L3 groups if the request is that large, else CPUs of the fewest L3 groups. Not with
   * `distribute-cpus-across-numa`, `distribute-cpus-across-cores`.
   */
  'prefer-align-cpus-by-uncorecache'?: Flag;
  /** The kubelet's name of {@link MachineOptions.strictCPUReservation}. Requests cannot set it. */
  'strict-cpu-reservation'?: Flag;
}

/** Options of the Topology Manager, by the kubelet's names. */
export interface TopologyManagerPolicyOptions {
  /**
   * Among hints with as many NUMA nodes, prefers the one whose nodes are closest to each other.
   * @default `false`
   */
  'prefer-closest-numa-nodes'?: Flag;
  /**
   * Refuses a machine with more NUMA nodes than this; at least 8.
   * @default no limit
   */
  'max-allowable-numa-nodes'?: number | string;
}

/** How a manager places requests. A request can set most of these options itself. */
export interface PlacementOptions {
  /**
   * The policy of the CPU Manager: `none`, `static` or `dynamic`.
   * @default `static`
   */
  cpuManagerPolicy?: CpuManagerPolicy;
  /**
   * Options of the CPU policy. Refused with the policy `none`.
   * @default none
   */
  cpuManagerPolicyOptions?: CpuManagerPolicyOptions;
  /**
   * The policy of the Memory Manager: `None`, `Static` or `BestEffort`.
   * @default `Static`
   */
  memoryManagerPolicy?: MemoryManagerPolicy;
  /**
   * The policy of the Topology Manager: `none`, `best-effort`, `restricted` or `single-numa-node`.
   * @default `best-effort`
   */
  topologyManagerPolicy?: TopologyManagerPolicy;
  /**
   * Options of the Topology Manager.
   * @default none
   */
  topologyManagerPolicyOptions?: TopologyManagerPolicyOptions;
  /**
   * What hints are merged for: each `container`, or the whole `pod`.
   * @default `container`
   */
  topologyManagerScope?: TopologyManagerScope;
  /**
   * Like {@link RequestPlacementOptions.initContainerLookahead}.
   * @default `false`
   */
  initContainerLookahead?: boolean;
  /**
   * Like {@link RequestPlacementOptions.strictHugepages}.
   * @default `false`
   */
  strictHugepages?: boolean;
  /**
   * Like {@link RequestPlacementOptions.placement}.
   * @default `kubelet`
   */
  placement?: PlacementChoice;
}

/** How one request is placed. */
export interface RequestPlacementOptions {
  /**
   * Like {@link PlacementOptions.topologyManagerPolicy}.
   * @default the manager's
   */
  policy?: TopologyManagerPolicy;
  /**
   * Like {@link PlacementOptions.topologyManagerScope}.
   * @default the manager's
   */
  scope?: TopologyManagerScope;
  /**
   * Options of the CPU policy except `strict-cpu-reservation`. An option that you leave out has the
   * manager's value.
   * @default the manager's
   */
  cpuManagerPolicyOptions?: CpuManagerPolicyOptions;
  /**
   * Options of the Topology Manager. An option that you leave out has the manager's value.
   * @default the manager's
   */
  topologyManagerPolicyOptions?: TopologyManagerPolicyOptions;
  /**
   * With the scope `container`: places the first init containers on NUMA nodes that have room for
   * the whole pod. It admits every pod that is admitted without it, on no more nodes. It has no
   * effect with custom hint providers. The kubelet has no such option. See docs/admission.md.
   * @default the manager's
   */
  initContainerLookahead?: boolean;
  /**
   * Counts at most as many hugepages of a NUMA node as free as the kernel has free and unreserved
   * there. It has no effect on a simulated machine. See docs/memory.md.
   * @default the manager's
   */
  strictHugepages?: boolean;
  /**
   * How to choose among the NUMA nodes that the policy admits. `kubelet`: like the kubelet.
   * `joint`: for CPUs, memory, hugepages and devices together, the fewest nodes, then the nearest
   * to each other, then those with the least free, then the lowest. `joint` includes
   * `initContainerLookahead`, and admits every request that `kubelet` admits. See docs/dynamic.md.
   * @default the manager's
   */
  placement?: PlacementChoice;
  /**
   * `hold-sibling`: one thread of each core runs (`cpus`), and the grant keeps its siblings idle
   * (`held`). Refused with the CPU policy `none`.
   * @default all threads run
   */
  smt?: 'hold-sibling';
  /**
   * Whether to take isolated CPUs. `never`: none. `require`: only isolated ones. `prefer`: isolated
   * ones if they are enough for the whole pod, else others. The kernel does not balance load
   * between isolated CPUs: place threads one by one. The CPU policy `none` allows only `never`. See
   * docs/isolated-cpus.md.
   * @default `never`
   */
  isolation?: IsolationChoice;
}

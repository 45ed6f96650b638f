// The options of placement: how a manager places requests, and how a request differs.
import { invalidOption } from '../base/check-options.js';
import { MEMORY_TIERS, type MemoryTier } from '../base/native-tables.js';
import { STRICT } from './machine-options.js';
import {
  type Check,
  FLAG,
  group,
  type OptionsOf,
  type OptionTable,
  type OptionTables,
  oneOf,
  only,
  POLICY_FLAG,
  policyFlag,
  row,
} from './option-table.js';
import {
  ALLOCATION_STRATEGIES,
  CORE_KIND_CHOICES,
  CPU_MANAGER_POLICIES,
  ISOLATION_CHOICES,
  MEMORY_MANAGER_POLICIES,
  type MemoryTiers,
  PLACEMENT_CHOICES,
  PREFERENCES,
  TOPOLOGY_MANAGER_POLICIES,
  TOPOLOGY_MANAGER_SCOPES,
} from './policies.js';

export const CPU_POLICY_OPTIONS = {
  /**
   * Grants whole cores only, and never shares a core with another container or a reserved CPU.
   * Other amounts are ERR_SMT_ALIGNMENT.
   */
  'full-pcpus-only': policyFlag('fullPhysicalCpusOnly', null),
  /** Balances the CPUs over the fewest NUMA nodes that fit. */
  'distribute-cpus-across-numa': policyFlag('distributeAcrossNuma', {
    usage: '--distribute',
    help: 'balance over the fewest NUMA nodes that fit',
    of: 'run',
  }),
  /**
   * Prefers NUMA nodes of one socket, even if it takes more nodes. Not with the policy
   * `single-numa-node`, nor on a machine with more sockets than NUMA nodes.
   */
  'align-by-socket': policyFlag('alignBySocket', null),
  /** Takes single threads from all cores of the package. */
  'distribute-cpus-across-cores': policyFlag('distributeAcrossCores', {
    usage: '--spread',
    help: 'take single threads of many cores, not whole cores',
    of: 'run',
  }),
  /** Takes whole L3 groups if the request is that large, else CPUs of the fewest L3 groups. */
  'prefer-align-cpus-by-uncorecache': policyFlag('preferAlignByUncoreCache', {
    usage: '--align-l3',
    help: 'take whole L3 groups if the count allows, else as few groups as possible',
    of: 'run',
  }),
} satisfies OptionTable;

/** Groups of options of which the kubelet accepts at most one. */
export const EXCLUSIVE_OPTIONS: readonly (readonly (keyof typeof CPU_POLICY_OPTIONS)[])[] = [
  ['full-pcpus-only', 'distribute-cpus-across-cores'],
  ['distribute-cpus-across-numa', 'distribute-cpus-across-cores', 'prefer-align-cpus-by-uncorecache'],
];

/** The options that one of them excludes. */
export const excludedBy = (name: string): string[] =>
  EXCLUSIVE_OPTIONS.flatMap((options: readonly string[]) =>
    options.includes(name) ? options.filter((other) => other !== name) : [],
  );

/**
 * Options of the CPU policies `static` and `dynamic`, by the kubelet's names. Values are booleans
 * or `'true'` and `'false'`.
 */
export interface CpuManagerPolicyOptions extends OptionsOf<typeof CPU_POLICY_OPTIONS> {
  /**
   * The kubelet's name of {@link MachineOptions.strictCPUReservation}. Requests cannot set it.
   */
  'strict-cpu-reservation'?: boolean | 'true' | 'false';
}

// The least value that the kubelet accepts.
const LEAST_MAX_NUMA_NODES = 8;

const nodeLimit: Check<number | string, number> = (value, name) =>
  /^\d{1,9}$/.test(String(value)) && Number(value) >= LEAST_MAX_NUMA_NODES
    ? Number(value)
    : invalidOption(name, value, `a whole number of NUMA nodes, at least ${LEAST_MAX_NUMA_NODES}`);

export const TOPOLOGY_POLICY_OPTIONS = {
  /**
   * Among hints with as many NUMA nodes, prefers the one whose nodes are closest to each other.
   */
  'prefer-closest-numa-nodes': policyFlag('preferClosest', null),
  /**
   * Refuses a machine with more NUMA nodes than this; at least 8.
   * @default no limit
   */
  'max-allowable-numa-nodes': row({
    field: 'maxNumaNodes',
    by: 'both',
    check: nodeLimit,
    default: Number.POSITIVE_INFINITY,
    kubelet: null,
    flag: null,
    recorded: false,
  }),
  /**
   * Decides as on a machine without the NUMA nodes that have no CPUs: their memory is not booked,
   * hints do not name them, and a device near one counts as near the nearest node with CPUs. Custom
   * hint providers must not name them.
   */
  'restrict-to-cpu-numa-nodes': row({
    field: 'onlyCpuNodes',
    by: 'both',
    check: POLICY_FLAG,
    default: false,
    kubelet: null,
    flag: null,
    recorded: false,
    provisional: true,
  }),
  /**
   * Among hints that are otherwise equal, prefers the NUMA nodes that are `most-allocated` or
   * `least-allocated`: by the mean percentage of the CPUs, memory and devices that the request asks
   * for. `none`: the lowest. With `placement: 'joint'` it is `prefer`, `packed` or `spread`.
   */
  'numa-allocation-strategy': row({
    field: 'allocationStrategy',
    by: 'both',
    check: oneOf(ALLOCATION_STRATEGIES),
    default: 'none',
    kubelet: null,
    flag: null,
    recorded: false,
    provisional: true,
  }),
} satisfies OptionTable;

/** Options of the Topology Manager, by the kubelet's names. */
export interface TopologyManagerPolicyOptions extends OptionsOf<typeof TOPOLOGY_POLICY_OPTIONS> {}

const ORDINARY_MEMORY: MemoryTiers = Object.freeze(['dram'] as const);

const TIERS: Check<MemoryTiers | MemoryTier | string, MemoryTiers> = (value, name) => {
  if (value === 'any') return 'any';
  const tiers: unknown = typeof value === 'string' ? value.split(',') : value;
  const isRight =
    Array.isArray(tiers) && tiers.every((tier) => MEMORY_TIERS.includes(tier)) && tiers.length > 0;
  if (!isRight || new Set(tiers).size < tiers.length)
    return invalidOption(name, value, `'any', or some of ${MEMORY_TIERS.join(', ')}, each once`);
  return Object.freeze([...(tiers as MemoryTier[])]);
};

/** Every option of placement. */
export const PLACEMENT_OPTIONS = {
  /** The policy of the CPU Manager: `none`, `static` or `dynamic`. */
  cpuManagerPolicy: row({
    field: 'cpuPolicy',
    by: 'manager',
    check: oneOf(CPU_MANAGER_POLICIES),
    default: 'static',
    kubelet: { shape: 'text', default: 'none' },
    flag: {
      usage: '--cpu-policy <policy>',
      help: 'CPU Manager policy; dynamic: grants that consent move to make room',
      of: 'all',
    },
    recorded: false,
  }),
  /**
   * Options of the CPU policy. Refused with the policy `none`. A request has the manager's value of
   * each option that it leaves out.
   * @default none
   */
  cpuManagerPolicyOptions: group<CpuManagerPolicyOptions>(CPU_POLICY_OPTIONS, [STRICT]),
  /** The policy of the Memory Manager: `None`, `Static` or `BestEffort`. */
  memoryManagerPolicy: row({
    field: 'memoryPolicy',
    by: 'manager',
    check: oneOf(MEMORY_MANAGER_POLICIES),
    default: 'Static',
    kubelet: { shape: 'text', default: 'None' },
    flag: null,
    recorded: false,
  }),
  /**
   * The policy of the Topology Manager: `none`, `best-effort`, `restricted` or `single-numa-node`.
   */
  policy: row({
    field: 'topologyPolicy',
    by: 'both',
    check: oneOf(TOPOLOGY_MANAGER_POLICIES),
    default: 'best-effort',
    kubelet: { name: 'topologyManagerPolicy', shape: 'text', default: 'none' },
    flag: { usage: '--policy <policy>', help: 'Topology Manager policy', of: 'all' },
    recorded: false,
  }),
  /**
   * Options of the Topology Manager. A request has the manager's value of each option that it
   * leaves out.
   * @default none
   */
  topologyManagerPolicyOptions: group<TopologyManagerPolicyOptions>(TOPOLOGY_POLICY_OPTIONS),
  /** What hints are merged for: each `container`, or the whole `pod`. */
  scope: row({
    field: 'scope',
    by: 'both',
    check: oneOf(TOPOLOGY_MANAGER_SCOPES),
    default: 'container',
    kubelet: { name: 'topologyManagerScope', shape: 'text', default: 'container' },
    flag: { usage: '--scope <scope>', help: 'align containers or whole pods', of: 'pods' },
    recorded: false,
  }),
  /**
   * With the scope `container`: places the first init containers on NUMA nodes that have room for
   * the whole pod. It admits every pod that is admitted without it, on no more nodes. It has no
   * effect with custom hint providers. The kubelet has no such option. See docs/admission.md.
   */
  initContainerLookahead: row({
    field: 'initContainerLookahead',
    by: 'both',
    check: FLAG,
    default: false,
    kubelet: null,
    flag: {
      usage: '--init-container-lookahead',
      help: 'place init containers on NUMA nodes where the whole pod fits',
      of: 'pods',
    },
    recorded: false,
  }),
  /**
   * Counts at most as many hugepages of a NUMA node as free as the kernel has free and unreserved
   * there. It has no effect on a simulated machine. See docs/memory.md.
   */
  strictHugepages: row({
    field: 'strictHugepages',
    by: 'both',
    check: FLAG,
    default: false,
    kubelet: null,
    flag: { usage: '--strict-hugepages', help: 'count only hugepages that the kernel has free', of: 'all' },
    recorded: false,
  }),
  /**
   * How to choose among the NUMA nodes that the policy admits. `kubelet`: like the kubelet.
   * `joint`: for CPUs, memory, hugepages and devices together, the fewest nodes, then the nearest
   * to each other, then those that {@link prefer} prefers, then the lowest; of each node, CPUs of
   * the fewest L3 groups. `joint` includes `initContainerLookahead`, and admits every request that
   * `kubelet` admits. See docs/dynamic.md.
   */
  placement: row({
    field: 'nodeChoice',
    by: 'both',
    check: oneOf(PLACEMENT_CHOICES),
    default: 'kubelet',
    kubelet: null,
    flag: {
      usage: '--placement <choice>',
      help: 'choose NUMA nodes as the kubelet does, or for all resources together',
      of: 'all',
    },
    recorded: false,
  }),
  /**
   * With `placement: 'joint'`, of equally good NUMA nodes: `packed` takes those with the least free,
   * so that whole nodes stay whole; `spread` those with the most, so that grants share little. It has
   * no effect with `placement: 'kubelet'`.
   */
  prefer: row({
    field: 'prefer',
    by: 'both',
    check: oneOf(PREFERENCES),
    default: 'packed',
    kubelet: null,
    flag: {
      usage: '--prefer <nodes>',
      help: 'with --placement joint: take the nodes with the least free (packed) or the most (spread)',
      of: 'all',
    },
    recorded: false,
  }),
  /**
   * Books memory and hugepages in equal parts on the NUMA nodes of a grant that has several, as far
   * as each has room. Without it nodes are filled one after the other, as by the kubelet. For
   * pages that are used so: `memory: 'interleave'` of {@link PinOptions}.
   */
  evenMemory: row({
    field: 'evenMemory',
    by: 'both',
    check: FLAG,
    default: false,
    kubelet: null,
    flag: { usage: '--even-memory', help: 'book memory evenly over the NUMA nodes', of: 'all' },
    recorded: false,
  }),
  /**
   * On a machine with several kinds of cores: which of them a request takes. `best`: the fastest
   * kind that admits it, and several kinds only if none does. `performance`: the fastest kind.
   * `efficiency`: only slower ones. `any`: all alike, as the kubelet, which knows no kinds. See
   * docs/core-kinds.md.
   */
  coreKind: row({
    field: 'coreKind',
    by: 'both',
    check: oneOf(CORE_KIND_CHOICES),
    default: 'best',
    kubelet: null,
    flag: {
      usage: '--core-kind <kind>',
      help: 'take the best kind of cores with room, or performance or efficiency cores, or any',
      of: 'all',
    },
    recorded: false,
  }),
  /**
   * The tiers of memory to book on, in order, such as `['hbm', 'dram']`: each is filled before the
   * next. `dram` is that of nodes with CPUs; nodes without CPUs have `hbm`, `cxl`, `pmem`, `gpu` or
   * `other`. `any`: all nodes alike, as the kubelet. See docs/memory.md.
   */
  memoryTiers: row({
    field: 'memoryTiers',
    by: 'both',
    check: TIERS,
    default: ORDINARY_MEMORY,
    kubelet: null,
    flag: {
      usage: '--memory-tiers <tiers>',
      help: 'book memory of these tiers, in order, such as hbm,dram; any: all nodes alike',
      of: 'all',
    },
    recorded: false,
  }),
  /**
   * Whether to take isolated CPUs. `never`: none. `require`: only isolated ones. `prefer`: isolated
   * ones if they are enough for the whole pod, else others. The kernel does not balance load
   * between isolated CPUs: place threads one by one. The CPU policy `none` allows only `never`. See
   * docs/isolated-cpus.md.
   */
  isolation: row({
    field: 'isolation',
    by: 'request',
    check: oneOf(ISOLATION_CHOICES),
    default: 'never',
    kubelet: null,
    flag: {
      usage: '--isolation <mode>',
      help: 'take isolated CPUs if there are enough, or only those',
      of: 'all',
    },
    recorded: false,
  }),
  /**
   * Takes CPUs outside the mask of this process too. By default a mask that was chosen, such as by
   * `taskset` or `CPUAffinity=`, is a wish that {@link Manager.acquire} keeps to. See
   * docs/services.md.
   */
  ignoreMask: row({
    field: 'ignoresMask',
    by: 'both',
    check: FLAG,
    default: false,
    kubelet: null,
    flag: {
      usage: '--ignore-mask',
      help: 'take CPUs outside the mask that taskset or CPUAffinity= chose, too',
      of: 'run',
    },
    recorded: false,
  }),
  /**
   * `hold-sibling`: one thread of each core runs (`cpus`), and the grant keeps its siblings idle
   * (`held`). Refused with the CPU policy `none`.
   * @default all threads run
   */
  smt: row({
    field: 'holdSiblings',
    by: 'request',
    check: only('hold-sibling'),
    default: false,
    kubelet: null,
    flag: {
      usage: '--smt <mode>',
      help: 'also hold the other threads of its cores, and keep them idle',
      of: 'run',
    },
    recorded: 'hold-sibling',
  }),
} satisfies OptionTables;

/**
 * How a manager places requests. A request can set most of these options itself, and has the
 * manager's value of those that it leaves out.
 */
export interface PlacementOptions extends OptionsOf<typeof PLACEMENT_OPTIONS, 'manager'> {}

/** How one request is placed. */
export interface RequestPlacementOptions extends OptionsOf<typeof PLACEMENT_OPTIONS, 'request'> {}

// The options of placement: how a manager places requests, and how a request differs.
import { invalidOption } from '../base/check-options.js';
import { MEMORY_TIERS, type MemoryTier } from '../base/native-tables.js';
import { STRICT } from './machine-options.js';
import {
  type Check,
  FLAG,
  group,
  type OptionsOf,
  type OptionTables,
  oneOf,
  only,
  row,
} from './option-table.js';
import {
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
import {
  CPU_POLICY_OPTIONS,
  type CpuManagerPolicyOptions,
  TOPOLOGY_POLICY_OPTIONS,
  type TopologyManagerPolicyOptions,
} from './policy-options.js';

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

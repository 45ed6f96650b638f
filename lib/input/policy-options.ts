// The options of the CPU policies and of the Topology Manager, by the kubelet's names.
import { invalidOption } from '../base/check-options.js';
import {
  type Check,
  type OptionsOf,
  type OptionTable,
  oneOf,
  POLICY_FLAG,
  policyFlag,
  row,
} from './option-table.js';
import { ALLOCATION_STRATEGIES } from './policies.js';

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

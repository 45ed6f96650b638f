// Placement: how to place one request, by the options of its manager and of the request.
import { poolOf } from '../account/pod-holdings.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { DEFAULT_VERSION, type KubeletVersion } from '../base/kubelet-features.js';
import { MAX_HINT_NODES } from '../machine/hint-masks.js';
import type { Topology } from '../machine/topology.js';
import { STRICT } from './machine-options.js';
import {
  CPU_MANAGER_POLICIES,
  type CpuManagerPolicy,
  type CpuManagerPolicyOptions,
  ISOLATION_CHOICES,
  type IsolationChoice,
  type MemoryManagerPolicy,
  PLACEMENT_CHOICES,
  type PlacementChoice,
  type PlacementOptions,
  type RequestPlacementOptions,
  TOPOLOGY_MANAGER_POLICIES,
  type TopologyManagerPolicy,
  type TopologyManagerScope,
} from './policies.js';
import { option, parseFlag } from './values/option-values.js';

/** How to place one request: {@link PlacementOptions} and those of the request, checked. */
export interface Placement {
  readonly cpuPolicy: CpuManagerPolicy;
  readonly fullPhysicalCpusOnly: boolean;
  readonly distributeAcrossNuma: boolean;
  readonly alignBySocket: boolean;
  readonly distributeAcrossCores: boolean;
  readonly preferAlignByUncoreCache: boolean;
  /** True if the grant holds the SMT siblings of its CPUs too, and keeps them idle. */
  readonly holdSiblings: boolean;
  readonly isolation: IsolationChoice;
  readonly memoryPolicy: MemoryManagerPolicy;
  readonly topologyPolicy: TopologyManagerPolicy;
  readonly preferClosest: boolean;
  readonly maxNumaNodes: number;
  readonly scope: TopologyManagerScope;
  /** The machine's setting, which {@link placementUnder} fills in before a decision. */
  readonly kubeletVersion: KubeletVersion;
  /** True if init containers go to NUMA nodes where the whole pod fits. */
  readonly initContainerLookahead: boolean;
  /** True if only hugepages that the kernel has free count. */
  readonly strictHugepages: boolean;
  /** The rules for the choice of NUMA nodes. */
  readonly choice: PlacementChoice;
}

/** True if the policy rejects what it cannot align. */
export const isStrict = ({ topologyPolicy }: Placement): boolean =>
  topologyPolicy === 'restricted' || topologyPolicy === 'single-numa-node';

// The key in a grant's record that stands for the choice `joint`.
const JOINT_OPTION = 'joint-placement';

const CPU_OPTIONS = {
  'full-pcpus-only': 'fullPhysicalCpusOnly',
  'distribute-cpus-across-numa': 'distributeAcrossNuma',
  'align-by-socket': 'alignBySocket',
  'distribute-cpus-across-cores': 'distributeAcrossCores',
  'prefer-align-cpus-by-uncorecache': 'preferAlignByUncoreCache',
} as const satisfies Partial<Record<keyof CpuManagerPolicyOptions, keyof Placement>>;

const CPU_OPTION_FIELDS = Object.entries(CPU_OPTIONS) as [
  keyof typeof CPU_OPTIONS,
  (typeof CPU_OPTIONS)[keyof typeof CPU_OPTIONS],
][];

// Groups of options of which the kubelet accepts at most one.
const EXCLUSIVE_OPTIONS = [
  ['full-pcpus-only', 'distribute-cpus-across-cores'],
  ['distribute-cpus-across-numa', 'distribute-cpus-across-cores', 'prefer-align-cpus-by-uncorecache'],
] as const;

export const DEFAULT_PLACEMENT: Placement = Object.freeze({
  cpuPolicy: 'static',
  fullPhysicalCpusOnly: false,
  distributeAcrossNuma: false,
  alignBySocket: false,
  distributeAcrossCores: false,
  preferAlignByUncoreCache: false,
  holdSiblings: false,
  isolation: 'never',
  memoryPolicy: 'Static',
  topologyPolicy: 'best-effort',
  preferClosest: false,
  maxNumaNodes: Number.POSITIVE_INFINITY,
  scope: 'container',
  kubeletVersion: DEFAULT_VERSION,
  initContainerLookahead: false,
  strictHugepages: false,
  choice: 'kubelet',
});

// Placements of other versions, a cache: placements never change.
const otherVersions = new WeakMap<Placement, Placement>();

/** The same placement for this kubelet version; the same object each time. */
export function placementUnder(kubeletVersion: KubeletVersion, placement: Placement): Placement {
  if (placement.kubeletVersion === kubeletVersion) return placement;
  let other = otherVersions.get(placement);
  if (other?.kubeletVersion !== kubeletVersion) {
    other = Object.freeze({ ...placement, kubeletVersion });
    otherVersions.set(placement, other);
  }
  return other;
}

// The least value that the kubelet accepts.
const LEAST_MAX_NUMA_NODES = 8;

/** @throws ERR_INVALID_OPTION */
export function parseTopologyPolicy(value: unknown, name = 'policy'): TopologyManagerPolicy {
  return option.oneOf(value, name, TOPOLOGY_MANAGER_POLICIES);
}

/** @throws ERR_INVALID_OPTION */
export function parseTopologyPolicyOptions(
  options: unknown,
  defaults: Pick<Placement, 'preferClosest' | 'maxNumaNodes'> = DEFAULT_PLACEMENT,
): Pick<Placement, 'preferClosest' | 'maxNumaNodes'> {
  let { preferClosest, maxNumaNodes } = defaults;
  if (options === undefined) return { preferClosest, maxNumaNodes };
  const [closest, most] = ['prefer-closest-numa-nodes', 'max-allowable-numa-nodes'] as const;
  const values = checkOptions(options, [closest, most], 'topologyManagerPolicyOptions');
  if (values[closest] !== undefined) preferClosest = parseFlag(values[closest], closest);
  if (values[most] !== undefined) {
    const text = String(values[most]);
    maxNumaNodes = Number(text);
    if (!/^\d{1,9}$/.test(text) || maxNumaNodes < LEAST_MAX_NUMA_NODES) {
      invalidOption(most, values[most], `a whole number of NUMA nodes, at least ${LEAST_MAX_NUMA_NODES}`);
    }
  }
  return { preferClosest, maxNumaNodes };
}

function parseCpuPolicyOptions(options: unknown, defaults: Placement): Partial<Placement> {
  const values = checkOptions(options, [...Object.keys(CPU_OPTIONS), STRICT], 'cpuManagerPolicyOptions');
  const placement: { -readonly [Field in keyof Placement]?: Placement[Field] } = {};
  for (const [name, field] of CPU_OPTION_FIELDS) {
    placement[field] = values[name] === undefined ? defaults[field] : parseFlag(values[name], name);
  }
  return placement;
}

function failExclusive(names: readonly string[], why: string): never {
  throw new NumalignError('ERR_INVALID_OPTION', `${names.join(' and ')} exclude each other: ${why}`, {
    value: names,
    valid: 'at most one of them',
  });
}

function checkCombination(placement: Placement): void {
  for (const group of EXCLUSIVE_OPTIONS) {
    let count = 0;
    for (const name of group) if (placement[CPU_OPTIONS[name]]) count++;
    const set = count > 1 ? group.filter((name) => placement[CPU_OPTIONS[name]]) : [];
    if (count > 1) failExclusive(set, 'set one of them');
  }
  if (placement.alignBySocket && placement.topologyPolicy === 'single-numa-node') {
    failExclusive(['align-by-socket', 'single-numa-node'], 'a socket may have several NUMA nodes');
  }
}

const REQUEST_NAMES = { policy: 'policy', scope: 'scope' };

/**
 * The placement of `options`, with `defaults` for those left out.
 * @throws ERR_INVALID_OPTION for wrong values, and for combinations that the kubelet refuses
 */
export function parsePlacement(
  options: {
    readonly [Name in keyof RequestPlacementOptions | 'cpuManagerPolicy' | 'memoryManagerPolicy']?: unknown;
  },
  defaults: Placement = DEFAULT_PLACEMENT,
  names: { readonly policy: string; readonly scope: string } = REQUEST_NAMES,
): Placement {
  const { policy, scope, cpuManagerPolicy, cpuManagerPolicyOptions, topologyManagerPolicyOptions, smt } =
    options;
  const {
    memoryManagerPolicy,
    isolation,
    initContainerLookahead,
    strictHugepages,
    placement: choice,
  } = options;
  // Most requests leave out all of them.
  const isNothing =
    policy === undefined &&
    scope === undefined &&
    cpuManagerPolicy === undefined &&
    cpuManagerPolicyOptions === undefined &&
    memoryManagerPolicy === undefined &&
    topologyManagerPolicyOptions === undefined &&
    smt === undefined &&
    isolation === undefined &&
    initContainerLookahead === undefined &&
    strictHugepages === undefined &&
    choice === undefined;
  if (isNothing) return defaults;
  if (smt !== undefined) option.oneOf(smt, 'smt', ['hold-sibling']);
  const placement: Placement = {
    ...defaults,
    ...(policy !== undefined && { topologyPolicy: parseTopologyPolicy(policy, names.policy) }),
    ...(scope !== undefined && { scope: option.oneOf(scope, names.scope, ['container', 'pod']) }),
    ...(cpuManagerPolicy !== undefined && {
      cpuPolicy: option.oneOf(cpuManagerPolicy, 'cpuManagerPolicy', CPU_MANAGER_POLICIES),
    }),
    ...(memoryManagerPolicy !== undefined && {
      memoryPolicy: option.oneOf(memoryManagerPolicy, 'memoryManagerPolicy', [
        'None',
        'Static',
        'BestEffort',
      ]),
    }),
    ...(cpuManagerPolicyOptions !== undefined && parseCpuPolicyOptions(cpuManagerPolicyOptions, defaults)),
    ...parseTopologyPolicyOptions(topologyManagerPolicyOptions, defaults),
    ...(smt !== undefined && { holdSiblings: true }),
    ...(isolation !== undefined && {
      isolation: option.oneOf(isolation, 'isolation', ISOLATION_CHOICES),
    }),
    ...(initContainerLookahead !== undefined && {
      initContainerLookahead: option.flag(initContainerLookahead, 'initContainerLookahead'),
    }),
    ...(strictHugepages !== undefined && {
      strictHugepages: option.flag(strictHugepages, 'strictHugepages'),
    }),
    ...(choice !== undefined && { choice: option.oneOf(choice, 'placement', PLACEMENT_CHOICES) }),
  };
  checkCombination(placement);
  if (placement.cpuPolicy === 'none' && Object.keys(cpuManagerPolicyOptions ?? {}).length > 0) {
    invalidOption('cpuManagerPolicyOptions', cpuManagerPolicyOptions, 'left out with the CPU policy none');
  }
  if (placement.cpuPolicy === 'none' && placement.holdSiblings)
    invalidOption('smt', smt, 'left out with the CPU policy none');
  if (placement.cpuPolicy === 'none' && placement.isolation !== 'never')
    invalidOption('isolation', isolation, "'never' with the CPU policy none");
  return Object.freeze(placement);
}

// A cache: placements never change, and most requests have that of their manager.
const optionsOfPlacements = new WeakMap<Placement, Readonly<Record<string, boolean>>>();

/** The placement options in force, by the kubelet's names. */
export function placementOptions(placement: Placement): Readonly<Record<string, boolean>> {
  let options = optionsOfPlacements.get(placement);
  if (!options) {
    options = findOptions(placement);
    optionsOfPlacements.set(placement, options);
  }
  return options;
}

/** All options of a manager with this placement. */
export function managerPlacement(placement: Placement): Readonly<Required<PlacementOptions>> {
  const { cpuPolicy, memoryPolicy, topologyPolicy, preferClosest, maxNumaNodes, scope } = placement;
  const { initContainerLookahead, strictHugepages, choice } = placement;
  const most = maxNumaNodes === Number.POSITIVE_INFINITY ? {} : { 'max-allowable-numa-nodes': maxNumaNodes };
  const cpuOptions = CPU_OPTION_FIELDS.map(([name, field]) => [name, placement[field]]);
  return Object.freeze({
    cpuManagerPolicy: cpuPolicy,
    cpuManagerPolicyOptions: Object.freeze(cpuPolicy === 'none' ? {} : Object.fromEntries(cpuOptions)),
    memoryManagerPolicy: memoryPolicy,
    topologyManagerPolicy: topologyPolicy,
    topologyManagerPolicyOptions: Object.freeze({ 'prefer-closest-numa-nodes': preferClosest, ...most }),
    topologyManagerScope: scope,
    initContainerLookahead,
    strictHugepages,
    placement: choice,
  });
}

function findOptions(placement: Placement): Readonly<Record<string, boolean>> {
  const options: Record<string, boolean> = {};
  for (const [name, field] of CPU_OPTION_FIELDS) options[name] = placement[field];
  options['prefer-closest-numa-nodes'] = placement.preferClosest;
  options['hold-sibling'] = placement.holdSiblings;
  if (placement.choice === 'joint') options[JOINT_OPTION] = true;
  return Object.freeze(options);
}

/** The recorded placement of a grant, with `defaults` for what is not recorded. */
export function recordedPlacement(
  {
    policy,
    scope,
    options,
  }: { readonly policy: string; readonly scope: string; readonly options: Readonly<Record<string, boolean>> },
  defaults: Placement,
): Placement {
  const cpu = CPU_OPTION_FIELDS.map(([name, field]) => [field, options[name] ?? defaults[field]]);
  return Object.freeze({
    ...defaults,
    ...Object.fromEntries(cpu),
    cpuPolicy: 'static',
    topologyPolicy: parseTopologyPolicy(policy),
    scope: option.oneOf(scope, 'scope', ['container', 'pod']),
    preferClosest: options['prefer-closest-numa-nodes'] ?? defaults.preferClosest,
    holdSiblings: options['hold-sibling'] ?? defaults.holdSiblings,
    isolation: poolOf({ options }) === 'isolated' ? 'require' : 'never',
    choice: options[JOINT_OPTION] ? 'joint' : 'kubelet',
  });
}

/** Checks that the machine allows the placement. @throws ERR_INVALID_OPTION */
export function checkPlacement(placement: Placement, topology: Topology): void {
  const { alignBySocket, topologyPolicy, maxNumaNodes } = placement;
  const countNodesWithCpus = () => topology.nodes.filter((node) => !node.cpus.isEmpty).length;
  if (alignBySocket && topology.packages.length > countNodesWithCpus()) {
    invalidOption(
      'align-by-socket',
      true,
      `false: this machine has more sockets (${topology.packages.length}) than NUMA nodes`,
    );
  }
  const most = Math.min(maxNumaNodes, MAX_HINT_NODES);
  if (topologyPolicy !== 'none' && topology.nodes.length > most) {
    invalidOption(
      'the policy',
      topologyPolicy,
      `'none': this machine has ${topology.nodes.length} NUMA nodes, more than ${most}`,
    );
  }
}

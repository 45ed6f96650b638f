// Placement: how to place one request, by the options of its manager and of the request.
import { poolOf } from '../account/pod-holdings.js';
import { invalidOption } from '../base/check-options.js';
import { oncePer, oncePerLast } from '../base/collections/once-per.js';
import { NumalignError } from '../base/errors.js';
import { DEFAULT_VERSION, type KubeletVersion } from '../base/kubelet-features.js';
import { MAX_HINT_NODES } from '../machine/hint-masks.js';
import type { Topology } from '../machine/topology.js';
import { type FieldsOf, namesOf, type OptionTables, optionRows, readOption } from './option-table.js';
import { PLACEMENT_OPTIONS, type PlacementOptions } from './placement-options.js';
import type { MemoryTiers, NodePreference } from './policies.js';
import { CPU_POLICY_OPTIONS, EXCLUSIVE_OPTIONS, type TOPOLOGY_POLICY_OPTIONS } from './policy-options.js';

/** How to place one request: the options of its manager and its own, checked. */
export interface Placement
  extends FieldsOf<typeof PLACEMENT_OPTIONS>,
    FieldsOf<typeof CPU_POLICY_OPTIONS>,
    FieldsOf<typeof TOPOLOGY_POLICY_OPTIONS> {
  /** The machine's setting, which {@link placementUnder} fills in before a decision. */
  readonly kubeletVersion: KubeletVersion;
}

/** True if the policy rejects what it cannot align. */
export const isStrict = ({ topologyPolicy }: Placement): boolean =>
  topologyPolicy === 'restricted' || topologyPolicy === 'single-numa-node';

// The key in a grant's record that stands for the choice `joint`.
const JOINT_OPTION = 'joint-placement';

// With that, the key for the preference `spread`.
const SPREAD_OPTION = 'spread-placement';

// The keys for flags that are on record only if they are set.
const SET_OPTIONS = [
  ['even-memory', 'evenMemory'],
  ['restrict-to-cpu-numa-nodes', 'onlyCpuNodes'],
] as const;

// The keys for an allocation strategy.
const STRATEGY_OPTIONS = {
  'most-allocated': 'most-allocated-nodes',
  'least-allocated': 'least-allocated-nodes',
} as const;

const STRATEGIES = ['most-allocated', 'least-allocated'] as const;

const PREFERENCE_OF = { 'most-allocated': 'packed', 'least-allocated': 'spread' } as const;

/** Which of equally good NUMA nodes a joint choice takes. */
export const preferenceOf = ({ allocationStrategy, prefer }: Placement): NodePreference =>
  allocationStrategy === 'none' ? prefer : PREFERENCE_OF[allocationStrategy];

// The keys for a choice of cores.
const KIND_OPTIONS = {
  performance: 'performance-cores',
  efficiency: 'efficiency-cores',
  any: 'any-cores',
} as const;

// What the key for other memory than DRAM begins with: `memory-hbm-dram`.
const TIERS_OPTION = 'memory-';

const tiersText = (tiers: MemoryTiers) => (tiers === 'any' ? tiers : tiers.join('-'));

const NAMES = Object.keys(PLACEMENT_OPTIONS) as (keyof Options)[];
const ROWS = optionRows(PLACEMENT_OPTIONS);
const RECORDED_ROWS = ROWS.flatMap(([name, { field, recorded }]) =>
  recorded === false ? [] : [[recorded === true ? name : recorded, field as FlagField] as const],
);

/** The fields that are flags. */
type FlagField = {
  [Field in keyof Placement]: Placement[Field] extends boolean ? Field : never;
}[keyof Placement];

export const DEFAULT_PLACEMENT: Placement = Object.freeze({
  ...(Object.fromEntries(ROWS.map(([, row]) => [row.field, row.default])) as Omit<
    Placement,
    'kubeletVersion'
  >),
  kubeletVersion: DEFAULT_VERSION,
});

const withVersion = oncePerLast(
  (placement: Placement, kubeletVersion: KubeletVersion): Placement =>
    Object.freeze({ ...placement, kubeletVersion }),
);

/** The same placement for this kubelet version; the same object each time. */
export const placementUnder = (kubeletVersion: KubeletVersion, placement: Placement): Placement =>
  placement.kubeletVersion === kubeletVersion ? placement : withVersion(placement, kubeletVersion);

function failExclusive(names: readonly string[], why: string): never {
  throw new NumalignError('ERR_INVALID_OPTION', `${names.join(' and ')} exclude each other: ${why}`, {
    value: names,
    valid: 'at most one of them',
  });
}

function checkCombination(placement: Placement): void {
  for (const group of EXCLUSIVE_OPTIONS) {
    const set = group.filter((name) => placement[CPU_POLICY_OPTIONS[name].field]);
    if (set.length > 1) failExclusive(set, 'set one of them');
  }
  if (placement.alignBySocket && placement.topologyPolicy === 'single-numa-node') {
    failExclusive(['align-by-socket', 'single-numa-node'], 'a socket may have several NUMA nodes');
  }
}

type Options = { readonly [Name in keyof typeof PLACEMENT_OPTIONS]?: unknown };

/**
 * The placement of `options`, with `defaults` for those left out. `nameOf`: what errors call an
 * option.
 * @throws ERR_INVALID_OPTION for wrong values, and for combinations that the kubelet refuses
 */
export function parsePlacement(
  options: Options,
  defaults: Placement = DEFAULT_PLACEMENT,
  nameOf = (name: keyof Options): string => name,
): Placement {
  // Most requests leave out all of them.
  const given = NAMES.filter((name) => options[name] !== undefined);
  if (given.length === 0) return defaults;
  const fields: Record<string, unknown> = { ...defaults };
  for (const name of given) readOption(PLACEMENT_OPTIONS[name], options[name], nameOf(name), fields);
  const placement = fields as unknown as Placement;
  checkCombination(placement);
  if (placement.cpuPolicy === 'none') checkNoCpus(placement, options);
  return Object.freeze(placement);
}

function checkNoCpus(
  { holdSiblings, isolation }: Placement,
  { cpuManagerPolicyOptions: cpuOptions, smt, isolation: given }: Options,
): void {
  const why = 'with the CPU policy none';
  if (Object.keys(cpuOptions ?? {}).length > 0)
    invalidOption('cpuManagerPolicyOptions', cpuOptions, `left out ${why}`);
  if (holdSiblings) invalidOption('smt', smt, `left out ${why}`);
  if (isolation !== 'never') invalidOption('isolation', given, `'never' ${why}`);
}

/** The placement options in force, by the kubelet's names. */
export const placementOptions = oncePer((placement: Placement): Readonly<Record<string, boolean>> => {
  const options: Record<string, boolean> = {};
  for (const [name, field] of RECORDED_ROWS) options[name] = placement[field];
  if (placement.nodeChoice === 'joint') {
    options[JOINT_OPTION] = true;
    if (preferenceOf(placement) === 'spread') options[SPREAD_OPTION] = true;
  }
  for (const [name, field] of SET_OPTIONS) if (placement[field]) options[name] = true;
  const { allocationStrategy } = placement;
  if (allocationStrategy !== 'none') options[STRATEGY_OPTIONS[allocationStrategy]] = true;
  if (placement.coreKind !== 'best') options[KIND_OPTIONS[placement.coreKind]] = true;
  const tiers = tiersText(placement.memoryTiers);
  if (tiers !== 'dram') options[`${TIERS_OPTION}${tiers}`] = true;
  return Object.freeze(options);
});

/** All options of a manager with this placement. */
export function managerPlacement(placement: Placement): Readonly<Required<PlacementOptions>> {
  const options = writtenOptions(PLACEMENT_OPTIONS, namesOf(PLACEMENT_OPTIONS, 'manager'), placement);
  const isNone = placement.cpuPolicy === 'none';
  return Object.freeze({ ...options, ...(isNone && { cpuManagerPolicyOptions: Object.freeze({}) }) });
}

function writtenOptions(table: OptionTables, names: readonly string[], placement: Placement) {
  const entries = names.flatMap((name): [string, unknown][] => {
    const entry = table[name]!;
    if ('rows' in entry) return [[name, writtenOptions(entry.rows, Object.keys(entry.rows), placement)]];
    const value = placement[entry.field as keyof Placement];
    // No limit is no option.
    return value === Number.POSITIVE_INFINITY ? [] : [[name, value]];
  });
  return Object.freeze(Object.fromEntries(entries)) as Required<PlacementOptions>;
}

const RECORDED_KINDS = ['performance', 'efficiency', 'any'] as const;

/** The recorded placement of a grant, with `defaults` for what is not recorded. */
export function recordedPlacement(
  {
    policy,
    scope,
    options,
  }: { readonly policy: string; readonly scope: string; readonly options: Readonly<Record<string, boolean>> },
  defaults: Placement,
): Placement {
  const flags = [
    ...RECORDED_ROWS.map(([name, field]) => [field, options[name] ?? defaults[field]]),
    ...SET_OPTIONS.map(([name, field]) => [field, options[name] ?? false]),
  ];
  return Object.freeze({
    ...defaults,
    ...Object.fromEntries(flags),
    cpuPolicy: 'static',
    topologyPolicy: PLACEMENT_OPTIONS.policy.check(policy, 'policy'),
    scope: PLACEMENT_OPTIONS.scope.check(scope, 'scope'),
    isolation: poolOf({ options }) === 'isolated' ? 'require' : 'never',
    nodeChoice: options[JOINT_OPTION] ? 'joint' : 'kubelet',
    prefer: options[SPREAD_OPTION] ? 'spread' : 'packed',
    allocationStrategy: STRATEGIES.find((strategy) => options[STRATEGY_OPTIONS[strategy]]) ?? 'none',
    coreKind: RECORDED_KINDS.find((kind) => options[KIND_OPTIONS[kind]]) ?? 'best',
    memoryTiers: recordedTiers(options),
  });
}

function recordedTiers(options: Readonly<Record<string, boolean>>): MemoryTiers {
  const key = Object.keys(options).find((name) => name.startsWith(TIERS_OPTION));
  const { check, default: ordinary } = PLACEMENT_OPTIONS.memoryTiers;
  return key ? check(key.slice(TIERS_OPTION.length).replaceAll('-', ','), 'memoryTiers') : ordinary;
}

/** Checks that the machine allows the placement. @throws ERR_INVALID_OPTION */
export function checkPlacement(placement: Placement, topology: Topology): void {
  const { alignBySocket, topologyPolicy, maxNumaNodes, onlyCpuNodes } = placement;
  const countNodesWithCpus = () => topology.nodes.filter((node) => !node.cpus.isEmpty).length;
  if (alignBySocket && topology.packages.length > countNodesWithCpus()) {
    invalidOption(
      'align-by-socket',
      true,
      `false: this machine has more sockets (${topology.packages.length}) than NUMA nodes`,
    );
  }
  const most = Math.min(maxNumaNodes, MAX_HINT_NODES);
  const count = onlyCpuNodes ? countNodesWithCpus() : topology.nodes.length;
  if (topologyPolicy !== 'none' && count > most) {
    const nodes = onlyCpuNodes ? 'NUMA nodes with CPUs' : 'NUMA nodes';
    invalidOption(
      'the policy',
      topologyPolicy,
      `'none': this machine has ${count} ${nodes}, more than ${most}`,
    );
  }
}

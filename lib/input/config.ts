// Options as callers give them -> frozen Config. All public validation of options lives here and in request.ts.
import { resolve } from 'node:path';
import { ENFORCEMENT_LEVELS, type EnforcementLevel, poolOf } from '../account/assignments.js';
import { type BookedMemory, bookedOn } from '../account/booked-memory.js';
import type { EnforcementRequest } from '../account/levels.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { CpuSet } from '../machine/cpu-set.js';
import { MAX_HINT_NODES } from '../machine/hints.js';
import { Topology } from '../machine/topology.js';
import type { DeviceSelection } from './devices.js';
import { parseDuration } from './duration.js';
import { fromKubeletConfiguration } from './kubelet-configuration.js';
import { isMemoryType } from './memory-types.js';
import { parseRequests, type ResourceAmounts } from './pod-request.js';
import { parseQuantity, type Quantity, wholeValue } from './quantity.js';

/** The state folder of the whole machine. Any other makes a manager private. */
export const MACHINE_STATE_DIR = '/run/numalign';

/** The cgroup of the machine's folder. */
export const MACHINE_CGROUP_ROOT = '/numalign';

/** The policies of the Topology Manager, in the order of the core's enumerators. */
export const TOPOLOGY_MANAGER_POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;

/**
 * `none` asks no provider for hints; `best-effort` prefers the best hint; `restricted` admits only a preferred one; `single-numa-node` only one of a
 * single NUMA node.
 */
export type TopologyManagerPolicy = (typeof TOPOLOGY_MANAGER_POLICIES)[number];

/** Whether hints are merged for each container, or once for the whole pod. */
export type TopologyManagerScope = 'container' | 'pod';

/** Whether Guaranteed containers with whole CPUs get exclusive ones. */
export type CpuManagerPolicy = 'none' | 'static';

/**
 * Whether memory and hugepages of Guaranteed pods are booked on NUMA nodes. `BestEffort`, which the kubelet knows on Windows, decides as `Static` does, and
 * means that nobody counts on its being enforced.
 */
export type MemoryManagerPolicy = 'None' | 'Static' | 'BestEffort';

/** The modes of {@link RequestPlacementOptions.isolatedCpus}. */
export const ISOLATED_CPUS_CHOICES = ['never', 'prefer', 'require'] as const;
export type IsolatedCpusChoice = (typeof ISOLATED_CPUS_CHOICES)[number];

type Flag = boolean | 'true' | 'false';

/** Options of the static CPU policy, spelled as the kubelet spells them. Values may be booleans or their text. */
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
  /** The machine setting {@link MachineOptions.strictCPUReservation} by its kubelet name; not for a single request. */
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
}

/** Amounts kept for the system, as in a KubeletConfiguration; only `cpu` has a meaning: memory is reserved by NUMA node. */
export type ReservedAmounts = Readonly<Record<string, Quantity>>;

/** What is kept for the system on one NUMA node, as in a KubeletConfiguration. */
export interface ReservedMemory {
  readonly numaNode: number;
  /** By memory type, such as `{ memory: '1Gi', 'hugepages-2Mi': '64Mi' }`. */
  readonly limits: ResourceAmounts;
}

/** What a machine's users agree on: recorded with the state by the first opener, compared by every later one. */
export interface MachineOptions {
  /** The CPUs that numalign hands out or shares; null (the default at first): all online CPUs. */
  managedCPUs?: CpuSet | string | null;
  /** CPUs that are never exclusive; they stay in the shared pool unless `strictCPUReservation`. Default: none. */
  reservedSystemCPUs?: CpuSet | string;
  /**
   * The reserved CPUs by amount, where they are not listed: both amounts of `cpu` added, rounded up to whole CPUs, and chosen by best fit from all
   * managed ones that are not isolated.
   */
  systemReserved?: ReservedAmounts;
  kubeReserved?: ReservedAmounts;
  /** Keep the reserved CPUs out of the shared pool too (the kubelet's strict-cpu-reservation). Default: false. */
  strictCPUReservation?: boolean;
  /**
   * CPUs that are a pool of their own: never shared, and only for requests that ask for them ({@link RequestPlacementOptions.isolatedCpus}). null (the default
   * at first): those that the kernel isolates, as it tells each time (`isolcpus=`, `nohz_full=`, isolated partitions); of a simulated machine none. Those
   * of them that are reserved stay reserved.
   */
  isolatedCPUs?: CpuSet | string | null;
  /** Memory that is never granted. Default: none. */
  reservedMemory?: readonly ReservedMemory[];
  /**
   * The cgroup below which numalign makes its own, as a path in the hierarchy of cpusets, such as `/numalign`; nothing outside is ever touched. null: no cgroups are
   * used. Default at first: `/numalign` for the machine's folder, unless this process lives in a cgroup namespace of its own; null for a private folder.
   */
  cgroupRoot?: string | null;
}

/** Options of {@link openManager}. */
export interface ManagerOptions extends MachineOptions, PlacementOptions {
  /**
   * Default: /run/numalign; for a simulated machine memory alone. With another folder the manager is private and speaks only for those who
   * share that folder.
   */
  stateDir?: string;
  /** The machine; default: this one, discovered anew. */
  topology?: Topology;
  /**
   * A KubeletConfiguration document. What it says, and Kubernetes' defaults for what it leaves out, holds where the options beside it say
   * nothing.
   */
  kubeletConfiguration?: object;
  /** Devices by the name of their resource, as {@link Manager.registerDevices} takes them. */
  devices?: Readonly<Record<string, DeviceSelection>>;
  /** How long to wait for the state's lock, in milliseconds. Default: 10,000. */
  lockTimeoutMs?: number;
  /**
   * How often what is so is compared with what should be, and repaired (see {@link Manager.reconcile}), besides after every change: milliseconds, or a duration such
   * as `10s`; a tenth more or less. 0: only when it is told to. Default: 10 seconds.
   */
  cpuManagerReconcilePeriod?: number | string;
  /** This process runs in the shared pool where it has no grant: it leaves CPUs that become somebody's. Default: true. */
  sharedMember?: boolean;
  /** The strongest level of enforcement that grants aim at. Default: partition. */
  enforcement?: AimedLevel;
  /** A shared member that cannot be moved: `fail` (default) refuses the request, `report` grants all the same, at the level `recorded`, with a warning. */
  unmovableMembers?: 'fail' | 'report';
  /** Speak for the machine though a kubelet manages it too, and may give the same CPUs to others. Default: false. */
  besideKubelet?: boolean;
}

/** How one request is placed: {@link PlacementOptions} and what a request adds, checked. */
export interface Placement {
  readonly cpuPolicy: CpuManagerPolicy;
  readonly fullPhysicalCpusOnly: boolean;
  readonly distributeAcrossNuma: boolean;
  readonly alignBySocket: boolean;
  readonly distributeAcrossCores: boolean;
  readonly preferAlignByUncoreCache: boolean;
  /** The SMT siblings of the CPUs are held too, and nothing runs on them. */
  readonly holdSiblings: boolean;
  readonly isolatedCpus: IsolatedCpusChoice;
  readonly memoryPolicy: MemoryManagerPolicy;
  readonly topologyPolicy: TopologyManagerPolicy;
  readonly preferClosest: boolean;
  readonly maxNumaNodes: number;
  readonly scope: TopologyManagerScope;
}

/** Machine settings that an opener insists on; undefined where it takes what is recorded. */
export interface RequiredSettings {
  readonly managedCPUs: CpuSet | null | undefined;
  readonly reservedSystemCPUs: CpuSet | undefined;
  readonly strictCPUReservation: boolean | undefined;
  readonly isolatedCPUs: CpuSet | null | undefined;
  readonly reservedMemory: BookedMemory | undefined;
  readonly cgroupRoot: string | null | undefined;
}

/** Machine settings as an opener gives them: reserved CPUs perhaps by their number only, before they are chosen. */
export interface GivenSettings extends RequiredSettings {
  readonly reservedCount: number | undefined;
}

export interface Config {
  /** undefined: the machine's folder, or none for a simulated machine. */
  readonly stateDir: string | undefined;
  readonly topology: Topology | undefined;
  readonly settings: GivenSettings;
  readonly placement: Placement;
  readonly devices: Readonly<Record<string, DeviceSelection>>;
  readonly lockTimeoutMs: number;
  readonly reconcilePeriodMs: number;
  readonly sharedMember: boolean;
  readonly enforcement: EnforcementRequest;
  readonly besideKubelet: boolean;
}

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

const STRICT = 'strict-cpu-reservation';

// Options of which at most one may be set, as the kubelet refuses them.
const EXCLUSIVE_OPTIONS = [
  ['full-pcpus-only', 'distribute-cpus-across-cores'],
  ['distribute-cpus-across-numa', 'distribute-cpus-across-cores', 'prefer-align-cpus-by-uncorecache'],
] as const;

const DEFAULT_PLACEMENT: Placement = Object.freeze({
  cpuPolicy: 'static',
  fullPhysicalCpusOnly: false,
  distributeAcrossNuma: false,
  alignBySocket: false,
  distributeAcrossCores: false,
  preferAlignByUncoreCache: false,
  holdSiblings: false,
  isolatedCpus: 'never',
  memoryPolicy: 'Static',
  topologyPolicy: 'best-effort',
  preferClosest: false,
  maxNumaNodes: Number.POSITIVE_INFINITY,
  scope: 'container',
});

/** Levels that can be aimed at: whoever aims lower needs no numalign to keep others off. */
export const AIMED_LEVELS = [
  'members',
  'cpuset',
  'partition',
  'isolated',
] as const satisfies readonly EnforcementLevel[];
export type AimedLevel = (typeof AIMED_LEVELS)[number];

const DEFAULT_ENFORCEMENT: EnforcementRequest = {
  enforcement: 'partition',
  require: 'recorded',
  unmovableMembers: 'fail',
};

// The kubelet's own.
const RECONCILE_PERIOD = '10s';

// The kubelet's own limit, below which it does not let the option go.
const LEAST_MAX_NUMA_NODES = 8;

const MACHINE_OPTIONS = [
  'managedCPUs',
  'reservedSystemCPUs',
  'systemReserved',
  'kubeReserved',
  'strictCPUReservation',
  'isolatedCPUs',
  'reservedMemory',
  'cgroupRoot',
] as const;
const PLACEMENT_OPTIONS = [
  'cpuManagerPolicy',
  'cpuManagerPolicyOptions',
  'memoryManagerPolicy',
  'topologyManagerPolicy',
  'topologyManagerPolicyOptions',
  'topologyManagerScope',
] as const satisfies readonly (keyof PlacementOptions)[];
const MANAGER_OPTIONS = [
  ...MACHINE_OPTIONS,
  ...PLACEMENT_OPTIONS,
  'kubeletConfiguration',
  'stateDir',
  'topology',
  'devices',
  'lockTimeoutMs',
  'cpuManagerReconcilePeriod',
  'sharedMember',
  'enforcement',
  'unmovableMembers',
  'besideKubelet',
] as const;

function oneOf<T extends string>(name: string, value: unknown, valid: readonly T[]): T {
  if (valid.includes(value as T)) return value as T;
  return invalidOption(name, value, valid.map((option) => `'${option}'`).join(' or '));
}

// Texts as Go's strconv.ParseBool takes them, since the kubelet does.
function parseFlag(name: string, value: unknown): boolean {
  if (value === true || ['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value as string)) return true;
  if (value === false || ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(value as string)) return false;
  return invalidOption(name, value, 'true or false');
}

/** @throws ERR_INVALID_OPTION */
export function parseTopologyPolicy(value: unknown, name = 'policy'): TopologyManagerPolicy {
  return oneOf(name, value, TOPOLOGY_MANAGER_POLICIES);
}

/** @throws ERR_INVALID_OPTION */
export function parseTopologyPolicyOptions(
  options: unknown,
  defaults: Pick<Placement, 'preferClosest' | 'maxNumaNodes'> = DEFAULT_PLACEMENT,
): Pick<Placement, 'preferClosest' | 'maxNumaNodes'> {
  let { preferClosest, maxNumaNodes } = defaults;
  if (options === undefined) return { preferClosest, maxNumaNodes };
  const [closest, most] = ['prefer-closest-numa-nodes', 'max-allowable-numa-nodes'] as const;
  const given = checkOptions(options, [closest, most], 'topologyManagerPolicyOptions');
  if (given[closest] !== undefined) preferClosest = parseFlag(closest, given[closest]);
  if (given[most] !== undefined) {
    const text = String(given[most]);
    maxNumaNodes = Number(text);
    if (!/^\d{1,9}$/.test(text) || maxNumaNodes < LEAST_MAX_NUMA_NODES) {
      invalidOption(most, given[most], `a whole number of NUMA nodes, at least ${LEAST_MAX_NUMA_NODES}`);
    }
  }
  return { preferClosest, maxNumaNodes };
}

function parseCpuPolicyOptions(options: unknown, defaults: Placement): Partial<Placement> {
  const given = checkOptions(options, [...Object.keys(CPU_OPTIONS), STRICT], 'cpuManagerPolicyOptions');
  const parsed: { -readonly [Field in keyof Placement]?: Placement[Field] } = {};
  for (const [name, field] of CPU_OPTION_FIELDS) {
    parsed[field] = given[name] === undefined ? defaults[field] : parseFlag(name, given[name]);
  }
  return parsed;
}

function excluded(names: readonly string[], why: string): never {
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
    if (count > 1) excluded(set, 'set one of them');
  }
  if (placement.alignBySocket && placement.topologyPolicy === 'single-numa-node') {
    excluded(['align-by-socket', 'single-numa-node'], 'a socket may have several NUMA nodes');
  }
}

/** What a request may say of its placement; a manager's options are translated to it. */
export interface RequestPlacementOptions {
  /** The Topology Manager's policy. */
  policy?: TopologyManagerPolicy;
  scope?: TopologyManagerScope;
  cpuManagerPolicyOptions?: CpuManagerPolicyOptions;
  topologyManagerPolicyOptions?: TopologyManagerPolicyOptions;
  /** Hold the SMT siblings of the CPUs too: `cpus` are one thread a core, `held` are the others, on which nothing runs. */
  smt?: 'hold-sibling';
  /**
   * Isolated CPUs: `never` (default) takes none; `require` takes no others; `prefer` takes them where they will do for the whole pod, else others. The kernel balances
   * no load over them: several of them need threads that are placed one by one.
   */
  isolatedCpus?: IsolatedCpusChoice;
}

const REQUEST_NAMES = { policy: 'policy', scope: 'scope' };
// The same of a manager.
const MANAGER_NAMES = { policy: 'topologyManagerPolicy', scope: 'topologyManagerScope' };

const isLeftOut = (value: unknown) => value === undefined;

/** Placement options over `defaults`. @throws ERR_INVALID_OPTION for wrong values and options that exclude each other, as the kubelet refuses them. */
export function parsePlacement(
  given: { readonly [Name in keyof RequestPlacementOptions | 'cpuManagerPolicy' | 'memoryManagerPolicy']?: unknown },
  defaults: Placement = DEFAULT_PLACEMENT,
  names: { readonly policy: string; readonly scope: string } = REQUEST_NAMES,
): Placement {
  const { policy, scope, cpuManagerPolicy, cpuManagerPolicyOptions, topologyManagerPolicyOptions, smt } = given;
  const { memoryManagerPolicy, isolatedCpus } = given;
  // Most requests leave it all to the manager.
  const all = [policy, scope, cpuManagerPolicy, cpuManagerPolicyOptions, topologyManagerPolicyOptions];
  const isNothing = all.every(isLeftOut) && [smt, memoryManagerPolicy, isolatedCpus].every(isLeftOut);
  if (isNothing) return defaults;
  if (smt !== undefined) oneOf('smt', smt, ['hold-sibling']);
  const placement: Placement = {
    ...defaults,
    ...(policy !== undefined && { topologyPolicy: parseTopologyPolicy(policy, names.policy) }),
    ...(scope !== undefined && { scope: oneOf(names.scope, scope, ['container', 'pod']) }),
    ...(cpuManagerPolicy !== undefined && {
      cpuPolicy: oneOf('cpuManagerPolicy', cpuManagerPolicy, ['none', 'static']),
    }),
    ...(memoryManagerPolicy !== undefined && {
      memoryPolicy: oneOf('memoryManagerPolicy', memoryManagerPolicy, ['None', 'Static', 'BestEffort']),
    }),
    ...(cpuManagerPolicyOptions !== undefined && parseCpuPolicyOptions(cpuManagerPolicyOptions, defaults)),
    ...parseTopologyPolicyOptions(topologyManagerPolicyOptions, defaults),
    ...(smt !== undefined && { holdSiblings: true }),
    ...(isolatedCpus !== undefined && { isolatedCpus: oneOf('isolatedCpus', isolatedCpus, ISOLATED_CPUS_CHOICES) }),
  };
  checkCombination(placement);
  if (placement.cpuPolicy === 'none' && Object.keys(cpuManagerPolicyOptions ?? {}).length > 0) {
    invalidOption('cpuManagerPolicyOptions', cpuManagerPolicyOptions, 'left out with the CPU policy none');
  }
  if (placement.cpuPolicy === 'none' && placement.holdSiblings)
    invalidOption('smt', smt, 'left out with the CPU policy none');
  if (placement.cpuPolicy === 'none' && placement.isolatedCpus !== 'never')
    invalidOption('isolatedCpus', isolatedCpus, "'never' with the CPU policy none");
  return Object.freeze(placement);
}

/** The placement options in force, by the kubelet's names. */
export function placementOptions(placement: Placement): Record<string, boolean> {
  const options: Record<string, boolean> = {};
  for (const [name, field] of CPU_OPTION_FIELDS) options[name] = placement[field];
  options['prefer-closest-numa-nodes'] = placement.preferClosest;
  options['hold-sibling'] = placement.holdSiblings;
  return options;
}

/** What a grant was placed under, as far as it is on record; the rest from `defaults`. */
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
    scope: oneOf('scope', scope, ['container', 'pod']),
    preferClosest: options['prefer-closest-numa-nodes'] ?? defaults.preferClosest,
    holdSiblings: options['hold-sibling'] ?? defaults.holdSiblings,
    isolatedCpus: poolOf({ options }) === 'isolated' ? 'require' : 'never',
  });
}

/** Whether the machine allows such placement. @throws ERR_INVALID_OPTION */
export function checkPlacement(placement: Placement, topology: Topology): void {
  const { alignBySocket, topologyPolicy, maxNumaNodes } = placement;
  const withCpus = () => topology.nodes.filter((node) => !node.cpus.isEmpty).length;
  if (alignBySocket && topology.packages.length > withCpus()) {
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

function parseCpus(name: string, value: unknown): CpuSet | undefined {
  if (value === undefined || value instanceof CpuSet) return value;
  if (typeof value !== 'string') invalidOption(name, value, 'a CpuSet or a list such as "0-3,8"');
  return CpuSet.parse(value);
}

function parseBoolean(name: string, value: unknown): boolean | undefined {
  if (value === undefined || typeof value === 'boolean') return value;
  return invalidOption(name, value, 'true or false');
}

// The sum of what both reserve, in whole CPUs; undefined where neither says anything.
function parseReservedCount({ systemReserved, kubeReserved }: Record<string, unknown>): number | undefined {
  let sum: bigint | undefined;
  for (const [name, value] of Object.entries({ systemReserved, kubeReserved })) {
    if (value === undefined) continue;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      invalidOption(name, value, "amounts by resource, such as { cpu: '500m' }");
    }
    const { cpu } = value as Record<string, unknown>;
    if (cpu === undefined) continue;
    const amount = parseQuantity(cpu, `${name}.cpu`);
    if (amount < 0n) invalidOption(`${name}.cpu`, cpu, 'an amount of at least 0');
    sum = (sum ?? 0n) + amount;
  }
  return sum === undefined ? undefined : wholeValue(sum);
}

/** The machine settings among `options`. @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseSettings(options: Record<string, unknown>): GivenSettings {
  const reservedSystemCPUs = parseCpus('reservedSystemCPUs', options.reservedSystemCPUs);
  const reservedCount = parseReservedCount(options);
  return Object.freeze({
    managedCPUs: options.managedCPUs === null ? null : parseCpus('managedCPUs', options.managedCPUs),
    reservedSystemCPUs,
    // A list wins over amounts, as it does in the kubelet.
    reservedCount: reservedSystemCPUs === undefined ? reservedCount : undefined,
    strictCPUReservation: parseStrict(options),
    isolatedCPUs: options.isolatedCPUs === null ? null : parseCpus('isolatedCPUs', options.isolatedCPUs),
    reservedMemory: parseReservedMemory(options.reservedMemory),
    cgroupRoot: parseCgroupRoot(options.cgroupRoot),
  });
}

function parseCgroupRoot(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return value;
  const valid =
    'null, or an absolute path below the root of the hierarchy, without ., .. and empty parts, such as /numalign';
  if (typeof value !== 'string' || !/^(\/[^/\0\n]+)+$/.test(value)) return invalidOption('cgroupRoot', value, valid);
  return value.split('/').some((part) => part === '.' || part === '..')
    ? invalidOption('cgroupRoot', value, valid)
    : value;
}

/**
 * What is wanted of the enforcement of new grants; what is left out is not in the answer.
 * @throws ERR_INVALID_OPTION
 */
export function parseEnforcement({
  enforcement,
  require,
  unmovableMembers,
}: Record<string, unknown>): Partial<EnforcementRequest> {
  return {
    ...(enforcement !== undefined && { enforcement: oneOf('enforcement', enforcement, AIMED_LEVELS) }),
    ...(require !== undefined && { require: oneOf('require', require, ENFORCEMENT_LEVELS) }),
    ...(unmovableMembers !== undefined && {
      unmovableMembers: oneOf('unmovableMembers', unmovableMembers, ['fail', 'report']),
    }),
  };
}

function parseReservedMemory(value: unknown): BookedMemory | undefined {
  if (value === undefined) return undefined;
  const valid = "a list such as [{ numaNode: 0, limits: { memory: '1Gi' } }]";
  if (!Array.isArray(value)) return invalidOption('reservedMemory', value, valid);
  const reserved: Record<number, Record<string, number>> = {};
  for (const [i, item] of value.entries()) {
    const field = `reservedMemory[${i}]`;
    const { numaNode, limits } = checkOptions(item, ['numaNode', 'limits'], field);
    if (typeof numaNode !== 'number' || !Number.isInteger(numaNode) || numaNode < 0) {
      return invalidOption(`${field}.numaNode`, numaNode, 'the id of a NUMA node');
    }
    if (limits === undefined) return invalidOption(`${field}.limits`, limits, "amounts such as { memory: '1Gi' }");
    for (const [type, bytes] of Object.entries(parseRequests(limits, `${field}.limits`, invalidOption))) {
      if (!isMemoryType(type)) invalidOption(`${field}.limits`, type, "keyed by 'memory' or 'hugepages-<size>'");
      if (bookedOn(reserved, numaNode, type) > 0) invalidOption(`${field}.limits.${type}`, bytes, 'given once a node');
      if (bytes > 0) reserved[numaNode] = { ...reserved[numaNode], [type]: bytes };
    }
  }
  return Object.freeze(reserved);
}

function parseStrict({ strictCPUReservation, cpuManagerPolicyOptions }: Record<string, unknown>): boolean | undefined {
  const direct = parseBoolean('strictCPUReservation', strictCPUReservation);
  const given = (cpuManagerPolicyOptions as Record<string, unknown> | undefined)?.[STRICT];
  if (given === undefined) return direct;
  const strict = parseFlag(STRICT, given);
  if (direct !== undefined && direct !== strict) invalidOption(STRICT, given, 'what strictCPUReservation says');
  return strict;
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseMachineOptions(options: unknown): GivenSettings {
  return parseSettings(checkOptions(options, MACHINE_OPTIONS, 'the machine settings'));
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseConfig(options: ManagerOptions): Config {
  const own = checkOptions(options, MANAGER_OPTIONS, 'openManager');
  const given: Record<string, unknown> =
    own.kubeletConfiguration === undefined ? own : withKubeletConfiguration(own, own.kubeletConfiguration);
  const { stateDir, topology, devices = {}, lockTimeoutMs = 10_000 } = given;
  const isPath = typeof stateDir === 'string' && stateDir.startsWith('/') && !stateDir.includes('\0');
  if (stateDir !== undefined && !isPath) {
    invalidOption('stateDir', stateDir, 'an absolute path');
  }
  if (topology !== undefined && !(topology instanceof Topology)) {
    invalidOption('topology', topology, 'a Topology, as discover() gives it');
  }
  if (typeof lockTimeoutMs !== 'number' || !(lockTimeoutMs >= 0 && lockTimeoutMs <= 2 ** 31 - 1)) {
    invalidOption('lockTimeoutMs', lockTimeoutMs, 'a number of milliseconds from 0 to 2147483647');
  }
  if (!isObject(devices) || Symbol.iterator in devices) {
    invalidOption('devices', devices, "selections by resource, such as { 'example.com/nic': { class: '0200' } }");
  }
  return Object.freeze({
    stateDir: isPath ? resolve(stateDir) : undefined,
    topology,
    placement: parsePlacement(
      {
        cpuManagerPolicy: given.cpuManagerPolicy,
        cpuManagerPolicyOptions: given.cpuManagerPolicyOptions,
        memoryManagerPolicy: given.memoryManagerPolicy,
        policy: given.topologyManagerPolicy,
        topologyManagerPolicyOptions: given.topologyManagerPolicyOptions,
        scope: given.topologyManagerScope,
      },
      undefined,
      MANAGER_NAMES,
    ),
    settings: parseSettings(given),
    devices: { ...devices } as Config['devices'],
    lockTimeoutMs,
    reconcilePeriodMs: parseDuration('cpuManagerReconcilePeriod', given.cpuManagerReconcilePeriod ?? RECONCILE_PERIOD),
    sharedMember: parseBoolean('sharedMember', given.sharedMember) ?? true,
    enforcement: Object.freeze({ ...DEFAULT_ENFORCEMENT, ...parseEnforcement(given) }),
    besideKubelet: parseBoolean('besideKubelet', given.besideKubelet) ?? false,
  });
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;
const withoutUndefined = (options: object) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

// The document's options below those beside it, reserved amounts resource by resource.
function withKubeletConfiguration(own: Record<string, unknown>, document: unknown): Record<string, unknown> {
  const { cpuManagerPolicyOptions, ...kubelet } = fromKubeletConfiguration(document);
  const { [STRICT]: strict, ...cpuOptions } = cpuManagerPolicyOptions;
  const given = withoutUndefined(own);
  const below: Record<string, unknown> = { ...kubelet, cpuManagerPolicyOptions: cpuOptions };

  // A machine setting under two names.
  const givenOptions = isObject(given.cpuManagerPolicyOptions) ? withoutUndefined(given.cpuManagerPolicyOptions) : {};
  if (strict !== undefined && !('strictCPUReservation' in given) && !(STRICT in givenOptions)) {
    if ((given.cpuManagerPolicy ?? kubelet.cpuManagerPolicy) === 'none') {
      invalidOption(STRICT, strict, 'left out with the CPU policy none');
    }
    below.strictCPUReservation = parseFlag(STRICT, strict);
  }
  for (const name of ['systemReserved', 'kubeReserved'] as const) {
    if (!isObject(given[name])) continue;
    const amounts = withoutUndefined(given[name]);
    given[name] = { ...kubelet[name], ...amounts };
    // An amount of CPUs beside the document weighs more than the list in it.
    if ('cpu' in amounts) delete below.reservedSystemCPUs;
  }
  // For the kubelet none is the default.
  const period = kubelet.cpuManagerReconcilePeriod;
  if (period !== undefined && parseDuration('cpuManagerReconcilePeriod', period) === 0) {
    delete below.cpuManagerReconcilePeriod;
  }
  const names = [...MACHINE_OPTIONS, ...PLACEMENT_OPTIONS, 'cpuManagerReconcilePeriod'] as readonly string[];
  return { ...Object.fromEntries(Object.entries(below).filter(([name]) => names.includes(name))), ...given };
}

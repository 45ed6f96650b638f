// The options that a machine's users agree on.
import { type BookedMemory, bookedOn } from '../account/booked-memory.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import {
  FEATURE_GATES,
  type FeatureGates,
  KUBELET_VERSIONS,
  type KubeletVersion,
} from '../base/kubelet-features.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { parseRequests, type ResourceAmounts } from './pods/resource-amounts.js';
import { isMemoryType } from './values/memory-types.js';
import { option, parseCpus, parseFlag } from './values/option-values.js';
import { parseQuantity, type Quantity, wholeValue } from './values/quantity.js';

/**
 * Amounts kept for the system, as in a KubeletConfiguration; only `cpu` has a meaning: memory is
 * reserved by NUMA node.
 */
export type ReservedAmounts = Readonly<Record<string, Quantity>>;

/** What is kept for the system on one NUMA node, as in a KubeletConfiguration. */
export interface ReservedMemory {
  readonly numaNode: number;
  /** By memory type, such as `{ memory: '1Gi', 'hugepages-2Mi': '64Mi' }`. */
  readonly limits: ResourceAmounts;
}

/**
 * What a machine's users agree on: recorded with the state by the first opener, compared by every
 * later one.
 */
export interface MachineOptions {
  /** The CPUs that numalign hands out or shares; null (the default at first): all online CPUs. */
  managedCPUs?: CpuSet | string | null;
  /**
   * CPUs that are never exclusive; they stay in the shared pool unless `strictCPUReservation`.
   * Default: none.
   */
  reservedSystemCPUs?: CpuSet | string;
  /**
   * The reserved CPUs by amount, where they are not listed: both amounts of `cpu` added, rounded up
   * to whole CPUs, and chosen by best fit from all managed ones that are not isolated.
   */
  systemReserved?: ReservedAmounts;
  kubeReserved?: ReservedAmounts;
  /**
   * Keep the reserved CPUs out of the shared pool too (the kubelet's strict-cpu-reservation).
   * Default: false.
   */
  strictCPUReservation?: boolean;
  /**
   * CPUs that are a pool of their own: never shared, and only for requests that ask for them
   * ({@link RequestPlacementOptions.isolation}). null (the default at first): those that the
   * kernel isolates, as it tells each time (`isolcpus=`, `nohz_full=`, isolated partitions); of a
   * simulated machine none. Those of them that are reserved stay reserved.
   */
  isolatedCPUs?: CpuSet | string | null;
  /** Memory that is never granted. Default: none. */
  reservedMemory?: readonly ReservedMemory[];
  /**
   * The cgroup below which numalign makes its own, as a path in the hierarchy of cpusets, such as
   * `/numalign`; nothing outside is ever touched. null: no cgroups are used. Default at first:
   * `/numalign` for the machine's folder, unless this process lives in a cgroup namespace of its
   * own; null for a private folder.
   */
  cgroupRoot?: string | null;
  /**
   * The kubelet whose decisions are followed. Default at first: v1.36; a state that was written
   * before there was such a setting follows v1.32.
   */
  kubeletVersion?: KubeletVersion;
  /**
   * Feature gates by the kubelet's names; those left out stay as they are. Default at first, and
   * with another version: those of the kubelet of that version. v1.32 has none of them.
   * `PodLevelResourceManagers` needs `PodLevelResources`.
   */
  featureGates?: Partial<FeatureGates>;
}

/** Machine settings that an opener insists on; undefined where it takes what is recorded. */
export interface RequiredSettings {
  readonly managedCPUs: CpuSet | null | undefined;
  readonly reservedSystemCPUs: CpuSet | undefined;
  readonly strictCPUReservation: boolean | undefined;
  readonly isolatedCPUs: CpuSet | null | undefined;
  readonly reservedMemory: BookedMemory | undefined;
  readonly cgroupRoot: string | null | undefined;
  readonly kubeletVersion: KubeletVersion | undefined;
  readonly featureGates: FeatureGates | undefined;
}

/**
 * Machine settings as an opener gives them: reserved CPUs perhaps by their number only, before they
 * are chosen, and of the feature gates perhaps some.
 */
export interface GivenSettings extends Omit<RequiredSettings, 'featureGates'> {
  readonly reservedCount: number | undefined;
  readonly featureGates: Partial<FeatureGates> | undefined;
}

export const STRICT = 'strict-cpu-reservation';

export const MACHINE_OPTIONS = [
  'managedCPUs',
  'reservedSystemCPUs',
  'systemReserved',
  'kubeReserved',
  'strictCPUReservation',
  'isolatedCPUs',
  'reservedMemory',
  'cgroupRoot',
  'kubeletVersion',
  'featureGates',
] as const;

// The sum of what both reserve, in whole CPUs; undefined where neither says anything.
function parseReservedCount({ systemReserved, kubeReserved }: Record<string, unknown>): number | undefined {
  let sum: bigint | undefined;
  for (const [name, value] of Object.entries({ systemReserved, kubeReserved })) {
    if (value === undefined) continue;
    const { cpu } = option.object(value, name, "amounts by resource, such as { cpu: '500m' }");
    if (cpu === undefined) continue;
    const amount = parseQuantity(cpu, `${name}.cpu`);
    if (amount < 0n) invalidOption(`${name}.cpu`, cpu, 'an amount of at least 0');
    sum = (sum ?? 0n) + amount;
  }
  return sum === undefined ? undefined : wholeValue(sum);
}

const cpusOrNull = (value: unknown, name: string) =>
  value === null ? null : option.optional(value, name, parseCpus);

/** The machine settings among `options`. @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseSettings(options: Record<string, unknown>): GivenSettings {
  const reservedSystemCPUs = option.optional(options.reservedSystemCPUs, 'reservedSystemCPUs', parseCpus);
  const reservedCount = parseReservedCount(options);
  return Object.freeze({
    managedCPUs: cpusOrNull(options.managedCPUs, 'managedCPUs'),
    reservedSystemCPUs,
    // A list wins over amounts, as it does in the kubelet.
    reservedCount: reservedSystemCPUs === undefined ? reservedCount : undefined,
    strictCPUReservation: parseStrict(options),
    isolatedCPUs: cpusOrNull(options.isolatedCPUs, 'isolatedCPUs'),
    reservedMemory: parseReservedMemory(options.reservedMemory),
    cgroupRoot: parseCgroupRoot(options.cgroupRoot),
    kubeletVersion: option.optional(options.kubeletVersion, 'kubeletVersion', (value, name) =>
      option.oneOf(value, name, KUBELET_VERSIONS),
    ),
    featureGates: option.optional(options.featureGates, 'featureGates', parseGates),
  });
}

function parseGates(value: unknown, name: string): Partial<FeatureGates> {
  const given = Object.entries(checkOptions(value, FEATURE_GATES, name));
  const gates = given.filter(([, flag]) => flag !== undefined);
  return Object.freeze(
    Object.fromEntries(gates.map(([gate, flag]) => [gate, option.flag(flag, `${name}.${gate}`)])),
  );
}

function parseCgroupRoot(value: unknown): string | null | undefined {
  if (value === undefined || value === null) return value;
  const valid =
    'null, or an absolute path below the root of the hierarchy, without ., .. and empty parts, such as /numalign';
  if (typeof value !== 'string' || !/^(\/[^/\0\n]+)+$/.test(value))
    return invalidOption('cgroupRoot', value, valid);
  return value.split('/').some((part) => part === '.' || part === '..')
    ? invalidOption('cgroupRoot', value, valid)
    : value;
}

function parseReservedMemory(value: unknown): BookedMemory | undefined {
  if (value === undefined) return undefined;
  const valid = "a list such as [{ numaNode: 0, limits: { memory: '1Gi' } }]";
  const reserved: Record<number, Record<string, number>> = {};
  for (const [i, item] of option.list(value, 'reservedMemory', valid).entries()) {
    const field = `reservedMemory[${i}]`;
    const { numaNode, limits } = checkOptions(item, ['numaNode', 'limits'], field);
    if (typeof numaNode !== 'number' || !Number.isInteger(numaNode) || numaNode < 0) {
      return invalidOption(`${field}.numaNode`, numaNode, 'the id of a NUMA node');
    }
    if (limits === undefined)
      return invalidOption(`${field}.limits`, limits, "amounts such as { memory: '1Gi' }");
    for (const [type, bytes] of Object.entries(parseRequests(limits, `${field}.limits`, invalidOption))) {
      if (!isMemoryType(type))
        invalidOption(`${field}.limits`, type, "keyed by 'memory' or 'hugepages-<size>'");
      if (bookedOn(reserved, numaNode, type) > 0)
        invalidOption(`${field}.limits.${type}`, bytes, 'given once a node');
      if (bytes > 0) reserved[numaNode] = { ...reserved[numaNode], [type]: bytes };
    }
  }
  return Object.freeze(reserved);
}

function parseStrict({
  strictCPUReservation,
  cpuManagerPolicyOptions,
}: Record<string, unknown>): boolean | undefined {
  const direct = option.optional(strictCPUReservation, 'strictCPUReservation', option.flag);
  const given = (cpuManagerPolicyOptions as Record<string, unknown> | undefined)?.[STRICT];
  if (given === undefined) return direct;
  const strict = parseFlag(given, STRICT);
  if (direct !== undefined && direct !== strict)
    invalidOption(STRICT, given, 'what strictCPUReservation says');
  return strict;
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseMachineOptions(options: unknown): GivenSettings {
  return parseSettings(checkOptions(options, MACHINE_OPTIONS, 'the machine settings'));
}

// The settings that all users of a machine share.
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
 * Reserved amounts by resource, as in a KubeletConfiguration. Only `cpu` counts; `reservedMemory`
 * reserves memory, by NUMA node.
 */
export type ReservedAmounts = Readonly<Record<string, Quantity>>;

/** Memory that is reserved on one NUMA node, as in a KubeletConfiguration. */
export interface ReservedMemory {
  /** The id of the NUMA node. */
  readonly numaNode: number;
  /** Amounts by memory type, such as `{ memory: '1Gi', 'hugepages-2Mi': '64Mi' }`. */
  readonly limits: ResourceAmounts;
}

/**
 * The settings that all users of a machine share. The first manager that opens the state records
 * them. A later manager that names another value gets ERR_CONFIG_CONFLICT; one that leaves an
 * option out takes the recorded value. {@link Manager.configure} and `numalign configure` change
 * them for all. Settings and grants never empty the shared pool.
 */
export interface MachineOptions {
  /**
   * The CPUs that numalign grants or shares. null: all online CPUs.
   * @default null
   */
  managedCPUs?: CpuSet | string | null;
  /**
   * CPUs that are never exclusive. They stay in the shared pool, unless `strictCPUReservation` is
   * set.
   * @default none
   */
  reservedSystemCPUs?: CpuSet | string;
  /**
   * Reserves CPUs by amount, such as `{ cpu: '500m' }`: the sum with `kubeReserved`, rounded up to
   * whole CPUs. numalign chooses them by best fit among the managed CPUs that are not isolated. A
   * list of `reservedSystemCPUs` takes precedence. Other resources are ignored.
   * @default none
   */
  systemReserved?: ReservedAmounts;
  /**
   * Reserves CPUs by amount, added to `systemReserved`.
   * @default none
   */
  kubeReserved?: ReservedAmounts;
  /**
   * Keeps the reserved CPUs out of the shared pool too, like the kubelet's
   * `strict-cpu-reservation`. The shared pool must have another CPU, else ERR_CONFIG_CONFLICT.
   * @default false
   */
  strictCPUReservation?: boolean;
  /**
   * CPUs that are never shared. Only requests with `isolation` get them. null: the CPUs that the
   * kernel isolates at the time (`isolcpus=`, `nohz_full=`, isolated partitions); none on a
   * simulated machine. Reserved CPUs among them stay reserved. See docs/isolated-cpus.md.
   * @default null
   */
  isolatedCPUs?: CpuSet | string | null;
  /**
   * Memory that is never granted, such as `[{ numaNode: 0, limits: { memory: '1Gi' } }]`. Name each
   * type at most once for a node.
   * @default none
   */
  reservedMemory?: readonly ReservedMemory[];
  /**
   * The cgroup below which numalign makes its cgroups, as an absolute path in the cpuset hierarchy.
   * numalign touches nothing outside. Partitions need it directly below the root of the hierarchy
   * or below a partition. null: no cgroups. It cannot change while CPUs are exclusive
   * (ERR_CONFIG_CONFLICT). If others than root can write the state folder, processes of root use
   * the recorded value only if it is their own option, the one that a process of root has passed or
   * configured since boot (`/run/numalign-root`), or the default; otherwise only masks. They then
   * move no process of a cgroup outside it with the grant that the cgroup owns (ERR_ENFORCEMENT).
   * @default `/numalign` for the machine's state folder; null with another `stateDir` or in a
   *   cgroup namespace
   */
  cgroupRoot?: string | null;
  /**
   * The kubelet version whose decisions numalign follows, see docs/differences.md. A state older
   * than this setting follows v1.32.
   * @default `v1.36`
   */
  kubeletVersion?: KubeletVersion;
  /**
   * Feature gates by the kubelet's names: `PodLevelResources`, `PodLevelResourceManagers` (needs
   * the first one), `DRAExtendedResource`. Gates that you leave out stay as they are; a change of
   * `kubeletVersion` resets them to its defaults. v1.32 has none of them.
   * @default `true`, `false`, `true`; with v1.32 all `false`
   */
  featureGates?: Partial<FeatureGates>;
}

/** The machine settings that an opener requires; undefined to take the recorded value. */
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
 * The machine settings among an opener's options. Reserved CPUs may be a number, from which
 * numalign chooses CPUs later. Feature gates may be incomplete.
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

// The sum of both amounts in whole CPUs; undefined without any.
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
    // A list takes precedence over amounts, as in the kubelet.
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
  const entries = Object.entries(checkOptions(value, FEATURE_GATES, name));
  const gates = entries.filter(([, flag]) => flag !== undefined);
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
        invalidOption(`${field}.limits.${type}`, bytes, 'given once for each node');
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
  const policyOption = (cpuManagerPolicyOptions as Record<string, unknown> | undefined)?.[STRICT];
  if (policyOption === undefined) return direct;
  const strict = parseFlag(policyOption, STRICT);
  if (direct !== undefined && direct !== strict)
    invalidOption(STRICT, policyOption, `the same as strictCPUReservation, which is ${direct}`);
  return strict;
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseMachineOptions(options: unknown): GivenSettings {
  return parseSettings(checkOptions(options, MACHINE_OPTIONS, 'the machine settings'));
}

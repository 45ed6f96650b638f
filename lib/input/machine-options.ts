// The settings that all users of a machine share.
import { type BookedMemory, bookedOn, NOTHING_BOOKED } from '../account/booked-memory.js';
import { checkOptions, invalidOption } from '../base/check-options.js';
import {
  DEFAULT_GATES,
  DEFAULT_VERSION,
  FEATURE_GATES,
  type FeatureGates,
  KUBELET_VERSIONS,
} from '../base/kubelet-features.js';
import { CpuSet } from '../machine/cpu-set.js';
import { type Check, FLAG, machineRow, type OptionsOf, oneOf, type SettingFlag } from './option-table.js';
import { parseRequests, type ResourceAmounts } from './pods/resource-amounts.js';
import { isMemoryType } from './values/memory-types.js';
import { option, parseCpus } from './values/option-values.js';
import { parseQuantity, type Quantity } from './values/quantity.js';

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

export const STRICT = 'strict-cpu-reservation';

const CPUS: Check<CpuSet | string, CpuSet> = parseCpus;

const CPUS_OR_NULL: Check<CpuSet | string | null, CpuSet | null> = (value, name) =>
  option.orNull(value, name, parseCpus);

// Milli-CPUs; undefined if the amounts do not mention them.
const RESERVED: Check<ReservedAmounts, bigint | undefined> = (value, name) => {
  const { cpu } = option.object(value, name, "amounts by resource, such as { cpu: '500m' }");
  if (cpu === undefined) return undefined;
  const amount = parseQuantity(cpu, `${name}.cpu`);
  return amount >= 0n ? amount : invalidOption(`${name}.cpu`, cpu, 'an amount of at least 0');
};

const GATES: Check<Partial<FeatureGates>, Partial<FeatureGates>> = (value, name) => {
  const entries = Object.entries(checkOptions(value, FEATURE_GATES, name));
  const gates = entries.filter(([, flag]) => flag !== undefined);
  return Object.freeze(
    Object.fromEntries(gates.map(([gate, flag]) => [gate, option.flag(flag, `${name}.${gate}`)])),
  );
};

const CGROUP_ROOT: Check<string | null, string | null> = (value, name) => {
  if (value === null) return null;
  const valid =
    'null, or an absolute path below the root of the hierarchy, without ., .. and empty parts, such as /numalign';
  const path = option.matching(value, name, /^(\/[^/\0\n]+)+$/, valid);
  return path.split('/').some((part) => part === '.' || part === '..')
    ? invalidOption(name, value, valid)
    : path;
};

const RESERVED_MEMORY: Check<readonly ReservedMemory[], BookedMemory> = (value, name) => {
  const valid = "a list such as [{ numaNode: 0, limits: { memory: '1Gi' } }]";
  const reserved: Record<number, Record<string, number>> = {};
  for (const [i, item] of option.list(value, name, valid).entries()) {
    const field = `${name}[${i}]`;
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
};

export const MACHINE_OPTIONS = {
  /**
   * The CPUs that numalign grants or shares. null: all online CPUs.
   * @default null
   */
  managedCPUs: machineRow({
    check: CPUS_OR_NULL,
    default: null,
    kubelet: null,
    flag: {
      usage: '--managed <list>',
      help: 'CPUs that numalign grants or shares',
      configure: '; "all": every online CPU',
      configureNull: 'all',
    },
  }),
  /**
   * CPUs that are never exclusive. They stay in the shared pool, unless `strictCPUReservation` is
   * set.
   * @default none
   */
  reservedSystemCPUs: machineRow({
    check: CPUS,
    default: CpuSet.EMPTY,
    kubelet: {
      shape: 'text',
      note: '`static` does not require a reserved CPU, since numalign never empties the shared pool.',
    },
    flag: {
      usage: '--reserved <list>',
      help: 'CPUs that are never exclusive',
      configure: '; "none": no CPU',
    },
  }),
  /**
   * Reserves CPUs by amount, such as `{ cpu: '500m' }`: the sum with `kubeReserved`, rounded up to
   * whole CPUs. numalign chooses them by best fit among the managed CPUs that are not isolated. A
   * list of `reservedSystemCPUs` takes precedence. Other resources are ignored.
   * @default none
   */
  systemReserved: machineRow({
    check: RESERVED,
    default: undefined,
    kubelet: { shape: 'amounts' },
    flag: null,
  }),
  /**
   * Reserves CPUs by amount, added to `systemReserved`.
   * @default none
   */
  kubeReserved: machineRow({
    check: RESERVED,
    default: undefined,
    kubelet: { shape: 'amounts' },
    flag: null,
  }),
  /**
   * Keeps the reserved CPUs out of the shared pool too, like the kubelet's
   * `strict-cpu-reservation`. The shared pool must have another CPU, else ERR_CONFIG_CONFLICT.
   * @default false
   */
  strictCPUReservation: machineRow({
    check: FLAG,
    default: false,
    kubelet: null,
    flag: { usage: '--strict', help: 'keep the reserved CPUs out of the shared pool too' },
  }),
  /**
   * CPUs that are never shared. Only requests with `isolation` get them. null: the CPUs that the
   * kernel isolates at the time (`isolcpus=`, `nohz_full=`, isolated partitions); none on a
   * simulated machine. Reserved CPUs among them stay reserved. See docs/isolated-cpus.md.
   * @default null
   */
  isolatedCPUs: machineRow({
    check: CPUS_OR_NULL,
    default: null,
    kubelet: null,
    flag: {
      usage: '--isolated <list>',
      help: 'CPUs that are never shared, and granted only on request',
      configure: '; "kernel": those that the kernel isolates; "none": no CPU',
      configureNull: 'kernel',
    },
  }),
  /**
   * Memory that is never granted, such as `[{ numaNode: 0, limits: { memory: '1Gi' } }]`. Name each
   * type at most once for a node.
   * @default none
   */
  reservedMemory: machineRow({
    check: RESERVED_MEMORY,
    default: NOTHING_BOOKED,
    kubelet: { shape: 'list' },
    flag: {
      usage: '--reserved-memory <node:type=quantity>',
      help: 'memory that is never granted, may be repeated; "none": none',
    },
  }),
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
  cgroupRoot: machineRow({
    check: CGROUP_ROOT,
    default: null,
    kubelet: null,
    flag: {
      usage: '--cgroup-root <path>',
      help: 'the cgroup below which grants get theirs; "none": no cgroups',
      configure: '; cannot change while CPUs are exclusive',
      nullWord: 'none',
    },
  }),
  /**
   * The kubelet version whose decisions numalign follows, see docs/differences.md. A state older
   * than this setting follows v1.32.
   * @default `v1.37`
   */
  kubeletVersion: machineRow({
    check: oneOf(KUBELET_VERSIONS),
    default: DEFAULT_VERSION,
    kubelet: null,
    flag: { usage: '--kubelet-version <version>', help: 'decide as this version of the kubelet' },
  }),
  /**
   * Feature gates by the kubelet's names: `PodLevelResources`, `PodLevelResourceManagers` (needs
   * the first one), `DRAExtendedResource`. Gates that you leave out stay as they are; a change of
   * `kubeletVersion` resets them to its defaults. v1.32 has none of them.
   * @default `true`, `false`, `true`; with v1.32 all `false`
   */
  featureGates: machineRow({
    check: GATES,
    default: DEFAULT_GATES[DEFAULT_VERSION],
    kubelet: {
      shape: 'gates',
      note: 'Gates that it leaves out are those of the kubelet version; other ones are ignored, such as `InPlacePodVerticalScalingExclusiveCPUs`: {@link Grant.resize} needs none.',
    },
    flag: {
      usage: '--feature-gates <name=bool,...>',
      help: 'feature gates of that kubelet; may be repeated',
    },
  }),
};

/**
 * The settings that all users of a machine share. The first manager that opens the state records
 * them. A later manager that names another value gets ERR_CONFIG_CONFLICT; one that leaves an
 * option out takes the recorded value. {@link Manager.configure} and `numalign configure` change
 * them for all. Settings and grants never empty the shared pool.
 */
export interface MachineOptions extends OptionsOf<typeof MACHINE_OPTIONS> {}

/** The flag of the commands for a setting of the machine. */
export interface MachineFlag extends SettingFlag {
  /** All that it takes, if that are words. */
  readonly values?: readonly string[];
}

/** The flags of the commands, by the setting of the machine. */
export const MACHINE_FLAGS: Readonly<Record<string, MachineFlag>> = Object.fromEntries(
  Object.entries(MACHINE_OPTIONS).flatMap(
    ([
      name,
      {
        flag,
        check: { values },
      },
    ]) => (flag ? [[name, values ? { ...flag, values } : flag]] : []),
  ),
);

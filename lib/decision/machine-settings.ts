// The machine's settings: chosen from an opener's options, checked against the machine, and
// compared with the record. Pure.
import { type Assignments, emptyAssignments, type MachineSettings } from '../account/assignments.js';
import { type BookedMemory, bookedOn } from '../account/booked-memory.js';
import {
  type CpuSnapshot,
  exclusiveCpus,
  grantableCpus,
  isolatedPool,
  sharedPool,
  universe,
} from '../account/pools.js';
import { invalidOption } from '../base/check-options.js';
import { NumalignError } from '../base/errors.js';
import { DEFAULT_GATES, type FeatureGates, type KubeletVersion } from '../base/kubelet-features.js';
import { cpusNamed } from '../base/text/cpus-named.js';
import type { Config } from '../input/config.js';
import { type GivenSettings, INITIAL_SETTINGS, type RequiredSettings } from '../input/given-settings.js';
import { placementUnder } from '../input/placement.js';
import { commandIn } from '../input/values/machine-folder.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { slowestFor } from './cpus/core-kinds.js';
import { takeNearFirst } from './cpus/cpu-manager.js';
import { totalOn } from './memory/memory-tables.js';

export const DEFAULT_SETTINGS: MachineSettings = { ...INITIAL_SETTINGS, simulated: false, unknown: {} };

/** The options of an opener that settings follow from. */
type Options = Pick<Config, 'settings' | 'placement'>;

/** The agreed settings in force on the machine. */
export interface Settings {
  /** The online CPUs that numalign grants or shares. */
  readonly managedCPUs: CpuSet;
  /** CPUs that are never exclusive, online or not. */
  readonly reservedSystemCPUs: CpuSet;
  /** Whether the reserved CPUs are kept out of the shared pool too. */
  readonly strictCPUReservation: boolean;
  /** The managed CPUs of the isolated pool, granted or not. */
  readonly isolatedCPUs: CpuSet;
  /** Bytes by NUMA node and memory type. */
  readonly reservedMemory: BookedMemory;
  /**
   * The cgroup below which numalign makes its own, as a path in the cpuset hierarchy; null:
   * numalign uses no cgroups.
   */
  readonly cgroupRoot: string | null;
  /** The kubelet version whose decisions numalign follows. */
  readonly kubeletVersion: KubeletVersion;
  /** The gates that matter here, by the kubelet's names. */
  readonly featureGates: FeatureGates;
}

/** The recorded settings as they apply to the machine now. */
export function settingsNow(settings: MachineSettings, now: CpuSnapshot): Settings {
  return {
    managedCPUs: universe(settings, now),
    reservedSystemCPUs: settings.reservedSystemCPUs,
    strictCPUReservation: settings.strictCPUReservation,
    isolatedCPUs: isolatedPool(settings, now),
    reservedMemory: settings.reservedMemory,
    cgroupRoot: settings.cgroupRoot,
    kubeletVersion: settings.kubeletVersion,
    featureGates: settings.featureGates,
  };
}

/** Replaces settings with the required ones. */
export function applySettings(settings: MachineSettings, required: RequiredSettings): MachineSettings {
  const changes = Object.entries(required).filter(([, value]) => value !== undefined);
  return { ...settings, ...Object.fromEntries(changes) };
}

/**
 * The feature gates that result from the options: on top of the recorded ones, or of the defaults
 * of another version. Undefined if the options do not mention them.
 * @throws ERR_INVALID_OPTION
 */
function chosenGates(
  { kubeletVersion, featureGates }: Pick<GivenSettings, 'kubeletVersion' | 'featureGates'>,
  recorded: MachineSettings,
): FeatureGates | undefined {
  const version = kubeletVersion ?? recorded.kubeletVersion;
  const isOther = version !== recorded.kubeletVersion;
  if (featureGates === undefined && !isOther) return undefined;
  const gates = { ...(isOther ? DEFAULT_GATES[version] : recorded.featureGates), ...featureGates };
  const on = Object.entries(gates).find(([, flag]) => flag);
  if (version === 'v1.32' && on) {
    invalidOption(`featureGates.${on[0]}`, true, 'left out: the kubelet v1.32 has none of these gates');
  }
  if (gates.PodLevelResourceManagers && !gates.PodLevelResources) {
    invalidOption('featureGates.PodLevelResourceManagers', true, 'false without PodLevelResources');
  }
  return gates;
}

/**
 * Chooses reserved CPUs if the options give only their number. Recorded CPUs of the same number
 * stay, whichever they are. Returns all feature gates together.
 * @throws ERR_INVALID_OPTION
 */
export function chosenSettings(
  { settings: options, placement }: Options,
  topology: Topology,
  now: CpuSnapshot,
  recorded: MachineSettings = DEFAULT_SETTINGS,
): RequiredSettings {
  const { reservedCount, ...others } = options;
  const settings = { ...others, featureGates: chosenGates(options, recorded) };
  const version = options.kubeletVersion ?? recorded.kubeletVersion;
  if (reservedCount === undefined || reservedCount === recorded.reservedSystemCPUs.size) return settings;
  // The system cannot use isolated CPUs.
  const all = grantableCpus(
    { ...applySettings(recorded, settings), reservedSystemCPUs: CpuSet.EMPTY },
    { online: topology.cpus, isolated: now.isolated },
    'ordinary',
  );
  if (reservedCount > all.size) {
    invalidOption(
      'systemReserved.cpu + kubeReserved.cpu',
      reservedCount,
      `at most the machine's ${all.size} managed CPUs that are not isolated`,
    );
  }
  return {
    ...settings,
    reservedSystemCPUs: takeNearFirst({
      machine: topology,
      placement: placementUnder(version, placement),
      from: slowestFor(topology, all, reservedCount),
      count: reservedCount,
      isWhole: false,
    }),
  };
}

/**
 * Checks that settings name CPUs and memory that the machine has or that are on record. The
 * settings may keep what the machine has lost.
 * @throws ERR_INVALID_OPTION
 */
export function checkKnown(
  required: Omit<RequiredSettings, 'featureGates'>,
  topology: Topology,
  recorded = DEFAULT_SETTINGS,
): void {
  const possible = topology.cpus.union(topology.possible);
  for (const name of ['managedCPUs', 'reservedSystemCPUs', 'isolatedCPUs'] as const) {
    const beyond = required[name]?.difference(possible).difference(recorded[name] ?? CpuSet.EMPTY);
    if (!beyond || beyond.isEmpty) continue;
    throw new NumalignError(
      'ERR_INVALID_OPTION',
      `${name} names ${cpusNamed(beyond)}, which this machine does not have: it has ${cpusNamed(possible)}`,
      {
        option: name,
        value: required[name]?.toString(),
        valid: possible.toString(),
      },
    );
  }
  for (const [id, types] of Object.entries(required.reservedMemory ?? {})) {
    const node = topology.nodes.find((each) => each.id === Number(id));
    for (const [type, bytes] of Object.entries(types)) {
      if (bytes <= bookedOn(recorded.reservedMemory, Number(id), type)) continue;
      if (!node)
        invalidOption('reservedMemory', Number(id), `of the NUMA nodes ${topology.numaNodes.join(', ')}`);
      const total = totalOn(node, type);
      if (bytes > total)
        invalidOption(`reservedMemory of ${type} on NUMA node ${id}`, bytes, `at most ${total} bytes`);
    }
  }
}

/** Checks that settings leave a CPU in the shared pool. @throws ERR_CONFIG_CONFLICT */
export function checkLeavesPool(state: Assignments, now: CpuSnapshot): void {
  if (!sharedPool(state, now).isEmpty) return;
  throw new NumalignError(
    'ERR_CONFIG_CONFLICT',
    'these settings leave no CPU for the shared pool, where everything else runs: reserve, isolate or grant fewer',
    {
      value: state.settings,
      valid: 'at least one managed CPU that is neither strictly reserved nor isolated nor granted',
    },
  );
}

/**
 * Checks that cgroupRoot stays while CPUs are exclusive, because groups in use are found by it.
 * @throws ERR_CONFIG_CONFLICT
 */
export function checkCgroupRoot(state: Assignments, { cgroupRoot }: MachineSettings): void {
  const recorded = state.settings.cgroupRoot;
  if (recorded === null || recorded === cgroupRoot || exclusiveCpus(state).isEmpty) return;
  const holders = state.pods.map(({ uid, name }) => (name === uid ? uid : `${uid} (${name})`)).join(', ');
  throw new NumalignError(
    'ERR_CONFIG_CONFLICT',
    `cgroupRoot stays ${recorded} while CPUs are exclusive: grants may run in cgroups below it. Release them first: ${holders}`,
    { value: cgroupRoot, valid: recorded },
  );
}

/** Reserved memory in words: `NUMA node 0: 1073741824 bytes of memory`; empty for none. */
function memoryText(memory: BookedMemory): string {
  return Object.entries(memory)
    .flatMap(([node, types]) =>
      Object.entries(types)
        .sort()
        .map(([type, bytes]) => `NUMA node ${node}: ${bytes} bytes of ${type}`),
    )
    .join(', ');
}

/** In the form of the kubelet's flag: `PodLevelResources=true,PodLevelResourceManagers=false`. */
const gatesText = (gates: FeatureGates): string =>
  Object.entries(gates)
    .map(([gate, flag]) => `${gate}=${flag}`)
    .sort()
    .join(',');

/**
 * Checks that an opener requires what is recorded.
 * @throws ERR_CONFIG_CONFLICT, with the differences
 */
function checkAgreement(recorded: MachineSettings, required: RequiredSettings, path: string): void {
  const nothing: Readonly<Record<string, string>> = {
    isolatedCPUs: 'what the kernel isolates',
    cgroupRoot: 'none',
  };
  const show = (value: unknown, name: string) => {
    if (value === null) return nothing[name] ?? 'all';
    const text =
      typeof value !== 'object' || value instanceof CpuSet
        ? String(value)
        : name === 'featureGates'
          ? gatesText(value as FeatureGates)
          : memoryText(value as BookedMemory);
    return text === '' ? 'none' : text;
  };
  const differences = Object.entries(required).flatMap(([option, value]) => {
    const [asked, now] = [show(value, option), show(recorded[option as keyof RequiredSettings], option)];
    return value === undefined || asked === now ? [] : [{ option, asked, recorded: now }];
  });
  if (differences.length === 0) return;
  const text = differences
    .map(({ option, asked, recorded: now }) => `${option} is ${now}, not ${asked}`)
    .join('; ');
  throw new NumalignError(
    'ERR_CONFIG_CONFLICT',
    `the machine's settings in ${path} differ: ${text}. Leave the option out, or change it for all with ${commandIn(path, 'configure')}`,
    { differences },
  );
}

/**
 * Refuses a state that a simulated machine and the real one would share.
 * @throws ERR_SIMULATED_MACHINE
 */
function checkSameKind({ simulated }: MachineSettings, topology: Topology, path: string): void {
  if (simulated === topology.isSimulated) return;
  throw new NumalignError(
    'ERR_SIMULATED_MACHINE',
    simulated
      ? `the state in ${path} belongs to a simulated machine, not to this one`
      : `the state in ${path} belongs to the real machine: a simulated machine needs its own stateDir`,
    { value: path, valid: 'another stateDir' },
  );
}

/**
 * The first state of a machine.
 * @throws ERR_INVALID_OPTION for CPUs that the machine does not have, ERR_CONFIG_CONFLICT if the
 *   shared pool would be empty
 */
export function firstState(options: Options, topology: Topology, now: CpuSnapshot): Assignments {
  const required = chosenSettings(options, topology, now);
  checkKnown(required, topology);
  const defaults = { ...DEFAULT_SETTINGS, simulated: topology.isSimulated };
  const state = emptyAssignments(applySettings(defaults, required));
  checkLeavesPool(state, { online: topology.cpus, isolated: now.isolated });
  return state;
}

/**
 * Checks that an opener can use the state on record. `path`: the state's folder, for errors.
 * @throws ERR_SIMULATED_MACHINE, ERR_CONFIG_CONFLICT, ERR_INVALID_OPTION
 */
export function checkRecorded(
  { settings }: Assignments,
  options: Options,
  { topology, now, path }: { readonly topology: Topology; readonly now: CpuSnapshot; readonly path: string },
): void {
  checkSameKind(settings, topology, path);
  checkAgreement(settings, chosenSettings(options, topology, now, settings), path);
}

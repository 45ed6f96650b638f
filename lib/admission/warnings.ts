// Warnings: what the caller should know although nothing failed.
import type { Assignments } from '../account/assignments.js';
import type { MemoryBlock } from '../account/booked-memory.js';
import type { EnforcementLevel } from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { type Holding, holdingOf, memoryOf } from '../account/pod-holdings.js';
import type { CpuSnapshot } from '../account/pools.js';
import { cpusNamed } from '../base/text/cpus-named.js';
import type { CgroupLimits } from '../cgroups/limits.js';
import type { DeviceResources } from '../decision/devices/device-resources.js';
import { type Flag, flagsOfEach } from '../decision/flags/flags.js';
import { type HugepagesTaken, hugepagesTaken } from '../decision/memory/hugepages-taken.js';
import { totalOn } from '../decision/memory/memory-tables.js';
import type { Question } from '../decision/question.js';
import { isExtendedResource } from '../input/pods/resource-amounts.js';
import { pageBytes } from '../input/values/memory-types.js';
import { formatBytes } from '../input/values/quantity.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import type { StateRecovered } from '../state/store.js';
import { freeHugepages, freeOfBooked } from './free-hugepages.js';

/**
 * A pod asks for devices (`resource`) that are not registered here, and there is no hint provider.
 * It is admitted without them.
 * @remedy Call `registerDevices`, or add a hint provider.
 */
export interface ResourceUnknown {
  /** Identifies the kind of warning; literal and stable. */
  readonly code: 'RESOURCE_UNKNOWN';
  /** One sentence for people; the wording may change. */
  readonly message: string;
  /** The requested resource, such as `example.com/nic`. */
  readonly resource: string;
}

/** A persistent grant of a state of an earlier boot, with what it held. */
export interface LapsedGrant extends Holding {
  /** The uid that the grant had. */
  readonly uid: string;
  /** The name that it had; its uid if it was given none. */
  readonly name: string;
}

/**
 * The state is of an earlier boot and is kept as `file`. Its grants, also the persistent ones
 * (`lapsed`), are void.
 * @remedy Admit the pods again.
 */
export interface StateArchived {
  /** Identifies the kind of warning; literal and stable. */
  readonly code: 'STATE_ARCHIVED';
  /** One sentence for people; the wording may change. */
  readonly message: string;
  /** The name of the archived state in the state folder. */
  readonly file: string;
  /** The generation of the archived state. */
  readonly generation: number;
  /** The persistent grants of the archived state. */
  readonly lapsed: readonly LapsedGrant[];
}

/**
 * A grant (`uid`) has `flags`: part of it no longer holds.
 * @remedy See docs/changes.md.
 */
export interface GrantFlagged {
  /** Identifies the kind of warning; literal and stable. */
  readonly code: 'GRANT_FLAGGED';
  /** All flags of the grant in one line, for people; the wording may change. */
  readonly message: string;
  /** The uid of the grant. */
  readonly uid: string;
  /** What no longer holds about the grant; at least one flag. */
  readonly flags: readonly Flag[];
}

/**
 * A cgroup (`path`) at or above the process has a quota of less CPU time (`cpus`) than the grant
 * has CPUs: the kernel will throttle its threads.
 * @remedy Raise the quota of that cgroup; a grant does not.
 */
export interface CpuQuota {
  /** Identifies the kind of warning; literal and stable. */
  readonly code: 'CPU_QUOTA';
  /** One sentence for people; the wording may change. */
  readonly message: string;
  /** The folder of the cgroup. */
  readonly path: string;
  /** The quota, in CPUs. */
  readonly cpus: number;
}

/**
 * The grant has a weaker enforcement level (`enforcement`) than expected: below the one that the
 * request names, below `cpuset` though there is a `cgroupRoot`, without its partition, or with a
 * shared member that did not leave. The message says why.
 * @remedy Nothing, or what the message names. `require` a level to be rejected instead.
 */
export interface EnforcementShortfall {
  /** Identifies the kind of warning; literal and stable. */
  readonly code: 'ENFORCEMENT_SHORTFALL';
  /** What prevents a stronger level, in one line for people; the wording may change. */
  readonly message: string;
  /** The level that the grant has reached. */
  readonly enforcement: EnforcementLevel;
}

/**
 * A recorded setting of the machine (`option`) names CPUs or memory that the machine does not have
 * at present. The setting stays.
 * @remedy Nothing, or `numalign configure`.
 */
export interface SettingUnmet {
  /** Identifies the kind of warning; literal and stable. */
  readonly code: 'SETTING_UNMET';
  /**
   * What the setting names and the machine lacks, in one line for people; the wording may change.
   */
  readonly message: string;
  /** The setting, by its name in {@link MachineOptions}. */
  readonly option: 'managedCPUs' | 'reservedSystemCPUs' | 'isolatedCPUs' | 'reservedMemory';
}

/**
 * What you should know although nothing failed: {@link Grant.warnings}, {@link Pod.warnings},
 * {@link Plan.warnings}, {@link Manager.warnings}. docs/reference/errors.md#warnings lists the
 * codes.
 */
export type Warning =
  | CpuQuota
  | EnforcementShortfall
  | HugepagesTaken
  | ResourceUnknown
  | StateArchived
  | StateRecovered
  | GrantFlagged
  | SettingUnmet;

/** The persistent grants of a state of an earlier boot. */
export function lapsedGrants({ pods }: Assignments): LapsedGrant[] {
  return pods
    .filter(({ owner }) => owner.kind === 'persistent')
    .map((pod) => Object.freeze({ uid: pod.uid, name: pod.name, ...holdingOf(pod) }));
}

/** The warning about a state of an earlier boot that is kept in `file`. */
export function stateArchived({ generation, assignments }: Checkpoint, file: string): StateArchived {
  const lapsed = Object.freeze(lapsedGrants(assignments));
  const names = lapsed.map(({ name }) => name).join(', ');
  const grants = names === '' ? 'it had no persistent grants' : `its persistent grants are void: ${names}`;
  const message = `the state was of an earlier boot and is kept as ${file}; ${grants}`;
  return Object.freeze({ code: 'STATE_ARCHIVED', message, file, generation, lapsed });
}

/** Warnings about grants on record with flags. */
export function grantWarnings(
  state: Assignments,
  topology: Topology,
  resources: DeviceResources,
  present: CpuSnapshot,
): GrantFlagged[] {
  const flagsOf = flagsOfEach({
    state,
    topology,
    resources,
    present,
    hugepages: freeOfBooked(state, topology),
  });
  return state.pods.flatMap((pod): GrantFlagged[] => {
    const flags = flagsOf(pod);
    if (flags.length === 0) return [];
    const message = `grant ${pod.name === pod.uid ? pod.uid : `${pod.uid} (${pod.name})`}: ${flags.map((flag) => flag.message).join('; ')}`;
    return [Object.freeze({ code: 'GRANT_FLAGGED', message, uid: pod.uid, flags })];
  });
}

/** Warnings about settings that name CPUs or memory which the machine lacks at present. */
export function settingWarnings(
  { settings }: Assignments,
  { nodes }: Topology,
  online: CpuSet,
): SettingUnmet[] {
  const { managedCPUs, reservedSystemCPUs, isolatedCPUs, reservedMemory } = settings;
  const unmet = (option: SettingUnmet['option'], what: string): SettingUnmet =>
    Object.freeze({ code: 'SETTING_UNMET', message: `${option} names ${what}`, option });
  const cpus = Object.entries({ managedCPUs, reservedSystemCPUs, isolatedCPUs } as const).flatMap(
    ([option, named]) => {
      const missing = named?.difference(online);
      if (!missing || missing.isEmpty) return [];
      return [unmet(option as SettingUnmet['option'], `${cpusNamed(missing)}, not online at present`)];
    },
  );
  const memory = Object.entries(reservedMemory).flatMap(([id, types]) =>
    Object.entries(types).flatMap(([type, bytes]) => {
      const node = nodes.find((each) => each.id === Number(id));
      const total = node ? totalOn(node, type) : 0;
      if (bytes <= total) return [];
      const text = `${formatBytes(bytes)} of ${type} on NUMA node ${id}, which has ${formatBytes(total)}`;
      return [unmet('reservedMemory', text)];
    }),
  );
  return [...cpus, ...memory];
}

/** The warnings of a newly admitted pod. It reads free hugepages if the pod books some. */
export function warningsOf(pod: PodAssignment, question: Question): readonly Warning[] {
  const { state, topology } = question;
  const unknown = resourceWarnings(question);
  return topology.isSimulated ? unknown : hugepageWarnings(pod, state, topology).concat(unknown);
}

// `before` is the state without the pod.
function hugepageWarnings(pod: PodAssignment, before: Assignments, topology: Topology): Warning[] {
  const isOfHugepages = ({ type }: MemoryBlock) => pageBytes(type) !== undefined;
  if (!pod.containers.some(({ memory }) => memory.some(isOfHugepages))) return [];
  const blocks = memoryOf(pod).filter(isOfHugepages);
  const types = blocks.map(({ type }) => type);
  return hugepagesTaken(blocks, before, topology, freeHugepages(topology, types));
}

function resourceWarnings({ request, resources, providers }: Question): Warning[] {
  const warnings: ResourceUnknown[] = [];
  if (providers.length > 0) return warnings;
  const { containers } = request.pod;
  for (let i = 0; i < containers.length; i++) {
    const { requests } = containers[i]!;
    for (const resource of Object.keys(requests)) {
      const isUnknown = requests[resource]! > 0 && !resources.has(resource) && isExtendedResource(resource);
      if (!isUnknown || warnings.some((warning) => warning.resource === resource)) continue;
      const message = `${resource} has no registered devices and no hint provider here: register one of them`;
      warnings.push(Object.freeze({ code: 'RESOURCE_UNKNOWN', message, resource }));
    }
  }
  return warnings;
}

/** Warnings that say why a new grant is below the enforcement level that it aims at. */
export function enforcementWarnings(
  { enforcement: { level } }: PodAssignment,
  shortfalls: readonly string[],
): readonly EnforcementShortfall[] {
  return shortfalls.map((why) => ({
    code: 'ENFORCEMENT_SHORTFALL',
    message: `enforced by the level ${level}: ${why}`,
    enforcement: level,
  }));
}

/** A warning if the tightest quota allows less CPU time than the grant has CPUs. */
export function quotaWarnings({ cpuMax }: CgroupLimits, granted: number): readonly CpuQuota[] {
  if (!cpuMax || cpuMax.cpus >= granted) return [];
  const { path, cpus } = cpuMax;
  const message = `the cgroup ${path} has a quota of ${cpus} CPUs, fewer than the ${granted} that are granted: threads will be throttled`;
  return [{ code: 'CPU_QUOTA', message, path, cpus }];
}

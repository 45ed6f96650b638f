// One generation of the whole state, and its members in state.json. docs/state-format.md describes
// them. Pure.
import type { Assignments, MachineSettings, NamedCpus } from '../../account/assignments.js';
import type { BookedMemory } from '../../account/booked-memory.js';
import type { CpuIdentity, PodAssignment } from '../../account/pod-assignment.js';
import type { NumalignError } from '../../base/errors.js';
import {
  DEFAULT_GATES,
  type FeatureGates,
  isSince,
  KUBELET_VERSIONS,
  type KubeletVersion,
  UNSAID_VERSION,
} from '../../base/kubelet-features.js';
import type { Fields, Shape } from '../../base/shapes.js';
import type { Steps } from '../../base/steps.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { holdingsSteps } from './holdings-check.js';
import { decodeKubelet } from './kubelet-section.js';
import { encodeSettings, kubeletText, podParts, quietText, textOf } from './pod-text.js';
import { decodeQuiet } from './quiet-section.js';
import { corrupt, SEAL_MEMBERS, textOfMembers } from './sealed-json.js';
import {
  cpuSet,
  flag,
  generation,
  list,
  listOf,
  listSteps,
  NOTHING_UNKNOWN,
  nodeIds,
  object,
  oneOf,
  orNull,
  recordOf,
  text,
  unknownOf,
  whole,
} from './shapes.js';

/** One generation of the state on disk. */
export interface Checkpoint {
  /** Grows by one with every commit and never goes back. */
  readonly generation: number;
  /** /proc/sys/kernel/random/boot_id at the time of writing: grants do not outlive a reboot. */
  readonly bootId: string;
  /** Wall-clock time in ISO 8601. */
  readonly writtenAt: string;
  readonly assignments: Assignments;
  /**
   * Why nothing may be written over this state. Either a newer numalign wrote it
   * (ERR_STATE_VERSION), or it was recovered and the holdings of living owners are unknown
   * (ERR_STATE_CORRUPT). Not in the file.
   */
  readonly refusal?: NumalignError;
}

/**
 * The lowest version of a file that can express this. 4: a kubelet version that older builds do not
 * know. 3: CPUs that the kubelet has given out, which older builds would grant, and changed kernel
 * settings, which they would not restore.
 */
export function versionFor({
  settings,
  kubelet,
  quiet,
}: Pick<Assignments, 'settings' | 'kubelet'> & Partial<Pick<Assignments, 'quiet'>>): number {
  if (isSince(settings.kubeletVersion, 'v1.37')) return 4;
  return kubelet === null && (quiet ?? null) === null ? 2 : 3;
}

/** The text of a line with a whole checkpoint, in parts. */
export function checkpointParts({ assignments, refusal: _, ...header }: Checkpoint): string[] {
  const { unknown, settings, cpus, pods, memory, lastCpus, kubelet, quiet } = assignments;
  const members = { line: 'state', ...unknown, ...header, settings: encodeSettings(settings) };
  const texts = {
    cpus: cpusText(cpus),
    ...(kubelet && { kubelet: kubeletText(kubelet) }),
    ...(quiet && { quiet: quietText(quiet) }),
  };
  const before = textOfMembers(members, texts);
  const after = JSON.stringify({ memory, lastCpus });
  return [before.slice(0, -1), ',"pods":[', ...podParts(pods), '],', after.slice(1)];
}

export const cpusText = (cpus: Assignments['cpus']): string => textOf(cpus, (rows) => rows);

function bookedMemory(value: unknown, where: string): BookedMemory {
  const byNode = recordOf(value, where, (types, at) => recordOf(types, at, whole));
  for (const node of Object.keys(byNode)) nodeIds([Number(node)], where);
  return byNode;
}

function lastCpus(value: unknown = [], where: string): NamedCpus[] {
  return listOf(value, where, (item, at) => {
    const { name, cpus } = object(item, at);
    // Decoded already.
    if (cpus instanceof CpuSet) return item as NamedCpus;
    return { name: text(name, 'name'), cpus: cpuSet(cpus, 'cpus') };
  });
}

// Keeps gates of later versions.
function featureGates(value: unknown = {}, where: string, version: KubeletVersion): FeatureGates {
  return { ...DEFAULT_GATES[version], ...recordOf(value, where, flag) };
}

export function decodeSettings(value: unknown): MachineSettings {
  const fields = object(value, 'settings');
  const kubeletVersion = oneOf(
    fields.kubeletVersion ?? UNSAID_VERSION,
    'settings.kubeletVersion',
    KUBELET_VERSIONS,
  );
  const settings = {
    managedCPUs: orNull(fields.managedCPUs, 'settings.managedCPUs', cpuSet),
    reservedSystemCPUs: cpuSet(fields.reservedSystemCPUs, 'settings.reservedSystemCPUs'),
    strictCPUReservation: flag(fields.strictCPUReservation, 'settings.strictCPUReservation'),
    isolatedCPUs: orNull(fields.isolatedCPUs ?? null, 'settings.isolatedCPUs', cpuSet),
    reservedMemory: bookedMemory(fields.reservedMemory, 'settings.reservedMemory'),
    cgroupRoot: orNull(fields.cgroupRoot ?? null, 'settings.cgroupRoot', text),
    kubeletVersion,
    featureGates: featureGates(fields.featureGates, 'settings.featureGates', kubeletVersion),
    simulated: flag(fields.simulated, 'settings.simulated'),
  };
  return { ...settings, unknown: unknownOf(fields, Object.keys(settings)) };
}

function decodeIdentity(value: unknown, where: string): CpuIdentity {
  const row = list(value, where);
  for (let i = 0; i < row.length; i++) whole(row[i], where);
  if (row.length !== 4) corrupt(`${where} is not [cpu, core, package, node]`, value);
  return row as unknown as CpuIdentity;
}

/**
 * Decodes the members. `before`: keeps its pods beside those of the members, and its unknown
 * members. Members that are the same objects as in `before` are decoded already; so are the pods if
 * `decode` is undefined.
 * @throws ERR_STATE_CORRUPT
 */
export function* checkpointSteps(
  fields: Fields,
  before?: Assignments,
  decode?: Shape<PodAssignment>,
): Steps<Checkpoint> {
  const generationNow = generation(fields.generation);
  const bootId = text(fields.bootId, 'bootId');
  const writtenAt = text(fields.writtenAt, 'writtenAt');
  const more = unknownOf(fields, [...SEAL_MEMBERS, ...NAMES]);
  const member = <K extends keyof Assignments>(name: K, shape: Shape<Assignments[K]>) =>
    before && fields[name] === before[name] ? before[name] : shape(fields[name], name);
  const assignments = {
    settings: member('settings', decodeSettings),
    cpus: member('cpus', (rows, where) => listOf(rows, where, decodeIdentity)),
    pods: withPods(
      before?.pods ?? [],
      decode ? yield* listSteps(fields.pods, 'pods', decode) : (fields.pods as PodAssignment[]),
    ),
    memory: member('memory', bookedMemory),
    lastCpus: member('lastCpus', lastCpus),
    kubelet: member('kubelet', decodeKubelet),
    quiet: member('quiet', decodeQuiet),
    unknown: before && more === NOTHING_UNKNOWN ? before.unknown : { ...before?.unknown, ...more },
  };
  yield* holdingsSteps(assignments);
  return { generation: generationNow, bootId, writtenAt, assignments };
}

const NAMES = 'generation bootId writtenAt settings cpus pods memory lastCpus kubelet quiet'.split(' ');

// A new pod replaces the pod with its uid, or comes last.
function withPods(
  before: readonly PodAssignment[],
  next: readonly PodAssignment[],
): readonly PodAssignment[] {
  if (next.length === 0) return before;
  if (before.length === 0) return next;
  const replaced = new Map(next.map((pod) => [pod.uid, pod]));
  const pods = before.map((pod) => {
    const now = replaced.get(pod.uid);
    return now && replaced.delete(pod.uid) ? now : pod;
  });
  return [...pods, ...replaced.values()];
}

// Encodes pods, settings, the kubelet's holdings and quiet settings as the state files write them.
import type { MachineSettings, QuietRecord } from '../../account/assignments.js';
import type { KubeletRecord } from '../../account/kubelet-record.js';
import type { ContainerAssignment, PodAssignment, PodBooking } from '../../account/pod-assignment.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { encodeChange, encodeConsent } from './move-section.js';

function encodeHint({ nodes, preferred }: ContainerAssignment['hint']) {
  return { nodes: nodes === null ? null : nodes.toArray(), preferred };
}

function encodeContainer({ unknown, isolation, ...container }: ContainerAssignment) {
  const isShared = isolation === 'pod';
  return { ...unknown, ...container, ...(isShared && { isolation }), hint: encodeHint(container.hint) };
}

// Older versions do not know bookings and count what containers have. So the first container gets
// all of it.
function encodeBooked(booking: PodBooking, containers: readonly ContainerAssignment[]) {
  const { cpus, held, memory } = booking;
  const all = { memory, cpus: cpus.union(held) };
  const nothing = { memory: [], cpus: CpuSet.EMPTY };
  return {
    containers: containers.map((container, i) => {
      const { memory, cpus } = i === 0 ? all : nothing;
      return encodeContainer({ ...container, memory, reusable: { ...container.reusable, cpus } });
    }),
    booking: { ...booking, shares: containers.map((container) => container.memory) },
  };
}

/** The plain object of a pod in files; toJSON turns CpuSets into lists. */
function encodePod({ unknown, booking, former, ...pod }: PodAssignment) {
  const { unknown: unknownOwner, ...owner } = pod.owner;
  const { movable, upcoming } = pod;
  return {
    ...unknown,
    ...pod,
    ...encodeHeld({ booking, containers: pod.containers }),
    owner: { ...unknownOwner, ...owner },
    ...(movable && { movable: encodeConsent(movable) }),
    upcoming: encodeChange({ upcoming, former }, encodeHeld),
  };
}

// Leaves out an absent booking, and `isolation` if the CPUs imply it, as older versions did.
function encodeHeld({ booking, containers }: Pick<PodAssignment, 'booking' | 'containers'>) {
  return booking ? encodeBooked(booking, containers) : { containers: containers.map(encodeContainer) };
}

// Most texts are written more than once.
const texts = new WeakMap<object, string>();
// A pod's is as long as the pod, and few are needed after the commit: see forgetPodTexts.
let podTexts = new WeakMap<object, string>();

export function textOf<T extends object>(value: T, encode: (value: T) => unknown, among = texts): string {
  let text = among.get(value);
  if (text === undefined) {
    text = JSON.stringify(encode(value));
    among.set(value, text);
  }
  return text;
}

/** The JSON of a pod in files. */
export const podText = (pod: PodAssignment): string => textOf(pod, encodePod, podTexts);

/** Frees the texts of all pods. */
export function forgetPodTexts(): void {
  podTexts = new WeakMap();
}

/** The JSON of pods in files, in parts with the separators. */
export const podParts = (pods: readonly PodAssignment[]): string[] =>
  pods.flatMap((pod, i) => (i === 0 ? podText(pod) : [',', podText(pod)]));

/** The JSON of pods in files. */
export const podsText = (pods: readonly PodAssignment[]): string => `[${podParts(pods).join('')}]`;

/**
 * Caches the texts of up to `most` pods that have none. Returns true if pods without a text remain.
 */
export function prepareTexts(pods: readonly PodAssignment[], most: number): boolean {
  const missing = pods.filter((pod) => !podTexts.has(pod));
  for (const pod of missing.slice(0, most)) podText(pod);
  return missing.length > most;
}

/** How many texts are made without a turn of the event loop. */
export const TEXTS_AT_ONCE = 32;
let isPreparing = false;

/** True if all these pods have texts. Else makes some of them, in each of the next turns of the event loop. */
export function areTextsReady(pods: readonly PodAssignment[]): boolean {
  if (!prepareTexts(pods, TEXTS_AT_ONCE)) return true;
  if (!isPreparing) {
    isPreparing = true;
    setImmediate(() => {
      isPreparing = false;
      areTextsReady(pods);
    }).unref();
  }
  return false;
}

/** The JSON of the kubelet's holdings in files. */
export const kubeletText = (record: KubeletRecord): string =>
  textOf(record, ({ unknown, keeper: { unknown: unknownKeeper, ...keeper }, ...known }) => ({
    ...unknown,
    ...known,
    keeper: { ...unknownKeeper, ...keeper },
  }));

/** The JSON of the changed kernel settings in files. */
export const quietText = (record: QuietRecord): string =>
  textOf(record, ({ unknown, settings }) => ({ ...unknown, settings }));

/** The plain object of settings in files. */
export function encodeSettings({ unknown, isolatedCPUs, ...settings }: MachineSettings) {
  // Leaves out null, as files from before this setting did.
  return { ...unknown, ...settings, ...(isolatedCPUs !== null && { isolatedCPUs }) };
}

// Pods, settings, what the kubelet holds and what is changed for quiet grants as the state files write
// them.
import type { MachineSettings } from '../../account/assignments.js';
import type { KubeletRecord } from '../../account/kubelet-record.js';
import type { ContainerAssignment, PodAssignment, PodBooking } from '../../account/pod-assignment.js';
import type { QuietRecord } from '../../account/quiet/quiet-record.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { encodeConsent, encodeUpcoming } from './move-section.js';

// ---- writing

function encodeHint({ nodes, preferred }: ContainerAssignment['hint']) {
  return { nodes: nodes === null ? null : nodes.toArray(), preferred };
}

function encodeContainer({ unknown, isolation, ...container }: ContainerAssignment) {
  const isShared = isolation === 'pod';
  return { ...unknown, ...container, ...(isShared && { isolation }), hint: encodeHint(container.hint) };
}

// Versions that know no booking count what containers have: all of it is the first one's there.
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

/** The plain object that a pod is in files; CpuSets become lists by their toJSON. */
export function encodePod({ unknown, booking, ...pod }: PodAssignment) {
  const { unknown: unknownOwner, ...owner } = pod.owner;
  const { movable, upcoming } = pod;
  return {
    ...unknown,
    ...pod,
    ...encodeHeld({ booking, containers: pod.containers }),
    owner: { ...unknownOwner, ...owner },
    ...(movable && { movable: encodeConsent(movable) }),
    ...(upcoming && { upcoming: encodeUpcoming(upcoming, encodeHeld) }),
  };
}

// Left out where there is none, and `isolation` where the CPUs tell it: as in files of before.
function encodeHeld({ booking, containers }: Pick<PodAssignment, 'booking' | 'containers'>) {
  return booking ? encodeBooked(booking, containers) : { containers: containers.map(encodeContainer) };
}

// Most of what is written was written before.
const texts = new WeakMap<object, string>();

export function textOf<T extends object>(value: T, encode: (value: T) => unknown): string {
  let text = texts.get(value);
  if (text === undefined) {
    text = JSON.stringify(encode(value));
    texts.set(value, text);
  }
  return text;
}

/** A pod as it is in files, in JSON. */
export const podText = (pod: PodAssignment): string => textOf(pod, encodePod);

/** Pods as they are in files, in JSON, and what is between them. */
export const podParts = (pods: readonly PodAssignment[]): string[] =>
  pods.flatMap((pod, i) => (i === 0 ? podText(pod) : [',', podText(pod)]));

/** Pods as they are in files, in JSON. */
export const podsText = (pods: readonly PodAssignment[]): string => `[${podParts(pods).join('')}]`;

/** Makes the texts of so many pods that have none yet. Answers whether some are left. */
export function prepareTexts(pods: readonly PodAssignment[], most: number): boolean {
  let made = 0;
  for (const pod of pods) {
    if (texts.has(pod)) continue;
    if (made === most) return true;
    podText(pod);
    made++;
  }
  return false;
}

/** What the kubelet holds as it is in files, in JSON. */
export const kubeletText = (record: KubeletRecord): string =>
  textOf(record, ({ unknown, keeper: { unknown: unknownKeeper, ...keeper }, ...known }) => ({
    ...unknown,
    ...known,
    keeper: { ...unknownKeeper, ...keeper },
  }));

/** The settings of the kernel that are changed as they are in files, in JSON. */
export const quietText = (record: QuietRecord): string =>
  textOf(record, ({ unknown, settings }) => ({ ...unknown, settings }));

/** The plain object that settings are in files. */
export function encodeSettings({ unknown, isolatedCPUs, ...settings }: MachineSettings) {
  // Left out where it is null, as in files that were written before there was such a setting.
  return { ...unknown, ...settings, ...(isolatedCPUs !== null && { isolatedCPUs }) };
}

// Pods and settings as the state files write them.
import type { MachineSettings } from '../../account/assignments.js';
import type { ContainerAssignment, PodAssignment } from '../../account/pod-assignment.js';

// ---- writing

function encodeHint({ nodes, preferred }: ContainerAssignment['hint']) {
  return { nodes: nodes === null ? null : nodes.toArray(), preferred };
}

function encodeContainer({ unknown, ...container }: ContainerAssignment) {
  return { ...unknown, ...container, hint: encodeHint(container.hint) };
}

/** The plain object that a pod is in files; CpuSets become lists by their toJSON. */
export function encodePod({ unknown, ...pod }: PodAssignment) {
  const { unknown: unknownOwner, ...owner } = pod.owner;
  return {
    ...unknown,
    ...pod,
    containers: pod.containers.map(encodeContainer),
    owner: { ...unknownOwner, ...owner },
  };
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

/** Pods as they are in files, in JSON. */
export const podsText = (pods: readonly PodAssignment[]): string => `[${pods.map(podText).join(',')}]`;

/** The plain object that settings are in files. */
export function encodeSettings({ unknown, isolatedCPUs, ...settings }: MachineSettings) {
  // Left out where it is null, as in files that were written before there was such a setting.
  return { ...unknown, ...settings, ...(isolatedCPUs !== null && { isolatedCPUs }) };
}

// ImportConflicts: contradictions within the kubelet's files. Pure.
import type { PodAssignment } from '../account/pod-assignment.js';
import { cpusOf } from '../account/pod-holdings.js';
import { NumalignError } from '../base/errors.js';
import type { KubeletStates } from './kubelet-states.js';

/** Sentences about CPUs of pods that are also in the files' shared pool. */
export function poolConflicts(pods: readonly PodAssignment[], { cpu }: KubeletStates): string[] {
  return pods.flatMap((pod) => {
    const cpus = cpusOf(pod).intersection(cpu.defaultCpuSet);
    return cpus.isEmpty ? [] : [`pod ${pod.uid} has CPUs ${cpus}, which are in the files' shared pool too`];
  });
}

/** Sentences about what the files book for pods as a whole, but their containers do not have. */
export function bookingConflicts(pods: readonly PodAssignment[], { cpu, memory }: KubeletStates): string[] {
  const uids = new Set(pods.map(({ uid }) => uid));
  const booked = [...(cpu.podEntries?.keys() ?? []), ...(memory.podEntries?.keys() ?? [])];
  const withoutContainers = [...new Set(booked)].filter((uid) => !uids.has(uid));
  return [
    ...withoutContainers.map((uid) => `pod ${uid} has CPUs or memory as a whole, and no container`),
    ...pods.flatMap(({ uid, booking, containers }) =>
      containers
        .filter(({ cpus }) => booking && !cpus.isSubsetOf(booking.cpus))
        .map(({ name }) => `container ${name} of pod ${uid} has CPUs that the pod as a whole does not have`),
    ),
  ];
}

export function refuse(conflicts: readonly string[]): void {
  if (conflicts.length === 0) return;
  throw new NumalignError(
    'ERR_KUBELET_IMPORT',
    `nothing is imported from the kubelet: ${conflicts.join('; ')}`,
    {
      value: conflicts,
      valid: 'pods whose CPUs and memory are free here',
    },
  );
}

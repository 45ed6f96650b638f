// The pods of owners, as the owners' files and the checkpoint have them.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { podText } from '../files/pod-text.js';

export function isSame(a: readonly PodAssignment[], b: readonly PodAssignment[]): boolean {
  return a.length === b.length && a.every((pod, i) => pod === b[i] || podText(pod) === podText(b[i]!));
}

// The pods of owners whose files are not locked, by the owner's uuid.
export function byFile(pods: readonly PodAssignment[]): Map<string, PodAssignment[]> {
  const files = new Map<string, PodAssignment[]>();
  for (const pod of pods) {
    const { kind, uuid } = pod.owner;
    if (kind !== 'process') files.set(uuid, [...(files.get(uuid) ?? []), pod]);
  }
  return files;
}

// All of both; of those in both the second.
export function union(a: readonly PodAssignment[], b: readonly PodAssignment[]): PodAssignment[] {
  return [...new Map([...a, ...b].map((pod) => [pod.uid, pod])).values()];
}

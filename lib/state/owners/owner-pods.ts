// The pods of owners other than processes, as their files have them.
import type { PodAssignment } from '../../account/pod-assignment.js';

/** The pods of owners that have no lock, by the owner's uuid. */
export function byFile(pods: readonly PodAssignment[]): Map<string, PodAssignment[]> {
  const files = new Map<string, PodAssignment[]>();
  for (const pod of pods) {
    const { kind, uuid } = pod.owner;
    if (kind === 'process') continue;
    const pods = files.get(uuid);
    if (pods) pods.push(pod);
    else files.set(uuid, [pod]);
  }
  return files;
}

/** The uuids of the pods' owners that have no lock, each once. */
export const uuidsOf = (pods: readonly PodAssignment[]): string[] => [...byFile(pods).keys()];

/** The pods of both lists. A pod in both comes from the second. */
export function union(a: readonly PodAssignment[], b: readonly PodAssignment[]): PodAssignment[] {
  return [...new Map([...a, ...b].map((pod) => [pod.uid, pod])).values()];
}

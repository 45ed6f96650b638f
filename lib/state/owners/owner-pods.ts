// The pods of owners other than processes, as their files have them.
import type { PodAssignment } from '../../account/pod-assignment.js';

/** The uuids of the pods' owners that have no lock, each once. */
export function uuidsOf(pods: readonly PodAssignment[]): string[] {
  const uuids = pods.flatMap(({ owner: { kind, uuid } }) => (kind === 'process' ? [] : [uuid]));
  return [...new Set(uuids)];
}

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

/** The pods of both lists. A pod in both comes from the second. */
export function union(a: readonly PodAssignment[], b: readonly PodAssignment[]): PodAssignment[] {
  return [...new Map([...a, ...b].map((pod) => [pod.uid, pod])).values()];
}

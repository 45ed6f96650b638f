// Finds pods that are placed already; also the owner of planned pods.
import { type Assignments, findPod } from '../account/assignments.js';
import type { OwnerRecord, PodAmounts, PodAssignment } from '../account/pod-assignment.js';
import { oncePerPods, podsAfter, podsBefore } from '../account/pod-list-changes.js';
import { LayeredMap } from '../base/collections/layered-map.js';
import { NumalignError } from '../base/errors.js';
import { nameUid } from '../base/text/name-uid.js';
import type { PodRequest } from '../input/pods/pod-resources.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';

/**
 * The pod on record that this request repeats, if any.
 * @throws ERR_POD_CONFLICT if the pod asked for something else before, or if only its name
 *   identifies it and another pod has that name
 */
export function placedPod(state: Assignments, pod: PodRequest): PodAssignment | undefined {
  const placed = pod.uid === undefined ? undefined : findPod(state, pod.uid);
  if (!placed) {
    checkNewName(state, pod);
    return undefined;
  }
  const [before, now] = [shapeOfPlaced(placed), shapeOf(pod.containers, pod.resources)];
  if (before === now) return placed;
  throw new NumalignError(
    'ERR_POD_CONFLICT',
    `pod ${pod.uid} is admitted already, with other containers or amounts: release it first, or have it replaced`,
    { value: now, valid: before },
  );
}

/**
 * A pod on record that is admitted again: `placed` as it is, or `old`, which a new one replaces.
 */
interface PodOnRecord {
  readonly placed?: PodAssignment | undefined;
  readonly old?: PodAssignment;
}

/**
 * As {@link placedPod}; with `replace` a pod that asks for something else now is not a conflict.
 * @throws ERR_POD_CONFLICT, as {@link placedPod}
 */
export function placedOrOld(state: Assignments, pod: PodRequest, replace: boolean): PodOnRecord {
  const placed = replace && pod.uid !== undefined ? findPod(state, pod.uid) : undefined;
  const isChanged = placed && shapeOfPlaced(placed) !== shapeOf(pod.containers, pod.resources);
  if (isChanged) return { old: placed };
  return { placed: placed ?? placedPod(state, pod) };
}

function shapeOfPlaced({ containers, resources }: PodAssignment): string {
  const requested = containers.map(({ name, kind, request }) => ({ name, kind, requests: request }));
  return shapeOf(requested, resources);
}

// What a pod asks for, as a text to compare; with resources of the whole pod only if it has some.
function shapeOf(
  containers: readonly Pick<ContainerRequest, 'name' | 'kind' | 'requests'>[],
  whole: PodAmounts | null | undefined,
): string {
  const inOrder = (amounts: Readonly<Record<string, number>>) => Object.entries(amounts).sort();
  const shape: unknown[] = containers.map(({ name, kind, requests }) => [name, kind, inOrder(requests)]);
  if (whole) shape.push({ requests: inOrder(whole.requests), limits: inOrder(whole.limits) });
  return JSON.stringify(shape);
}

const fullName = ({ namespace, name }: Pick<PodAssignment, 'namespace' | 'name'>) => `${namespace}/${name}`;

type NameCounts = LayeredMap<string, number>;

function countAll(pods: readonly PodAssignment[]): NameCounts {
  const counts = new Map<string, number>();
  for (const name of pods.map(fullName)) counts.set(name, (counts.get(name) ?? 0) + 1);
  return LayeredMap.from(counts);
}

function count(counts: NameCounts, pods: readonly PodAssignment[], sign: 1 | -1): NameCounts {
  const names = pods.map(fullName);
  return names.reduce((all, name) => all.with([[name, (all.get(name) ?? 0) + sign || undefined]]), counts);
}

// How many pods have each name: pods with uids may share one.
const nameCounts = oncePerPods<NameCounts>(countAll, (earlier, changes) =>
  count(count(earlier, podsBefore(changes), -1), podsAfter(changes), 1),
);

// Only a pod without a uid, or with one that is made of its name, needs a name of its own.
function checkNewName({ pods }: Assignments, { uid, name, namespace }: PodRequest): void {
  if (namespace === undefined || name === undefined) return;
  if (nameCounts(pods).get(fullName({ namespace, name })) === undefined) return;
  if (uid !== undefined && uid !== nameUid(namespace, name)) return;
  const living = pods.find((pod) => pod.namespace === namespace && pod.name === name);
  if (!living) return;
  throw new NumalignError(
    'ERR_POD_CONFLICT',
    `pod ${namespace}/${name} is admitted already, as ${living.uid}: release it first, or give this pod a uid: another one, or the same to keep the pod as it is`,
    { value: name, valid: living.uid },
  );
}

/** The owner of planned pods, which would stay until their release. */
export const PERSISTENT_OWNER: OwnerRecord = {
  kind: 'persistent',
  uuid: '',
  pid: null,
  command: null,
  cgroup: null,
  unknown: {},
};

// Changes of the state when pods come, go and start. Pure.
import { type Assignments, findPod, type NamedCpus } from './assignments.js';
import {
  type BookedMemory,
  type MemoryBlock,
  memoryBlocks,
  NOTHING_BOOKED,
  releaseMemory,
} from './booked-memory.js';
import type { ContainerAssignment, PodAssignment } from './pod-assignment.js';
import { presentCpus } from './pod-holdings.js';

function withoutMemory(booked: BookedMemory, blocks: readonly MemoryBlock[]): BookedMemory {
  return blocks.reduce(releaseMemory, booked);
}

// Member by member: V8 takes the slow way to members that replace those of a spread object.
function withList(
  { settings, cpus, lastCpus, kubelet, quiet, unknown }: Assignments,
  pods: readonly PodAssignment[],
  memory: BookedMemory,
  last = lastCpus,
): Assignments {
  return { settings, cpus, pods, memory, lastCpus: last, kubelet, quiet, unknown };
}

/** The state with one more pod, and the memory booked with it. */
export function addPod(state: Assignments, pod: PodAssignment, memory: BookedMemory): Assignments {
  return withList(state, [...state.pods, pod], memory);
}

/** The state after a reboot: settings outlive a boot, grants and the kubelet's holdings do not. */
export function withoutPods(state: Assignments): Assignments {
  return { ...state, pods: [], memory: NOTHING_BOOKED, kubelet: null, quiet: null };
}

// The index of the pod with this uid; -1 if there is none.
function placeOf(state: Assignments, uid: string): number {
  const pod = findPod(state, uid);
  return pod === undefined ? -1 : state.pods.indexOf(pod);
}

/** The state without some pods. Their holdings are free, and their CPUs are remembered by name. */
export function removePods(state: Assignments, uids: ReadonlySet<string>): Assignments {
  if (uids.size === 0) return state;
  const places = Array.from(uids, (uid) => placeOf(state, uid)).filter((at) => at >= 0);
  places.sort((a, b) => a - b);
  const removed = places.map((at) => state.pods[at]!);
  const pods = [...state.pods];
  for (const at of places.reverse()) pods.splice(at, 1);
  const memory = withoutMemory(state.memory, memoryBlocks(removed));
  return withList(state, pods, memory, removed.reduce(rememberCpus, state.lastCpus));
}

// At most this many names are remembered; the oldest goes first.
const MOST_NAMES = 64;

/** Adds names. Each name appears once, the latest last. */
export function rememberNames<Named extends Pick<NamedCpus, 'name'>>(
  last: readonly Named[],
  more: readonly Named[],
): readonly Named[] {
  return more.reduce(
    (all, named) => [...all.filter((each) => each.name !== named.name), named].slice(-MOST_NAMES),
    last,
  );
}

function rememberCpus(last: readonly NamedCpus[], pod: PodAssignment): readonly NamedCpus[] {
  const { uid, name } = pod;
  const cpus = presentCpus(pod);
  // A name that was generated for one grant never comes again.
  return name === uid || cpus.isEmpty ? last : rememberNames(last, [{ name, cpus }]);
}

/** The state with one pod replaced. `memory`: the memory booked with it. */
export function replacePod(
  state: Assignments,
  pod: PodAssignment,
  memory: BookedMemory = state.memory,
): Assignments {
  const at = placeOf(state, pod.uid);
  return withList(state, at < 0 ? state.pods : state.pods.with(at, pod), memory);
}

/**
 * Marks a container and all before it as started. The memory of init containers before it becomes
 * free for other pods, unless it is booked for the whole pod. CPUs and devices stay with the pod,
 * as in the kubelet.
 */
export function startContainer(state: Assignments, pod: PodAssignment, name: string): Assignments {
  const at = pod.containers.findIndex((container) => container.name === name);
  const hasEnded = ({ kind }: ContainerAssignment, i: number) => kind === 'init' && i < at;
  const containers = pod.containers.map((container, i) => {
    const started = container.started || i <= at;
    if (!hasEnded(container, i)) return started === container.started ? container : { ...container, started };
    return { ...container, started, memory: [], reusable: { ...container.reusable, memory: [] } };
  });
  const ended = pod.containers.filter(hasEnded).flatMap(({ memory }) => memory);
  const memory = pod.booking ? state.memory : withoutMemory(state.memory, ended);
  return replacePod(state, { ...pod, containers }, memory);
}

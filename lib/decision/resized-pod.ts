// Resized pod: a grant of one container that is to have other amounts, as a question to decide, and what
// becomes of it. Pure.
import type { Assignments } from '../account/assignments.js';
import { type MemoryBlock, releaseMemory } from '../account/booked-memory.js';
import type { ContainerAssignment, PodAssignment } from '../account/pod-assignment.js';
import { removePods, replacePod } from '../account/pod-changes.js';
import type { CpuSnapshot } from '../account/pools.js';
import { type Placement, recordedPlacement } from '../input/placement.js';
import { guaranteedPod } from '../input/pods/pod-request.js';
import { MILLI } from '../input/values/quantity.js';
import type { Topology } from '../machine/topology.js';
import type { Decision } from './decision.js';
import type { DeviceResources } from './devices/device-resources.js';
import { NEVER, type Question } from './question.js';

/** Where it is decided: all of it is input. */
export interface ResizeGround {
  readonly topology: Topology;
  readonly present: CpuSnapshot;
  readonly resources: DeviceResources;
  readonly state: Assignments;
}

/** What is left out stays as it is. */
export interface ResizedAmounts {
  /** Exclusive ones. */
  readonly cpu?: number | undefined;
  /** Bytes. */
  readonly memory?: number | undefined;
}

/** As it is then. */
export interface Resized {
  readonly pod: PodAssignment;
  readonly next: Assignments;
}

/** A question about a grant that is on record. */
export interface ResizeQuestion extends Question {
  /** The state with the grant in it. */
  readonly recorded: Assignments;
  readonly resized: PodAssignment;
}

/** `defaults`: for what is not on record of its placement. */
export function resizeQuestion(
  { topology, present, resources, state }: ResizeGround,
  pod: PodAssignment,
  { cpu, memory }: ResizedAmounts,
  defaults: Placement,
): ResizeQuestion {
  const [now] = pod.containers as [ContainerAssignment];
  const requests: Record<string, number> = {
    ...now.request,
    ...(cpu !== undefined && { cpu: cpu * MILLI + (pod.mixed ?? 0) }),
    ...(memory !== undefined && { memory }),
  };
  const container = { name: now.name, kind: now.kind, requests };
  return {
    ...{ topology, present, resources, recorded: state },
    state: removePods(state, new Set([pod.uid])),
    request: {
      pod: guaranteedPod(pod, container, pod.mixed !== undefined),
      owner: 'process',
      placement: recordedPlacement(pod, defaults),
      enforcement: {},
      isForCaller: pod.owner.kind === 'process',
      wait: false,
    },
    // What they hold for the pod stays as it is.
    providers: [],
    owner: pod.owner,
    uid: pod.uid,
    trialUid: '',
    now: NEVER,
    dryRun: false,
    resized: pod,
  };
}

/** `decision`: of the question. */
export function resizedPod({ recorded, resized, request }: ResizeQuestion, decision: Decision): Resized {
  const { requests } = request.pod.containers[0]!;
  const [now] = resized.containers as [ContainerAssignment];
  const [{ cpus, held, hint, memory: blocks }] = decision.pod.containers as [ContainerAssignment];
  const isAsked = ({ type }: MemoryBlock) => (requests[type] ?? 0) > 0;
  const isBookedAnew = blocks.length > 0;
  // Memory of which no amount has changed stays booked where it is, whatever has become of the
  // nodes; what is not asked for any more is given back.
  const left = now.memory.filter((block) => !isAsked(block)).reduce(releaseMemory, recorded.memory);
  const after = {
    ...{ ...now, request: requests, cpus, held, hint },
    memory: isBookedAnew ? blocks : now.memory.filter(isAsked),
  };
  const pod = { ...resized, upcoming: null, containers: [after] };
  return { pod, next: replacePod(recorded, pod, isBookedAnew ? decision.next().memory : left) };
}

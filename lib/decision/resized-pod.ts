// Resized pod: a one-container grant with new amounts, as a question to decide, and the result.
// Pure.
import type { Assignments } from '../account/assignments.js';
import { type MemoryBlock, releaseMemory } from '../account/booked-memory.js';
import type { ContainerAssignment, PodAssignment } from '../account/pod-assignment.js';
import { removePods, replacePod } from '../account/pod-changes.js';
import { type Placement, recordedPlacement } from '../input/placement.js';
import { guaranteedPod } from '../input/pods/pod-request.js';
import { MILLI } from '../input/values/quantity.js';
import type { Decision } from './decision.js';
import { NEVER, type Question } from './question.js';

/** The whole input of a resize. */
export type ResizeFacts = Pick<Question, 'topology' | 'present' | 'resources' | 'state' | 'within'>;

/** An omitted amount stays as it is. */
export interface ResizedAmounts {
  /** Exclusive CPUs. */
  readonly cpu?: number | undefined;
  /** Bytes. */
  readonly memory?: number | undefined;
}

/** The grant and the state after the resize. */
export interface Resized {
  readonly pod: PodAssignment;
  readonly next: Assignments;
}

/** A question about a grant on record. */
export interface ResizeQuestion extends Question {
  /** The state with the grant in it. */
  readonly recorded: Assignments;
  readonly resized: PodAssignment;
}

/** `defaults`: for parts of the placement that are not on record. */
export function resizeQuestion(
  { topology, present, resources, state, within }: ResizeFacts,
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
    topology,
    present,
    resources,
    within,
    recorded: state,
    state: removePods(state, new Set([pod.uid])),
    request: {
      pod: guaranteedPod(pod, container, pod.mixed !== undefined),
      owner: 'process',
      placement: recordedPlacement(pod, defaults),
      enforcement: {},
      isForCaller: pod.owner.kind === 'process',
      wait: false,
    },
    // Providers keep what they hold for the pod.
    providers: [],
    owner: pod.owner,
    uid: pod.uid,
    trialUid: '',
    now: NEVER,
    dryRun: false,
    resized: pod,
  };
}

/** `decision`: the answer to the question. */
export function resizedPod({ recorded, resized, request }: ResizeQuestion, decision: Decision): Resized {
  const { requests } = request.pod.containers[0]!;
  const [now] = resized.containers as [ContainerAssignment];
  const [{ cpus, held, hint, memory: blocks }] = decision.pod.containers as [ContainerAssignment];
  const isRequested = ({ type }: MemoryBlock) => (requests[type] ?? 0) > 0;
  const isRebooked = blocks.length > 0;
  // Memory with unchanged amounts stays booked where it is, even on lost nodes. Types no longer
  // requested are given back.
  const left = now.memory.filter((block) => !isRequested(block)).reduce(releaseMemory, recorded.memory);
  const memory = isRebooked ? blocks : now.memory.filter(isRequested);
  const after = { ...now, request: requests, cpus, held, hint, memory };
  const pod = { ...resized, upcoming: null, containers: [after] };
  return { pod, next: replacePod(recorded, pod, isRebooked ? decision.next().memory : left) };
}

// Question: what a decision looks at, and what custom hint providers hear of it.
import type { Assignments } from '../account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import type { CpuSnapshot } from '../account/pools.js';
import { placementUnder } from '../input/placement.js';
import { amountFor } from '../input/pods/pod-request.js';
import { podUnder } from '../input/pods/pod-resources.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import type { AdmissionRequest } from '../input/request.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { DeviceResources } from './devices/device-resources.js';
import { askToRelease, type HintProvider, type HintRequest } from './hints/hint-provider.js';
import type { FreeHugepages } from './memory/memory-draft.js';
import { isBookedWhole } from './pod-level/pod-level.js';

/** When what is only planned is admitted. */
export const NEVER = '1970-01-01T00:00:00.000Z';

/** What a decision looks at: all of it is input, nothing is read from the machine. */
export interface Question {
  readonly topology: Topology;
  readonly present: CpuSnapshot;
  readonly state: Assignments;
  readonly request: AdmissionRequest;
  readonly resources: DeviceResources;
  readonly providers: readonly HintProvider[];
  readonly owner: OwnerRecord;
  readonly uid: string;
  /** By which custom providers know the pod while weaker policies are tried. */
  readonly trialUid: string;
  /** In ISO 8601. */
  readonly now: string;
  readonly dryRun: boolean;
  /** What the kernel has free of hugepages, where that must do; else what is on record. */
  readonly hugepages?: FreeHugepages | undefined;
  /** The only CPUs to choose from; undefined: all that are free. */
  readonly within?: CpuSet;
  /** The pod whose only container is resized to what is asked for; it is not in `state`. */
  readonly resized?: PodAssignment;
}

/**
 * The question as the machine's settings have it: by which kubelet it is decided, and what that
 * makes of resources of a whole pod.
 * @throws ERR_INVALID_POD
 */
export function underSettings(question: Question): Question {
  const { request, state } = question;
  const placement = placementUnder(state.settings.kubeletVersion, request.placement);
  const pod = podUnder(state.settings, request.pod);
  if (placement === request.placement && pod === request.pod) return question;
  return { ...question, request: { ...request, placement, pod } };
}

/** What a custom provider is asked. `container`: undefined: for the whole pod. */
export function hintRequest({
  question,
  container,
}: {
  readonly question: Question;
  readonly container: ContainerRequest | undefined;
}): HintRequest {
  const { request, dryRun } = question;
  return Object.freeze({
    pod: podOf(question),
    container: container?.name ?? null,
    kind: container?.kind ?? null,
    requests: container?.requests ?? podRequests(request),
    dryRun,
  });
}

function podOf({ uid, request: { pod } }: Question): HintRequest['pod'] {
  return Object.freeze({ uid, name: pod.name ?? uid, qosClass: pod.qosClass });
}

function podRequests({ pod, placement }: AdmissionRequest): Record<string, number> {
  const resources = new Set(pod.containers.flatMap(({ requests }) => Object.keys(requests)));
  const ofContainers = [...resources].map((resource) => [resource, amountFor(pod, undefined, resource)]);
  // What is booked for the pod as a whole counts, whatever its containers ask for.
  const whole = isBookedWhole(pod, placement) ? pod.resources!.requests : {};
  return Object.freeze({ ...Object.fromEntries(ofContainers), ...whole });
}

/**
 * Has custom providers give back what they allocated for a pod that is not admitted after all.
 * Answers the first error.
 */
export function undo(question: Question): unknown {
  if (question.providers.length === 0) return undefined;
  return askToRelease(question.providers, { pod: podOf(question), dryRun: question.dryRun });
}

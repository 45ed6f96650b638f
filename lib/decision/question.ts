// Question: the input of a decision, and the part that custom hint providers see.
import type { Assignments } from '../account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import type { CpuSnapshot } from '../account/pools.js';
import { placementUnder } from '../input/placement.js';
import { amountFor } from '../input/pods/pod-request.js';
import { podUnder } from '../input/pods/pod-resources.js';
import type { ContainerRequest } from '../input/pods/resource-amounts.js';
import type { MemoryTiers } from '../input/policies.js';
import type { AdmissionRequest } from '../input/requests/request.js';
import { withCpuNodes } from '../machine/cpu-nodes.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { MAX_HINT_NODES } from '../machine/hint-masks.js';
import type { Topology } from '../machine/topology.js';
import { type DeviceResources, nearCpuNodes } from './devices/device-resources.js';
import { type FreeHugepages, hugepagesAt } from './draft/memory-draft.js';
import { isBookedWhole } from './draft/partition.js';
import { askToRelease, type HintProvider, type HintRequest } from './hints/hint-provider.js';

/** The admission time of plans. */
export const NEVER = '1970-01-01T00:00:00.000Z';

/** The whole input of a decision; a decision reads nothing from the machine. */
export interface Question {
  readonly topology: Topology;
  readonly present: CpuSnapshot;
  readonly state: Assignments;
  readonly request: AdmissionRequest;
  readonly resources: DeviceResources;
  readonly providers: readonly HintProvider[];
  readonly owner: OwnerRecord;
  readonly uid: string;
  /** The uid that custom providers get while weaker policies are tried. */
  readonly trialUid: string;
  /** In ISO 8601. */
  readonly now: string;
  readonly dryRun: boolean;
  /** The kernel's free hugepages, if they must suffice; else only the record counts. */
  readonly hugepages?: FreeHugepages | undefined;
  /** The only CPUs to choose from; undefined: all free CPUs. */
  readonly within?: CpuSet | undefined;
  /** The tiers to book memory on, of those that the request names; undefined: all. */
  readonly memoryTiers?: MemoryTiers;
  /** Lists the hints that are merged even if it is not planned; see {@link listsHints}. */
  readonly mustList?: boolean;
  /** For a resize: the pod whose only container gets the requested amounts. Not in `state`. */
  readonly resized?: PodAssignment;
}

/** True if the request's NUMA nodes are chosen jointly. */
export function isJoint({ request: { placement }, topology, providers }: Question): boolean {
  if (placement.nodeChoice !== 'joint' || topology.nodes.length > MAX_HINT_NODES) return false;
  // Under `none`, custom providers are not asked.
  return placement.topologyPolicy !== 'none' || providers.length === 0;
}

/**
 * True if a decision lists the hints that are merged, which takes as long as their merge: a plan shows
 * them, and callbacks cannot be asked again for the rejection, which shows them too. Init containers
 * may be placed by what they are offered.
 */
export function listsHints({ dryRun, mustList, providers, resources, request }: Question): boolean {
  if (dryRun || mustList || providers.length > 0 || request.pod.containers[0]!.kind !== 'app') return true;
  for (const { preferredAllocation } of resources.values()) if (preferredAllocation) return true;
  return false;
}

/**
 * Applies the machine's settings to the question: the kubelet version, and what that makes of
 * pod-level resources; and the nodes that the request is restricted to.
 * @throws ERR_INVALID_POD
 */
export function underSettings(question: Question): Question {
  const { request, state } = question;
  const placement = placementUnder(state.settings.kubeletVersion, request.placement);
  const pod = podUnder(state.settings, request.pod);
  const asked = placement.onlyCpuNodes ? onCpuNodes(question) : question;
  if (placement === request.placement && pod === request.pod) return asked;
  return { ...asked, request: { ...request, placement, pod } };
}

// The same question without the NUMA nodes that have no CPUs.
function onCpuNodes(question: Question): Question {
  const topology = withCpuNodes(question.topology);
  if (topology === question.topology) return question;
  const { nodes } = question.topology;
  const hugepages = question.hugepages && hugepagesAt(question.hugepages, (at) => !nodes[at]!.cpus.isEmpty);
  const resources = new Map(
    Array.from(question.resources, ([name, each]) => [name, nearCpuNodes(each, question.topology)]),
  );
  return { ...question, topology, resources, hugepages };
}

/** The request to a custom provider. `container`: undefined for the whole pod. */
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
  // A booking for the whole pod counts, whatever its containers request.
  const whole = isBookedWhole(pod, placement) ? pod.resources!.requests : {};
  return Object.freeze({ ...Object.fromEntries(ofContainers), ...whole });
}

/**
 * Makes custom providers give back what they allocated for a pod that is not admitted. Returns the
 * first error.
 */
export function undo(question: Question): unknown {
  if (question.providers.length === 0) return undefined;
  return askToRelease(question.providers, { pod: podOf(question), dryRun: question.dryRun });
}

// Publishes the steps of admissions and grants as they end.
import type { ChildProcess } from 'node:child_process';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { hasParts, presentCpus } from '../../account/pod-holdings.js';
import { unlessRefused } from '../../base/errors.js';
import { exclusiveCount, podExclusiveCount } from '../../decision/cpus/cpu-choices.js';
import { isBookedWhole } from '../../decision/draft/partition.js';
import { type MemoryRequests, memoryRequests } from '../../decision/memory/memory-requests.js';
import { type Placement, placementOptions } from '../../input/placement.js';
import type { PodRequest } from '../../input/pods/pod-resources.js';
import type { AdmissionRequest } from '../../input/requests/request.js';
import type { PinResult } from '../../machine/affinity.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { PlaceThreadsResult } from '../../threads/placement.js';
import { AdmissionError } from '../admission-error.js';
import type { Admission } from '../admit.js';
import {
  type AdmitMessage,
  type ApplyAction,
  type DiagnosticsContainer,
  type Source,
  traced,
} from '../diagnostics.js';
import type { Host } from '../host.js';
import { managedPod } from '../on-record.js';
import type { Attachment } from './attachment.js';

/** {@link traced} for an admission. */
export function tracedAdmission(
  host: Host,
  request: AdmissionRequest,
  action: () => Promise<Admission>,
): Promise<Admission> {
  return traced('admit', host, action, ({ value, error }) => {
    const { placement, wait } = request;
    const pod = unlessRefused(() => managedPod(host, request.pod), request.pod);
    const placed = value?.pod;
    const cpus = placed && presentCpus(placed);
    return {
      outcome: outcomeOf(value, error),
      uid: placed?.uid ?? pod.uid ?? null,
      name: placed?.name ?? pod.name ?? null,
      policy: placement.topologyPolicy,
      scope: placement.scope,
      options: Object.freeze(placementOptions(placement)),
      wait,
      containers: containersOf({ pod, placement, placed, topology: host.topology }),
      booking: bookingOf({ pod, placement, placed, topology: host.topology }),
      container: error instanceof AdmissionError ? error.rejection.explanation.container : null,
      cpus: cpus?.toString() ?? null,
      numaNodes: cpus ? host.topology.nodesOf(cpus).toString() : null,
      enforcement: placed?.enforcement.level ?? null,
    };
  });
}

function outcomeOf(admission: Admission | undefined, error: unknown): AdmitMessage['outcome'] {
  if (admission) return admission.alreadyAdmitted ? 'already' : 'admitted';
  return error instanceof AdmissionError ? 'rejected' : 'failed';
}

/** A request, and the pod that it has become. */
interface Answered {
  readonly pod: PodRequest;
  readonly placement: Placement;
  readonly placed: PodAssignment | undefined;
  readonly topology: Topology;
}

function containersOf({ pod, placement, placed, topology }: Answered): readonly DiagnosticsContainer[] {
  const isFractional = isBookedWhole(pod, placement) && podExclusiveCount(pod, placement) === 0;
  return Object.freeze(
    pod.containers.map((container) => {
      const memoryTypes = typesOf(memoryRequests({ pod, placement, topology }, container));
      const assignment = placed?.containers.find(({ name }) => name === container.name);
      // A request with parts asks for the CPUs of all parts.
      const cpus = placed && hasParts(placed) ? placed.booking?.cpus : assignment?.cpus;
      return Object.freeze({
        name: container.name,
        kind: container.kind,
        exclusiveCpus: isFractional ? 0 : exclusiveCount(pod, container, placement),
        booksMemory: memoryTypes.length > 0,
        memoryTypes,
        l3Groups: assignment?.isolation === 'pod' ? null : countL3Groups(cpus, topology),
      });
    }),
  );
}

function bookingOf({ pod, placement, placed, topology }: Answered): AdmitMessage['booking'] {
  if (!isBookedWhole(pod, placement)) return null;
  return Object.freeze({
    exclusiveCpus: podExclusiveCount(pod, placement),
    memoryTypes: typesOf(memoryRequests({ pod, placement, topology }, undefined)),
    l3Groups: countL3Groups(placed?.booking?.cpus, topology),
  });
}

const typesOf = (requests: MemoryRequests) => Object.freeze(requests.map(({ type }) => type));

function countL3Groups(cpus: CpuSet | undefined, { l3Groups }: Topology): number | null {
  if (cpus === undefined || cpus.isEmpty) return null;
  return l3Groups.filter((group) => group.cpus.intersects(cpus)).length;
}

type Applied = PinResult | PlaceThreadsResult | ChildProcess | Attachment;

function pinResultsOf(result: Applied): readonly PinResult[] {
  if ('moved' in result) return [result];
  if (!('workers' in result)) return [];
  const { main, workers, pool, v8, others } = result;
  return [main, workers, pool, v8, others];
}

/** {@link traced} for what a grant does to threads. */
export function tracedApply<
  T extends PinResult | ChildProcess | Promise<PinResult | PlaceThreadsResult | Attachment>,
>(
  grant: { readonly host: Source; readonly uid: string; readonly cpus: CpuSet },
  action: ApplyAction,
  apply: () => T,
): T {
  return traced('apply', grant.host, apply, ({ value }) => {
    const result = value as Applied | undefined;
    const pins = result === undefined ? [] : pinResultsOf(result);
    const total = (what: 'moved' | 'unmovable') =>
      pins.length === 0 ? null : pins.reduce((sum, each) => sum + each[what].length, 0);
    return {
      uid: grant.uid,
      action,
      cpus: grant.cpus.toString(),
      moved: total('moved'),
      unmovable: total('unmovable'),
      pid: result !== undefined && 'pid' in result ? (result.pid ?? null) : null,
    };
  });
}

// The steps of admission and of grants, published as they end.
import type { ChildProcess } from 'node:child_process';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { presentCpus } from '../../account/pod-holdings.js';
import { unlessRefused } from '../../base/errors.js';
import { exclusiveCount } from '../../decision/cpus/cpu-choices.js';
import { isExclusive } from '../../decision/pod-level/pod-level.js';
import { isMemoryType } from '../../input/memory-types.js';
import { placementOptions } from '../../input/placement.js';
import type { AdmissionRequest } from '../../input/request.js';
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
import { managedPod } from '../on-record.js';
import type { Site } from '../site.js';
import type { Attachment } from './attachment.js';

/** {@link traced} for an admission. */
export function tracedAdmission(
  site: Site,
  request: AdmissionRequest,
  action: () => Promise<Admission>,
): Promise<Admission> {
  return traced('admit', site, action, ({ value, error }) => {
    const { placement, wait } = request;
    const pod = unlessRefused(() => managedPod(site, request.pod), request.pod);
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
      containers: containersOf(request, placed, site.topology),
      container: error instanceof AdmissionError ? error.rejection.explanation.container : null,
      cpus: cpus?.toString() ?? null,
      numaNodes: cpus ? site.topology.nodesOf(cpus).toString() : null,
      enforcement: placed?.enforcement.level ?? null,
    };
  });
}

function outcomeOf(admission: Admission | undefined, error: unknown): AdmitMessage['outcome'] {
  if (admission) return admission.alreadyAdmitted ? 'already' : 'admitted';
  return error instanceof AdmissionError ? 'rejected' : 'failed';
}

function containersOf(
  { pod, placement }: AdmissionRequest,
  placed: PodAssignment | undefined,
  topology: Topology,
): readonly DiagnosticsContainer[] {
  const isBooked = placement.memoryPolicy !== 'None' && pod.qosClass === 'Guaranteed';
  return Object.freeze(
    pod.containers.map((container) => {
      const { name, kind, requests } = container;
      const isAsked = (key: string) => isMemoryType(key) && requests[key]! > 0;
      const isBookedHere = isBooked && isExclusive(pod, container);
      const memoryTypes = Object.freeze(isBookedHere ? Object.keys(requests).filter(isAsked) : []);
      const cpus = placed?.containers.find((each) => each.name === name)?.cpus;
      return Object.freeze({
        name,
        kind,
        exclusiveCpus: exclusiveCount(pod, container, placement),
        booksMemory: memoryTypes.length > 0,
        memoryTypes,
        l3Groups: cpus === undefined || cpus.isEmpty ? null : countL3Groups(cpus, topology),
      });
    }),
  );
}

function countL3Groups(cpus: CpuSet, { l3Groups }: Topology): number {
  return l3Groups.filter((group) => group.cpus.intersects(cpus)).length;
}

/** {@link traced} for the end of a grant; `action` may answer whether children live on by it. */
export function tracedRelease<T>(site: Source, pod: PodAssignment, action: () => Promise<T>): Promise<T> {
  return traced('release', site, action, ({ value }) => ({
    uid: pod.uid,
    name: pod.name,
    cpus: presentCpus(pod).toString(),
    handedOver: value === true,
  }));
}

function pinResultsOf(
  result: PinResult | PlaceThreadsResult | ChildProcess | Attachment,
): readonly PinResult[] {
  if ('moved' in result) return [result];
  if (!('workers' in result)) return [];
  const { main, workers, pool, v8, others } = result;
  return [main, workers, pool, v8, others];
}

/** {@link traced} for what is done to threads by a grant. */
export function tracedApply<
  T extends PinResult | ChildProcess | Promise<PinResult | PlaceThreadsResult | Attachment>,
>(
  site: Source,
  grant: { readonly uid: string; readonly cpus: CpuSet },
  action: ApplyAction,
  apply: () => T,
): T {
  return traced('apply', site, apply, ({ value }) => {
    const result = value as PinResult | PlaceThreadsResult | ChildProcess | Attachment | undefined;
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

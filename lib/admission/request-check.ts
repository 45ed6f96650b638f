// RequestCheck: what a request asks must be possible on the machine.
import { findPod } from '../account/assignments.js';
import { invalidOption } from '../base/check-options.js';
import { checkPlacement, type Placement } from '../input/placement.js';
import type { PodSpec } from '../input/pods/pod-spec.js';
import { type AdmissionRequest, parseAdmit } from '../input/requests/request.js';
import type { AdmitOptions } from '../input/requests/request-options.js';
import { NodeSet } from '../machine/cpu-set.js';
import type { ReadOnlyHost } from './host.js';
import { recordedState } from './on-record.js';

/** The checked request for a pod. @throws as {@link Manager.plan} */
export function requestFor(
  host: ReadOnlyHost,
  placement: Placement,
  pod: PodSpec,
  options: AdmitOptions,
): AdmissionRequest {
  const request = parseAdmit(pod, options, placement);
  checkRequest(host, request);
  return request;
}

/** Checks that the machine allows the placement, and has the excluded nodes. @throws ERR_INVALID_OPTION */
export function checkRequest(host: ReadOnlyHost, { placement, movable, pod }: AdmissionRequest): void {
  checkPlacement(placement, host.topology);
  const { numaNodes } = host.topology;
  const [unknown] = movable?.exclude.difference(NodeSet.from(numaNodes)) ?? [];
  if (unknown === undefined) return;
  // A pod on record keeps its terms: the machine may have lost a node since.
  if (pod.uid !== undefined && findPod(recordedState(host), pod.uid)) return;
  invalidOption('movable.exclude', unknown, `NUMA nodes of the machine, which are ${numaNodes.join(', ')}`);
}

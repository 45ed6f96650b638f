// RequestCheck: what a request asks must be possible on the machine.
import { findPod } from '../account/assignments.js';
import { invalidOption } from '../base/check-options.js';
import { checkPlacement } from '../input/placement.js';
import type { AdmissionRequest } from '../input/requests/request.js';
import { NodeSet } from '../machine/cpu-set.js';
import { assignmentsOf } from './on-record.js';
import type { ReadOnlySite } from './site.js';

/** Checks that the machine allows the placement, and has the excluded nodes. @throws ERR_INVALID_OPTION */
export function checkRequest(site: ReadOnlySite, request: AdmissionRequest): void {
  checkPlacement(request.placement, site.topology);
  checkExcluded(site, request);
}

// A pod on record keeps its terms: the machine may have lost a node since.
function checkExcluded(site: ReadOnlySite, { movable, pod }: AdmissionRequest): void {
  const { numaNodes } = site.topology;
  const [unknown] = movable?.exclude.difference(NodeSet.from(numaNodes)) ?? [];
  if (unknown === undefined) return;
  const isOnRecord =
    pod.uid !== undefined && findPod(assignmentsOf(site, site.ledger.read()), pod.uid) !== undefined;
  if (!isOnRecord)
    invalidOption('movable.exclude', unknown, `NUMA nodes of the machine, which are ${numaNodes.join(', ')}`);
}

// numalign/tools: the names, rules and words of numalign, for programs that take requests from people
// or files, such as its command line.
import { type ManagerOptions, parseConfig } from '../input/config.js';
import { parsePod as parse } from '../input/pods/pod-request.js';
import type { PodRequest } from '../input/pods/pod-resources.js';
import type { PodSpec } from '../input/pods/pod-spec.js';
import { isExtendedResource as isExtended } from '../input/pods/resource-amounts.js';
import { parseAcquire } from '../input/requests/request.js';
import type { AcquireOptions } from '../input/requests/request-options.js';
import type { GrantWatch } from '../managers/grant-watch.js';
import { late } from '../managers/late-classes.js';
import type { ManagerView } from '../managers/manager-view.js';

export { BY_CGROUPS, BY_MASKS, BY_RECORD, ENFORCEMENT_LEVELS, isAtLeast } from '../account/levels.js';
export { QUIET_PARTS } from '../account/pod-assignment.js';
export { checkOptions, display, invalidOption, nearestOf, thrownText } from '../base/check-options.js';
export { errnoName, errorName, errorText } from '../base/codes/errno.js';
export { isNumalignError, kernelFacts, reworded, unlessRefused } from '../base/errors.js';
export { DEFAULT_GATES, DEFAULT_VERSION, FEATURE_GATES, KUBELET_VERSIONS } from '../base/kubelet-features.js';
export { anySignal } from '../base/notices/any-signal.js';
export { Backoff, type Pauses } from '../base/notices/backoff.js';
export { delayNotices } from '../base/notices/notice-delay.js';
export { isShortage } from '../base/refusal.js';
export { cpusNamed, nodesNamed } from '../base/text/cpus-named.js';
export { printable } from '../base/text/printable.js';
export { parseProcStat } from '../base/text/proc-stat.js';
export { quoted, shellWord } from '../base/text/shell-word.js';
export { findHierarchy, type Hierarchy, neededHierarchy } from '../cgroups/files/hierarchies.js';
export { cgroupFolder, limitsOf } from '../cgroups/limits.js';
export { startReaper } from '../children/reaper.js';
export { cpusOfGrants } from '../decision/grant-info.js';
export { checkDeviceSelection, PATTERN_FIELDS } from '../input/devices.js';
export { AIMED_LEVELS } from '../input/enforcement-options.js';
export { MACHINE_FLAGS, type MachineFlag, type MachineOptions } from '../input/machine-options.js';
export { type OptionTables, optionRows, type Setter } from '../input/option-table.js';
export {
  PLACEMENT_OPTIONS,
  type PlacementOptions,
  type RequestPlacementOptions,
} from '../input/placement-options.js';
export type { PodRequest } from '../input/pods/pod-resources.js';
export {
  checkPodCount,
  contentsOf,
  MAX_REPLICAS,
  type ManifestContents,
  type OtherManifest,
  type Workload,
  withUid,
} from '../input/pods/workload.js';
export { excludedBy } from '../input/policy-options.js';
export { parseQuietPart, QUIET_TEXT } from '../input/requests/quiet.js';
export { cgroupAdvice, commandIn } from '../input/values/machine-folder.js';
export { binaryBytes, isMemoryType } from '../input/values/memory-types.js';
export { formatBytes, parseQuantity } from '../input/values/quantity.js';
export type { GrantWatch, WatchedGrant } from '../managers/grant-watch.js';
export { stateDirVariable } from '../state/folder/chosen-folder.js';
export { checkWritable } from '../state/folder/writable.js';
export { cgroupRootRefusal, forgetFolder } from '../state/root-users.js';

// Functions, not exports of the other modules: what they need is loaded when they are called.

/**
 * Checks options of {@link openManager} without a machine.
 * @throws ERR_INVALID_OPTION, ERR_INVALID_LIST
 */
export function checkManagerOptions(options: ManagerOptions): void {
  parseConfig(options);
}

/**
 * Checks options of {@link Manager.acquire} without a machine.
 * @throws ERR_INVALID_OPTION, ERR_INVALID_QUANTITY
 */
export function checkAcquireOptions(options: AcquireOptions): void {
  parseAcquire(options, parseConfig({}).placement);
}

/**
 * What a pod requests, of a plain pod or a manifest.
 * @throws ERR_INVALID_POD, which names the field; ERR_INVALID_QUANTITY; ERR_INVALID_OPTION for an
 *   unknown key of a plain pod
 */
export function parsePod(pod: PodSpec): PodRequest {
  return parse(pod);
}

/** True for the name of a resource that devices have, such as `example.com/nic`. */
export function isExtendedResource(resource: string): boolean {
  return isExtended(resource);
}

/** Watches the grants of a state. */
export function watchGrants(view: ManagerView): GrantWatch {
  return new late.GrantWatch(view);
}

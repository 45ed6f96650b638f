// numalign: what most programs need.

export type { BookedMemory, MemoryBlock } from './account/booked-memory.js';
export type { EnforcementLevel } from './account/levels.js';
export type { DeviceAssignment } from './account/pod-assignment.js';
export { AdmissionError } from './admission/admission-error.js';
export type { Attachment } from './admission/grants/attachment.js';
export type { SharedGroup, SharedMemberTarget } from './admission/grants/shared-membership.js';
export type { Transfer } from './admission/grants/transfer.js';
export type { Plan, PlanOnRecord } from './admission/plan.js';
export type { PodContainer } from './admission/pod-container.js';
export type { Warning } from './admission/warnings.js';
export { type ErrorCode, type ErrorDetails, NumalignError } from './base/errors.js';
export type { GrantEvents, MoveEvent } from './changes/move-event.js';
export type { GrantForkOptions, GrantSpawnOptions } from './children/spawn.js';
export { threadCounts } from './children/thread-counts.js';
export type { Flag } from './decision/flags/flags.js';
export type { GrantInfo } from './decision/grant-info.js';
export type { Settings } from './decision/machine-settings.js';
export type { MemoryTable } from './decision/memory/memory-tables.js';
export type { Rejection } from './decision/rejection.js';
export type { SharedMember } from './enforcement/members/shared-member.js';
export type { MemoryBinding } from './enforcement/memory-binding.js';
export type { EmptyGrant, Optional } from './grants/empty-grant.js';
export { Grant } from './grants/grant.js';
export { GrantPart } from './grants/grant-part.js';
export { Pod } from './grants/pod.js';
export type { ManagerOptions } from './input/config.js';
export type { AimedLevel } from './input/enforcement-options.js';
export type { MachineOptions } from './input/machine-options.js';
export type { PlacementOptions, RequestPlacementOptions } from './input/placement-options.js';
export type { ContainerSpec, PodSpec } from './input/pods/pod-spec.js';
export type { ResourceAmounts } from './input/pods/resource-amounts.js';
export type { IsolationChoice, PlacementChoice } from './input/policies.js';
export type { CpuRange } from './input/requests/elastic.js';
export type { OwnerChoice } from './input/requests/owner.js';
export type { AcquireOptions, AdmitOptions, RequestOptions } from './input/requests/request-options.js';
export type { ResizeOptions } from './input/requests/resize.js';
export { MACHINE_STATE_DIR } from './input/values/machine-folder.js';
export type { Quantity } from './input/values/quantity.js';
export { type PinOptions, type PinResult, pinThread, type Threads } from './machine/affinity.js';
export { CpuSet, NodeSet } from './machine/cpu-set.js';
export type { EmptyManager } from './managers/empty-manager.js';
export type { DeviceOptions } from './managers/managed-machine.js';
export { Manager } from './managers/manager.js';
export type { ManagerEvents } from './managers/manager-parts.js';
export { ManagerView } from './managers/manager-view.js';
export type { StateChange } from './managers/manager-watch.js';
export type { ViewOptions } from './managers/open-machine.js';
export type { PinAcquireOptions } from './managers/pin-to-grant.js';
export { openManager } from './open-manager.js';
export { pin } from './pin.js';
export type { PlaceWorkersOptions, WorkerBirth, WorkerPlacement } from './pools/worker-placement.js';
export { type Support, supported } from './supported.js';
export type { BufferOptions } from './threads/buffers.js';
export type { MemoryMigration, MemoryMode, MemoryPinResult } from './threads/memory.js';
export type { GrantPinOptions, GrantPinResult } from './threads/pin.js';
export type {
  PlaceThreadsOptions,
  PlaceThreadsResult,
  ThreadCpus,
  ThreadPlacement,
} from './threads/placement.js';
export type { PrewarmOptions } from './threads/pool.js';
export type { ScheduleOptions } from './threads/scheduling.js';
export type { GrantWorkerOptions } from './threads/worker.js';

// What the package exports.

export type { BookedMemory, MemoryBlock } from './account/booked-memory.js';
export type { CpuMove } from './account/cpu-identities.js';
export type { DeviceAssignment, EnforcementLevel } from './account/pod-assignment.js';
export {
  type AdmitMessage,
  type ApplyAction,
  type ApplyMessage,
  DIAGNOSTICS_CHANNELS,
  type DiagnosticsContainer,
  type DiagnosticsMessages,
  type DiagnosticsOrigin,
  type DiagnosticsStep,
  type DiagnosticsStepMessage,
  type DriftMessage,
  type ErrorMessage,
  type ReconcileMessage,
  type ReleaseMessage,
} from './admission/diagnostics.js';
export type { Attachment } from './admission/grants/attachment.js';
export type { SharedMemberTarget } from './admission/grants/shared-membership.js';
export type { StateChange } from './admission/manager-watch.js';
export type { Plan, PlanOnRecord, PodContainer } from './admission/plan.js';
export type {
  CpuQuota,
  EnforcementShortfall,
  GrantFlagged,
  HugepagesTaken,
  LapsedGrant,
  ResourceUnknown,
  SettingUnmet,
  StateArchived,
  Warning,
} from './admission/warnings.js';
export type { AuditTotals, CpuAudit, ForeignTask, GrantAudit, ThreadAudit } from './audit/account.js';
export type { AuditOptions } from './audit/grant-audits.js';
export { type ErrorCode, type ErrorDetails, NumalignError } from './base/errors.js';
export type { ThreadRole } from './base/native-threads.js';
export type { Throttling } from './cgroups/cpuset-group.js';
export type { CgroupLimits, CpuLimit, MemoryLimit } from './cgroups/limits.js';
export type { PreferredAllocation, PreferredAllocationRequest } from './decision/device-resources.js';
export type {
  AdmissionReason,
  Explanation,
  Holder,
  OfferedHints,
  ResourceExplanation,
} from './decision/explanation.js';
export type { CpuFlag, CpuMoved, DeviceGone, Flag, MemoryGone } from './decision/flags.js';
export type { GrantInfo } from './decision/grant-info.js';
export type {
  HintProvider,
  HintRequest,
  NodeAmount,
  ReleaseRequest,
} from './decision/hints/hint-provider.js';
export {
  type MergeOptions,
  type MergeResult,
  mergeHints,
  type ProviderHints,
} from './decision/hints/merge-hints.js';
export type { Settings } from './decision/machine-settings.js';
export type { MemoryTable } from './decision/memory-tables.js';
export type { Offer } from './decision/place.js';
export type { SharedMember } from './enforcement/confinement.js';
export type { Drift, DriftKind, Hotplug, ReconcileReport } from './enforcement/drift.js';
export { Grant, type Transfer } from './grant.js';
export { MACHINE_STATE_DIR, type ManagerOptions } from './input/config.js';
export {
  type DevicePattern,
  type DeviceSelection,
  type DeviceSpec,
  type DeviceTexts,
  selectDevices,
} from './input/devices.js';
export type { AimedLevel } from './input/enforcement-options.js';
export type { MachineOptions, ReservedAmounts, ReservedMemory } from './input/machine-options.js';
export type {
  ContainerSpec,
  PlainPod,
  PodContainers,
  PodManifest,
  PodSpec,
  QosClass,
  ResourceRequirements,
} from './input/pod-request.js';
export type {
  CpuManagerPolicy,
  CpuManagerPolicyOptions,
  IsolatedCpusChoice,
  MemoryManagerPolicy,
  PlacementOptions,
  RequestPlacementOptions,
  TopologyManagerPolicy,
  TopologyManagerPolicyOptions,
  TopologyManagerScope,
} from './input/policies.js';
export type { Quantity } from './input/quantity.js';
export type {
  AcquireOptions,
  AdmitOptions,
  OwnerChoice,
  RequestOptions,
  ResizeOptions,
} from './input/request.js';
export type { ResourceAmounts } from './input/resource-amounts.js';
export {
  type CpuManagerFormatOptions,
  type CpuManagerState,
  formatCpuManagerState,
  parseCpuManagerState,
} from './kubelet/cpu-manager-state.js';
export type { KubeletFiles } from './kubelet/kubelet-files.js';
export type { KubeletFormatOptions } from './kubelet/kubelet-format.js';
export type { KubeletImportOptions } from './kubelet/kubelet-import.js';
export {
  formatMemoryManagerState,
  type KubeletMemoryBlock,
  type KubeletMemoryTable,
  type KubeletNumaNode,
  type MemoryManagerState,
  parseMemoryManagerState,
} from './kubelet/memory-manager-state.js';
export {
  affinity,
  type MovedThread,
  type PinOptions,
  type PinResult,
  pin,
  pinThread,
  type ThreadInfo,
  type Threads,
  threadId,
  threads,
  type UnmovableThread,
} from './machine/affinity.js';
export { CpuSet, NodeSet } from './machine/cpu-set.js';
export { type DiscoverOptions, discover } from './machine/discovery.js';
export { HintFamily, type TopologyHint } from './machine/hints.js';
export type {
  CpuGroup,
  CpuLocation,
  MachineJson,
  NumaNode,
  PciDevice,
  PciDeviceKind,
} from './machine/machine-description.js';
export { NodeMask } from './machine/node-mask.js';
export { type BestFitOptions, type CpuHintsOptions, Topology } from './machine/topology.js';
export { type DeviceOptions, type KubeletImport, Manager, type ManagerEvents } from './manager.js';
export { openManager } from './open-manager.js';
export { Pod } from './pod.js';
export type { StateRecovered } from './state/store.js';
export type { BufferOptions } from './threads/buffers.js';
export {
  type MemoryMigration,
  type MemoryMode,
  type MemoryPinResult,
  type MemoryPlacement,
  type MemoryPolicyMode,
  memoryPlacement,
} from './threads/memory.js';
export type { GrantPinOptions, GrantPinResult } from './threads/pin.js';
export type {
  PlaceThreadsOptions,
  PlaceThreadsResult,
  ThreadCpus,
  ThreadPlacement,
} from './threads/placement.js';
export { type PoolProbe, type PrewarmOptions, probePool } from './threads/pool.js';
export { type ScheduleOptions, scheduling, type ThreadScheduling } from './threads/scheduling.js';
export type { GrantWorkerOptions } from './threads/worker.js';

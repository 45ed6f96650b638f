// What the package exports.
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
} from './affinity.js';
export type { AuditTotals, CpuAudit, ForeignTask, GrantAudit, ThreadAudit } from './audit/account.js';
export type { AuditOptions } from './audit/grant-audits.js';
export type { Throttling } from './cgroups/cpuset-group.js';
export type { CgroupLimits, CpuLimit, MemoryLimit } from './cgroups/limits.js';
export {
  type AimedLevel,
  type CpuManagerPolicy,
  type CpuManagerPolicyOptions,
  type IsolatedCpusChoice,
  MACHINE_STATE_DIR,
  type MachineOptions,
  type ManagerOptions,
  type MemoryManagerPolicy,
  type PlacementOptions,
  type RequestPlacementOptions,
  type ReservedAmounts,
  type ReservedMemory,
  type TopologyManagerPolicy,
  type TopologyManagerPolicyOptions,
  type TopologyManagerScope,
} from './config.js';
export { CpuSet, NodeSet } from './cpu-set.js';
export type { PreferredAllocation, PreferredAllocationRequest } from './device-resources.js';
export {
  type DevicePattern,
  type DeviceSelection,
  type DeviceSpec,
  type DeviceTexts,
  selectDevices,
} from './devices.js';
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
} from './diagnostics.js';
export type { Attachment } from './enforcement/attachment.js';
export type { SharedMember } from './enforcement/shared-members.js';
export { type ErrorCode, type ErrorDetails, NumalignError } from './errors.js';
export { Grant, type GrantPinOptions, type GrantPinResult, type Transfer } from './grant.js';
export type { GrantInfo } from './grant-info.js';
export type { HintProvider, HintRequest, NodeAmount, ReleaseRequest } from './hint-provider.js';
export { HintFamily, type TopologyHint } from './hints.js';
export type { Settings } from './machine-settings.js';
export {
  type DeviceOptions,
  type KubeletImport,
  Manager,
  type ManagerEvents,
  openManager,
  type SharedMemberTarget,
} from './manager.js';
export type { StateChange } from './manager-watch.js';
export type { Offer } from './managers/decision.js';
export type {
  AdmissionReason,
  Explanation,
  Holder,
  OfferedHints,
  ResourceExplanation,
} from './managers/explanation.js';
export type { CpuFlag, CpuMoved, DeviceGone, Flag, MemoryGone } from './managers/flags.js';
export type { KubeletFiles, KubeletImportOptions } from './managers/kubelet-import.js';
export type { MemoryTable } from './managers/memory-manager.js';
export type { Plan, PodContainer } from './managers/plan.js';
export type { PlanOnRecord } from './managers/topology-manager.js';
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
} from './managers/warnings.js';
export {
  type BufferOptions,
  type MemoryMigration,
  type MemoryMode,
  type MemoryPinResult,
  type MemoryPlacement,
  type MemoryPolicyMode,
  memoryPlacement,
} from './memory.js';
export { type MergeOptions, type MergeResult, mergeHints, type ProviderHints } from './merge-hints.js';
export type { ThreadRole } from './native.js';
export { NodeMask } from './node-mask.js';
export { Pod } from './pod.js';
export type {
  ContainerSpec,
  PlainPod,
  PodContainers,
  PodManifest,
  PodSpec,
  QosClass,
  ResourceAmounts,
  ResourceRequirements,
} from './pod-request.js';
export type { Quantity } from './quantity.js';
export type { Drift, DriftKind, Hotplug, ReconcileReport } from './reconcile/drift.js';
export type { AcquireOptions, AdmitOptions, OwnerChoice, RequestOptions, ResizeOptions } from './request.js';
export type { DeviceAssignment, EnforcementLevel, MemoryBlock } from './state/assignments.js';
export type { BookedMemory } from './state/booked-memory.js';
export type { CpuMove } from './state/cpu-identities.js';
export {
  type CpuManagerFormatOptions,
  type CpuManagerState,
  formatCpuManagerState,
  formatMemoryManagerState,
  type KubeletFormatOptions,
  type KubeletMemoryBlock,
  type KubeletMemoryTable,
  type KubeletNumaNode,
  type MemoryManagerState,
  parseCpuManagerState,
  parseMemoryManagerState,
} from './state/kubelet-format.js';
export type { StateRecovered } from './state/store.js';
export type { PlaceThreadsOptions, PlaceThreadsResult, ThreadCpus, ThreadPlacement } from './threads/placement.js';
export { type PoolProbe, type PrewarmOptions, probePool } from './threads/pool.js';
export { type ScheduleOptions, scheduling, type ThreadScheduling } from './threads/scheduling.js';
export type { GrantWorkerOptions } from './threads/worker.js';
export {
  type BestFitOptions,
  type CpuGroup,
  type CpuHintsOptions,
  type CpuLocation,
  type DiscoverOptions,
  discover,
  type MachineJson,
  type NumaNode,
  type PciDevice,
  type PciDeviceKind,
  Topology,
} from './topology.js';

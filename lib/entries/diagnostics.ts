// numalign/diagnostics: what numalign and the kernel do, and why: threads, memory, audits, flags,
// warnings, explanations, the status of the state, and the channels that managers publish on.

export type { CpuMove } from '../account/cpu-identities.js';
export type {
  CacheShare,
  Elasticity,
  MoveConsent,
  PodBooking,
  QuietPart,
} from '../account/pod-assignment.js';
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
  type WaitMessage,
} from '../admission/diagnostics.js';
export type { Planner, PlannerOptions, PodPlan, PreparedPod } from '../admission/planner.js';
export type {
  CpuQuota,
  EnforcementShortfall,
  GrantFlagged,
  LapsedGrant,
  ResourceUnknown,
  SettingUnmet,
  StateArchived,
} from '../admission/warnings.js';
export type { AuditTotals, CpuAudit, ForeignTask, GrantAudit, ThreadAudit } from '../audit/account.js';
export type { CpuCounters, ThreadCounters, ThrottlingCounters } from '../audit/counters.js';
export type { AuditOptions } from '../audit/grant-audits.js';
export type { ThreadRole } from '../base/native-threads.js';
export type { AdmissionReason, RejectionCode, ShortageCode } from '../base/refusal.js';
export type { Throttling } from '../cgroups/files/cpu-stat.js';
export type { CgroupLimits, CpuLimit, MemoryLimit } from '../cgroups/limits.js';
export type { Defragmentation, DefragmentOptions, NodeGain } from '../changes/defragment.js';
export type { MoveEnd, ResizeEvent } from '../changes/move-event.js';
export type {
  ProposedMove,
  RepackingReport,
  UnmovedGrant,
} from '../decision/changes/repacking-report.js';
export type { DeviceEntry } from '../decision/devices/device-draft.js';
export type { Explanation } from '../decision/explanation.js';
export type { CpuFlag, CpuMoved, DeviceGone, MemoryGone } from '../decision/flags/flags.js';
export type { CpuTaken, DeviceTaken, MemoryTaken } from '../decision/flags/kubelet-flags.js';
export type { SharedPoolShort } from '../decision/flags/shared-pool-short.js';
export type { HugepagesTaken } from '../decision/memory/hugepages-taken.js';
export type { Offer } from '../decision/progress.js';
export type { Holder, OfferedHints, ResourceExplanation } from '../decision/resource-explanations.js';
export { type DiagnoseOptions, type Diagnosis, diagnose } from '../doctor/diagnose.js';
export { FINDING_STATUSES, type Finding, type FindingStatus } from '../doctor/finding.js';
export type { Drift, DriftKind, Hotplug, ReconcileReport } from '../enforcement/drift.js';
export type { Survivor } from '../enforcement/members/survivors.js';
export type { MovableOptions } from '../input/requests/movable.js';
export type { QuietOptions } from '../input/requests/quiet.js';
export type { Requirement } from '../input/requests/request-options.js';
export {
  affinity,
  type MovedThread,
  type ThreadInfo,
  threadId,
  threads,
  type UnmovableThread,
} from '../machine/affinity.js';
export type { PartOutcome, QuietOutcome } from '../quiet/outcome.js';
export type { JournalLine } from '../state/format/journal-lines.js';
export type { StateRecovered } from '../state/store.js';
export type { Waiter } from '../state/wait-queue.js';
export { type StateJournal, type StateJournalOptions, stateJournal } from '../status/journal-reading.js';
export type { ArchivedState, KeptFiles } from '../status/kept-files.js';
export type {
  GrantCgroup,
  GrantStatus,
  MemberStatus,
  SettingsStatus,
  StateStatus,
} from '../status/status.js';
export type { MemoryPolicyMode } from '../threads/memory.js';
export { type MemoryPlacement, memoryPlacement } from '../threads/memory-placement.js';
export { type PoolProbe, probePool } from '../threads/pool.js';
export { scheduling, type ThreadScheduling } from '../threads/scheduling.js';

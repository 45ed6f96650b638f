// numalign/diagnostics: what numalign and the kernel do, and why: threads, memory, audits, flags,
// warnings, explanations, the status of the state, and the channels that managers publish on.

export type { Elasticity, MoveConsent, PodBooking, QuietPart } from '../account/pod-assignment.js';
export { DIAGNOSTICS_CHANNELS, type DiagnosticsMessages } from '../admission/diagnostics.js';
export type { SharedGroup } from '../admission/grants/shared-membership.js';
export type { Planner, PlannerOptions, PodPlan, PreparedPod } from '../admission/planner.js';
export type { CpuAudit, ForeignTask, GrantAudit } from '../audit/account.js';
export type { AuditOptions } from '../audit/grant-audits.js';
export type { AdmissionReason, RejectionCode } from '../base/refusal.js';
export type { CgroupLimits } from '../cgroups/limits.js';
export type { Defragmentation, DefragmentOptions } from '../changes/defragment.js';
export type { MoveEnd, ResizeEvent } from '../changes/move-event.js';
export type { RepackingReport } from '../decision/changes/repacking-report.js';
export type { DeviceEntry } from '../decision/devices/device-draft.js';
export type { Explanation } from '../decision/explanation.js';
export type { Offer } from '../decision/progress.js';
export type { Holder, ResourceExplanation } from '../decision/resource-explanations.js';
export { type DiagnoseOptions, type Diagnosis, diagnose } from '../doctor/diagnose.js';
export { FINDING_STATUSES, type Finding, type FindingStatus } from '../doctor/finding.js';
export type { Drift, Hotplug, ReconcileReport } from '../enforcement/drift.js';
export type { MemoryBinding } from '../enforcement/memory-binding.js';
export type { MovableOptions } from '../input/requests/movable.js';
export type { QuietOptions } from '../input/requests/quiet.js';
export { affinity, type ThreadInfo, threadId, threads } from '../machine/affinity.js';
export type { PartOutcome, QuietOutcome } from '../quiet/outcome.js';
export type { JournalLine } from '../state/format/journal-lines.js';
export { type StateJournal, type StateJournalOptions, stateJournal } from '../status/journal-reading.js';
export type { KeptFiles } from '../status/kept-files.js';
export type { GrantStatus, SettingsStatus, StateStatus } from '../status/status.js';
export { type MemoryPlacement, memoryPlacement } from '../threads/memory-placement.js';
export { type PoolProbe, probePool } from '../threads/pool.js';
export { scheduling, type ThreadScheduling } from '../threads/scheduling.js';

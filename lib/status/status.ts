// StateStatus: what a state folder says at one moment, all of it of one generation.
import type { PodContainer } from '../admission/pod-container.js';
import type { LapsedGrant, Warning } from '../admission/warnings.js';
import type { NumalignError } from '../base/errors.js';
import type { GrantInfo } from '../decision/grant-info.js';
import type { Settings } from '../decision/machine-settings.js';
import type { MemoryTable } from '../decision/memory/memory-tables.js';
import type { ProcessEntry } from '../enforcement/members/member-entry.js';
import type { SharedMember } from '../enforcement/members/shared-member.js';
import type { Survivor } from '../enforcement/members/survivors.js';
import type { MemoryBinding } from '../enforcement/memory-binding.js';
import type { KubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { QuietOutcome } from '../quiet/outcome.js';
import type { Waiter } from '../state/wait-queue.js';

/** A grant on record, with all that is known of it. */
export interface GrantStatus extends GrantInfo {
  readonly containers: readonly PodContainer[];
  /** Where the owner has ended or given it up: the processes that keep it. */
  readonly survivors: readonly Survivor[];
  /**
   * The cgroups of its containers with exclusive CPUs, and that of all containers where there is
   * one.
   */
  readonly cgroups: readonly GrantCgroup[];
  /** As {@link Grant.memoryEnforcement}. */
  readonly memoryEnforcement: readonly MemoryBinding[];
  /** As {@link Grant.quiet}. */
  readonly quiet: QuietOutcome | null;
}

/** A cgroup of a grant, as a path. */
export interface GrantCgroup {
  /** null: all of them. */
  readonly container: string | null;
  readonly path: string;
  /** It is made when something is to run in it. */
  readonly isMade: boolean;
}

/** A shared member; of a process also where it was attached, while there is that grant. */
export type MemberStatus =
  | Extract<SharedMember, { kind: 'cgroup' }>
  | (Extract<SharedMember, { kind: 'process' }> & Pick<ProcessEntry, 'grant' | 'container'>);

/** The settings in force, and whether the kernel or a list says what they are. */
export interface SettingsStatus extends Settings {
  /** Every online CPU is managed, not a list of them. */
  readonly managesAll: boolean;
  /** The isolated pool is what the kernel isolates, not a list of CPUs. */
  readonly isolatedByKernel: boolean;
}

/** The answer of {@link ManagerView.status}. */
export interface StateStatus {
  /** Empty where nothing is kept on disk. */
  readonly stateDir: string;
  readonly scope: 'machine' | 'private' | 'memory';
  /** False: nobody has used the folder yet. The settings are those that its first opener would find. */
  readonly exists: boolean;
  readonly generation: number;
  /** Written before the machine was started: its grants are void and left out here. */
  readonly isOfEarlierBoot: boolean;
  readonly settings: SettingsStatus;
  readonly sharedPool: CpuSet;
  readonly free: CpuSet;
  readonly freeIsolated: CpuSet;
  readonly memory: readonly MemoryTable[];
  /** What the kubelet has given out; null: nobody has recorded any. */
  readonly kubelet: KubeletStatus | null;
  readonly grants: readonly GrantStatus[];
  readonly sharedMembers: readonly MemberStatus[];
  /** The next first. */
  readonly waiting: readonly Waiter[];
  /**
   * What is wrong with the state's file, if anything: then this is what the next transaction makes
   * of what is left.
   */
  readonly damage: string | null;
  /**
   * Why nothing can be granted, if so: ERR_STATE_CORRUPT, ERR_STATE_VERSION. What is free is not
   * known then.
   */
  readonly refusal: NumalignError | null;
  /** The persistent grants of an earlier boot. */
  readonly lapsed: readonly LapsedGrant[];
  /** What the settings name and the machine does not have at present. */
  readonly warnings: readonly Warning[];
}

// StateStatus: the content of a state folder at one moment, all of one generation.
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

/** A grant on record, with all that is known about it. */
export interface GrantStatus extends GrantInfo {
  readonly containers: readonly PodContainer[];
  /** The processes that keep it after its owner has ended or released it. */
  readonly survivors: readonly Survivor[];
  /** The cgroups of its containers with exclusive CPUs, and that of all containers if it exists. */
  readonly cgroups: readonly GrantCgroup[];
  /** Like {@link Grant.memoryEnforcement}. */
  readonly memoryEnforcement: readonly MemoryBinding[];
  /** Like {@link Grant.quiet}. */
  readonly quiet: QuietOutcome | null;
}

/** A cgroup of a grant. */
export interface GrantCgroup {
  /** Null for all containers. */
  readonly container: string | null;
  readonly path: string;
  /** False until something is to run in it. */
  readonly isMade: boolean;
}

/** A shared member; for a process, also the grant that it is attached to while that exists. */
export type MemberStatus =
  | Extract<SharedMember, { kind: 'cgroup' }>
  | (Extract<SharedMember, { kind: 'process' }> & Pick<ProcessEntry, 'grant' | 'container'>);

/** The settings in force, and whether the kernel or a list determines them. */
export interface SettingsStatus extends Settings {
  /** True if every online CPU is managed, and not a list. */
  readonly managesAll: boolean;
  /** True if the isolated pool is what the kernel isolates, and not a list. */
  readonly isolatedByKernel: boolean;
}

/** The result of {@link ManagerView.status}. */
export interface StateStatus {
  /** Empty if nothing is kept on disk. */
  readonly stateDir: string;
  readonly scope: 'machine' | 'private' | 'memory';
  /**
   * False if no manager has used the folder yet. The settings are then what its first opener would
   * find.
   */
  readonly exists: boolean;
  readonly generation: number;
  /**
   * True if it was written before the machine was started: its grants are void and left out here.
   */
  readonly isOfEarlierBoot: boolean;
  readonly settings: SettingsStatus;
  readonly sharedPool: CpuSet;
  readonly free: CpuSet;
  readonly freeIsolated: CpuSet;
  readonly memory: readonly MemoryTable[];
  /** What the kubelet has assigned; null if that is not recorded. */
  readonly kubelet: KubeletStatus | null;
  readonly grants: readonly GrantStatus[];
  readonly sharedMembers: readonly MemberStatus[];
  /** In the order of the queue. */
  readonly waiting: readonly Waiter[];
  /**
   * What is wrong with the state's file, if anything: this status is then what the next transaction
   * recovers.
   */
  readonly damage: string | null;
  /**
   * Why nothing can be granted, if so: ERR_STATE_CORRUPT, ERR_STATE_VERSION. It is then unknown
   * what is free.
   */
  readonly refusal: NumalignError | null;
  /** The persistent grants of an earlier boot. */
  readonly lapsed: readonly LapsedGrant[];
  /** What the settings name but the machine does not have now. */
  readonly warnings: readonly Warning[];
}

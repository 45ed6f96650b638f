// StateStatus: the content of a state folder at one moment, all of one generation.
import type { PodContainer } from '../admission/pod-container.js';
import type { LapsedGrant, Warning } from '../admission/warnings.js';
import type { NumalignError } from '../base/errors.js';
import type { GrantInfo } from '../decision/grant-info.js';
import type { Settings } from '../decision/machine-settings.js';
import type { MemoryTable } from '../decision/memory/memory-tables.js';
import type { Survivor } from '../enforcement/members/survivors.js';
import type { MemoryBinding } from '../enforcement/memory-binding.js';
import type { KubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { QuietOutcome } from '../quiet/outcome.js';
import type { Waiter } from '../state/wait-queue.js';

/** A grant on record with its containers, survivors and cgroups. */
export interface GrantStatus extends GrantInfo {
  /** What each container has: init containers and sidecars first, in the order of the request. */
  readonly containers: readonly PodContainer[];
  /** Processes that keep the grant after its owner has ended or handed it over. */
  readonly survivors: readonly Survivor[];
  /**
   * The cgroups of its containers with exclusive CPUs, and the one of all containers, if there is
   * one.
   */
  readonly cgroups: readonly GrantCgroup[];
  /** As {@link Grant.memoryEnforcement}. */
  readonly memoryEnforcement: readonly MemoryBinding[];
  /** As {@link Grant.quiet}. */
  readonly quiet: QuietOutcome | null;
}

/** A cgroup of a grant. */
export interface GrantCgroup {
  /** The container; null: all of them. */
  readonly container: string | null;
  /** The absolute path of its folder. */
  readonly path: string;
  /** Whether it exists. It is made when something runs in it. */
  readonly isMade: boolean;
}

/**
 * A shared member. A process also has the grant and container that it is attached to: null if none,
 * `container` also if it is attached to all of them.
 */
export type MemberStatus =
  | { readonly kind: 'cgroup'; readonly path: string }
  | {
      readonly kind: 'process';
      readonly pid: number;
      readonly command: string;
      readonly grant: string | null;
      readonly container: string | null;
    };

/** The settings in force, and where they come from. */
export interface SettingsStatus extends Settings {
  /** True if every online CPU is managed; false if `managedCPUs` is a list. */
  readonly managesAll: boolean;
  /** True if the kernel says which CPUs are isolated; false if `isolatedCPUs` is a list. */
  readonly isolatedByKernel: boolean;
}

/** The result of {@link ManagerView.status}. */
export interface StateStatus {
  /** The state folder; empty if nothing is kept on disk. */
  readonly stateDir: string;
  /**
   * What it is valid for: the whole machine; `private`, the processes that share the folder;
   * `memory`, one manager.
   */
  readonly scope: 'machine' | 'private' | 'memory';
  /**
   * Whether the folder has a state. Without one, the settings are those that its first opener would
   * find.
   */
  readonly exists: boolean;
  /** The generation of the state, which grows with each commit; 0 without a state. */
  readonly generation: number;
  /** Whether the state is of an earlier boot; its grants are void and left out. */
  readonly isOfEarlierBoot: boolean;
  /** The settings of the machine in force. */
  readonly settings: SettingsStatus;
  /** The CPUs for everything that has no exclusive CPUs. */
  readonly sharedPool: CpuSet;
  /** CPUs that no grant holds and that are neither reserved nor isolated. */
  readonly free: CpuSet;
  /** Isolated CPUs that no grant holds. */
  readonly freeIsolated: CpuSet;
  /** Memory and hugepages by NUMA node and type, in bytes. */
  readonly memory: readonly MemoryTable[];
  /** What the kubelet gives out; null without a record. */
  readonly kubelet: KubeletStatus | null;
  /** All grants on record, of every process. */
  readonly grants: readonly GrantStatus[];
  /** The processes and cgroups that leave CPUs before these become exclusive. */
  readonly sharedMembers: readonly MemberStatus[];
  /** The waiting requests, the next first. */
  readonly waiting: readonly Waiter[];
  /**
   * What is wrong with the state's file; else null. The rest of the status is then what the next
   * transaction recovers.
   */
  readonly damage: string | null;
  /**
   * Why nothing can be granted: ERR_STATE_CORRUPT or ERR_STATE_VERSION; else null. Free CPUs are
   * unknown then.
   */
  readonly refusal: NumalignError | null;
  /** The persistent grants of an earlier boot. */
  readonly lapsed: readonly LapsedGrant[];
  /** Settings that the machine cannot meet at present. */
  readonly warnings: readonly Warning[];
}

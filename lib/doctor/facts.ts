// MachineFacts: what can be seen of a machine and of this process, before any judgement. Null: it
// cannot be seen from here.
import type { CgroupLimits } from '../cgroups/limits.js';
import type { Settings } from '../decision/machine-settings.js';
import type { KubeletFacts } from '../kubelet/kubelet-conflict.js';
import type { KubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { CoreKind } from '../machine/machine-description.js';
import type { Topology } from '../machine/topology.js';
import type { NamedProcess } from '../processes/named-processes.js';
import type { KernelSettings } from '../quiet/kernel-work.js';
import type { RootRefusal } from '../state/folder/agreed-root.js';
import type { MaskOrigin } from '../threads/mask-wish.js';

export interface CoreKindFacts {
  readonly name: CoreKind['name'];
  readonly cpus: CpuSet;
  /** Those that can be granted now; null if the state cannot be read. */
  readonly free: CpuSet | null;
}

export interface StateFolderFacts {
  readonly path: string;
  readonly scope: 'machine' | 'private';
  readonly exists: boolean;
  /** Its type, such as `tmpfs`. */
  readonly fileSystem: string | null;
  /** Why it cannot be used, or nothing can be granted in it; undefined if it can be used. */
  readonly refusal: string | undefined;
  /** The first path in the machine's folder that does not belong to the group numalign. */
  readonly notTheGroups: string | undefined;
}

export interface CgroupFacts {
  readonly version: 1 | 2;
  /** The root that was checked, as --cgroup-root takes it, and its folder. */
  readonly root: string;
  readonly rootPath: string;
  /** True if a manager uses it by default, or if the settings on record say so. */
  readonly isUsed: boolean;
  /** Why root does not use it though it is on record, if so. */
  readonly rootRefusal: RootRefusal | undefined;
  readonly whyNotWritable: string | undefined;
  readonly whyNoPartition: string | undefined;
  /**
   * The cgroup of this process, as --cgroup-root takes it; undefined if it cannot be seen from
   * here.
   */
  readonly own: string | undefined;
  /**
   * A root that this user could use at or above the cgroup of this process, but not directly below
   * the hierarchy's root.
   */
  readonly delegated: string | undefined;
}

/** Another cgroup with its own CPUs. */
export interface ForeignCpuset {
  /** The path below the mount point. */
  readonly path: string;
  readonly cpus: CpuSet;
  /** True if the kernel keeps all others off. */
  readonly isPartition: boolean;
}

export interface ForeignCpusets {
  /** The mount point. */
  readonly mount: string;
  readonly cpusets: readonly ForeignCpuset[];
  /** True if all cgroups were looked at. */
  readonly isComplete: boolean;
}

export interface InterruptFacts {
  readonly irq: number;
  readonly name: string;
  /** The CPUs that it may be delivered to. */
  readonly cpus: CpuSet;
  /** The number of interrupts since boot, by CPU. */
  readonly counts: ReadonlyMap<number, number>;
}

export interface GovernorFacts {
  readonly cpus: CpuSet;
  readonly governor: string;
}

export interface SteeringFacts {
  /** For example `eth0/rx-0`. */
  readonly queue: string;
  readonly cpus: CpuSet;
}

export interface HugepageFacts {
  readonly bytes: number;
  readonly total: number;
  readonly free: number | null;
}

export interface MachineFacts {
  readonly online: CpuSet;
  /** The CPUs that numalign manages. */
  readonly managed: CpuSet;
  /** The CPUs that can be granted: managed and not reserved. */
  readonly candidates: CpuSet;
  /** The CPUs of the first core with candidates: the ones to reserve first. */
  readonly firstCore: CpuSet;
  /** The CPUs that this process may use now. */
  readonly allowed: CpuSet;
  /** The CPUs of its cpuset. */
  readonly limit: CpuSet;
  /** Where its mask comes from. */
  readonly maskOrigin: MaskOrigin;
  readonly numaNodes: number;
  /** The numbers of CPUs that a core has, ascending. */
  readonly cpusPerCore: readonly number[];
  /** The fastest first. */
  readonly coreKinds: readonly CoreKindFacts[];
  /** The CPUs that are reserved by the settings on record. */
  readonly reserved: CpuSet;
  /** As many of the slowest kind that has them, which could be reserved instead. */
  readonly reservable: CpuSet;

  readonly user: number;
  /** The effective capabilities, as a mask. */
  readonly capabilities: bigint | null;
  /** The kernel's number: 0 none, 1 strict, 2 a filter. */
  readonly seccomp: number | null;
  /** Why the kernel refuses to report this thread's memory policy, such as `EPERM`. */
  readonly memoryPolicyRefusal: string | undefined;
  readonly stateFolder: StateFolderFacts;

  /** A text says why there are none. */
  readonly cgroups: CgroupFacts | string;
  readonly limits: CgroupLimits | null;
  readonly foreignCpusets: ForeignCpusets | null;

  readonly kubelet: KubeletFacts;
  /** The record of the kubelet's assignments, if any. */
  readonly kubeletRecord: KubeletStatus | null;
  /** Programs that move processes or interrupts. */
  readonly movers: readonly NamedProcess[];
  /** True if every process of the machine can be seen. */
  readonly seesAllProcesses: boolean;

  /** CPUs without load balancing: isolcpus= and isolated partitions. */
  readonly unbalanced: CpuSet;
  /** CPUs without a tick: nohz_full=. */
  readonly tickless: CpuSet;
  readonly governors: readonly GovernorFacts[] | null;
  /** The wake-up time, in µs, of the deepest idle state that is enabled. */
  readonly idleLatency: number | null;
  readonly interrupts: readonly InterruptFacts[] | null;
  /** The CPUs for work that belongs to no CPU. */
  readonly workqueues: CpuSet | null;
  /** RPS of the network interfaces in this namespace. */
  readonly steering: readonly SteeringFacts[];
  readonly kernelSettings: KernelSettings;

  /** /proc/sys/kernel/numa_balancing; 0 also if the kernel does not support it. */
  readonly numaBalancing: number | null;
  readonly hugepages: readonly HugepageFacts[];
}

export interface FactsQuestion {
  readonly topology: Topology;
  readonly stateDir: string;
  /** The settings on record; undefined if there are none, or they cannot be read. */
  readonly settings: Settings | undefined;
  /** Why nothing is granted in the folder, if so. */
  readonly refusal: string | undefined;
  /** The record of the kubelet's assignments, if any. */
  readonly kubelet: KubeletStatus | null;
  /** The CPUs that can be granted now; null if the state cannot be read. */
  readonly free: CpuSet | null;
  /** The shared pool; all CPUs if there is no state. */
  readonly pool: CpuSet;
  /** The CPUs of each grant of a process that has started this one. */
  readonly grants: readonly CpuSet[];
  /** The root to check instead of the one on record or the machine's; null: none. */
  readonly cgroupRoot: string | null | undefined;
}

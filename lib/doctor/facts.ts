// MachineFacts: what can be seen of a machine and of this process, before anybody judges it. null:
// it cannot be seen from here.
import type { CgroupLimits } from '../cgroups/limits.js';
import type { Settings } from '../decision/machine-settings.js';
import type { KubeletFacts } from '../kubelet/kubelet-conflict.js';
import type { KubeletStatus } from '../kubelet/record/kubelet-status.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { NamedProcess } from '../processes/named-processes.js';
import type { KernelSettings } from '../quiet/kernel-work.js';

export interface StateFolderFacts {
  readonly path: string;
  readonly scope: 'machine' | 'private';
  readonly exists: boolean;
  /** Its type, such as `tmpfs`. */
  readonly fileSystem: string | null;
  /** Why it cannot be used, or nothing granted in it; undefined where that can be done. */
  readonly refusal: string | undefined;
  /** What of the machine's folder the group does not have that is to share it. */
  readonly notTheGroups: string | undefined;
}

export interface CgroupFacts {
  readonly version: 1 | 2;
  /** The root that was looked at, as --cgroup-root takes it, and its folder. */
  readonly root: string;
  readonly rootPath: string;
  /** A manager uses it by itself, or the settings on record say so. */
  readonly isUsed: boolean;
  readonly whyNotWritable: string | undefined;
  readonly whyNoPartition: string | undefined;
  /**
   * The cgroup of this process, as --cgroup-root takes it; undefined where it cannot be seen from
   * here.
   */
  readonly own: string | undefined;
  /**
   * A root that this user could use at or above his own cgroup, but not directly below the
   * hierarchy's.
   */
  readonly delegated: string | undefined;
}

/** A cgroup of somebody else with CPUs of its own. */
export interface ForeignCpuset {
  /** From the mount's point. */
  readonly path: string;
  readonly cpus: CpuSet;
  /** The kernel keeps everybody else off. */
  readonly isPartition: boolean;
}

export interface ForeignCpusets {
  /** The mount's point. */
  readonly mount: string;
  readonly cpusets: readonly ForeignCpuset[];
  /** Whether all cgroups were looked at. */
  readonly isComplete: boolean;
}

export interface InterruptFacts {
  readonly irq: number;
  readonly name: string;
  /** The CPUs that it may be delivered to. */
  readonly cpus: CpuSet;
  /** How often it came since boot, by CPU. */
  readonly counts: ReadonlyMap<number, number>;
}

export interface GovernorFacts {
  readonly cpus: CpuSet;
  readonly governor: string;
}

export interface SteeringFacts {
  /** Such as `eth0/rx-0`. */
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
  /** Those that numalign manages. */
  readonly managed: CpuSet;
  /** Those that may become somebody's: managed, and not reserved. */
  readonly candidates: CpuSet;
  /** The CPUs of the first core that has candidates: what one would reserve first. */
  readonly firstCore: CpuSet;
  /** Those that this process may use. */
  readonly allowed: CpuSet;
  readonly numaNodes: number;
  readonly cpusPerCore: number;

  readonly user: number;
  /** Effective ones, as a mask. */
  readonly capabilities: bigint | null;
  /** By the kernel's number: 0 none, 1 strict, 2 a filter. */
  readonly seccomp: number | null;
  /** The kernel's refusal to tell this thread's memory policy, such as `EPERM`. */
  readonly memoryPolicyRefusal: string | undefined;
  readonly stateFolder: StateFolderFacts;

  /** A text: why there are none. */
  readonly cgroups: CgroupFacts | string;
  readonly limits: CgroupLimits | null;
  readonly foreignCpusets: ForeignCpusets | null;

  readonly kubelet: KubeletFacts;
  /** What is on record of it, if anything. */
  readonly kubeletRecord: KubeletStatus | null;
  /** Programs that move other programs or interrupts. */
  readonly movers: readonly NamedProcess[];
  /** Whether every process of the machine can be seen. */
  readonly seesAllProcesses: boolean;

  /** isolcpus= and isolated partitions. */
  readonly unbalanced: CpuSet;
  /** nohz_full=. */
  readonly tickless: CpuSet;
  readonly governors: readonly GovernorFacts[] | null;
  /** Microseconds that the deepest idle state takes to wake up, of those that are not disabled. */
  readonly idleLatency: number | null;
  readonly interrupts: readonly InterruptFacts[] | null;
  /** Where work that belongs to no CPU is done. */
  readonly workqueues: CpuSet | null;
  /** RPS, of the network interfaces of this namespace. */
  readonly steering: readonly SteeringFacts[];
  readonly kernelSettings: KernelSettings;

  /** /proc/sys/kernel/numa_balancing; 0 also where the kernel cannot. */
  readonly numaBalancing: number | null;
  readonly hugepages: readonly HugepageFacts[];
}

export interface FactsQuestion {
  readonly topology: Topology;
  readonly stateDir: string;
  /** What is on record; undefined where there is nothing, or it cannot be read. */
  readonly settings: Settings | undefined;
  /** Why nothing is granted in the folder, if so. */
  readonly refusal: string | undefined;
  /** What is on record of a kubelet's pods, if anything. */
  readonly kubelet: KubeletStatus | null;
  /** Instead of that on record, or of the machine's; null: none. */
  readonly cgroupRoot: string | null | undefined;
}

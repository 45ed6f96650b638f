// KubeletStates: the content of the kubelet's state files, as values.
import type { OwnerRecord } from '../account/pod-assignment.js';
import type { CpuSnapshot } from '../account/pools.js';
import { type CpuManagerState, formatCpuManagerState } from './cpu-manager-state.js';
import type { KubeletWriteOptions } from './kubelet-format.js';
import { formatMemoryManagerState, type MemoryManagerState } from './memory-manager-state.js';

/** The content of both files. */
export interface KubeletStates {
  readonly cpu: CpuManagerState;
  readonly memory: MemoryManagerState;
}

/**
 * What the files do not know: the owner of each pod, its admission time, and the machine's CPUs
 * now.
 */
export interface ImportFacts {
  readonly newOwner: () => OwnerRecord;
  readonly now: Date;
  readonly present: CpuSnapshot;
}

/** The texts of the kubelet's state files; null if a file does not exist. */
export interface KubeletFiles {
  /** The text of `/var/lib/kubelet/cpu_manager_state`. */
  readonly cpuManagerState: string | null;
  /** The text of `/var/lib/kubelet/memory_manager_state`. */
  readonly memoryManagerState: string | null;
}

/** The files' texts. */
export function formatKubeletFiles(
  { cpu, memory }: KubeletStates,
  options: KubeletWriteOptions,
): KubeletFiles & Record<keyof KubeletFiles, string> {
  return {
    cpuManagerState: formatCpuManagerState(cpu, options),
    memoryManagerState: formatMemoryManagerState(memory, options),
  };
}

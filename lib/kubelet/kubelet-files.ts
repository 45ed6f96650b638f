// KubeletFiles: the texts of the kubelet's state files.
import { formatCpuManagerState } from './cpu-manager-state.js';
import type { KubeletStates } from './kubelet-states.js';
import { formatMemoryManagerState } from './memory-manager-state.js';

/** The texts of the kubelet's state files; null if a file does not exist. */
export interface KubeletFiles {
  /** The text of `/var/lib/kubelet/cpu_manager_state`. */
  readonly cpuManagerState: string | null;
  /** The text of `/var/lib/kubelet/memory_manager_state`. */
  readonly memoryManagerState: string | null;
}

/** The files' texts. */
export function formatKubeletFiles({
  cpu,
  memory,
}: KubeletStates): KubeletFiles & Record<keyof KubeletFiles, string> {
  return {
    cpuManagerState: formatCpuManagerState(cpu),
    memoryManagerState: formatMemoryManagerState(memory),
  };
}

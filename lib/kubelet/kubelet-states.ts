// What the kubelet's state files say, as values.
import type { CpuManagerState } from './cpu-manager-state.js';
import type { MemoryManagerState } from './memory-manager-state.js';

/** What both files say. */
export interface KubeletStates {
  readonly cpu: CpuManagerState;
  readonly memory: MemoryManagerState;
}

// KubeletStates: the content of the kubelet's state files, as values.
import type { OwnerRecord } from '../account/pod-assignment.js';
import type { CpuSnapshot } from '../account/pools.js';
import type { CpuManagerState } from './cpu-manager-state.js';
import type { MemoryManagerState } from './memory-manager-state.js';

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

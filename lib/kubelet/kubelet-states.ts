// What the kubelet's state files say, as values.
import type { OwnerRecord } from '../account/pod-assignment.js';
import type { CpuSnapshot } from '../account/pools.js';
import type { CpuManagerState } from './cpu-manager-state.js';
import type { MemoryManagerState } from './memory-manager-state.js';

/** What both files say. */
export interface KubeletStates {
  readonly cpu: CpuManagerState;
  readonly memory: MemoryManagerState;
}

/** What the files do not know: who owns each pod, and since when. */
export interface ImportFacts {
  readonly newOwner: () => OwnerRecord;
  readonly now: Date;
  readonly present: CpuSnapshot;
}

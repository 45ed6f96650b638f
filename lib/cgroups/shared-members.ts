// SharedMembers: the processes and cgroups that run in the shared pool and must leave CPUs before these become exclusive.

import type { CpuSet } from '../cpu-set.js';

/** How admission gets the shared pool's users off CPUs. Whoever is left off the list can only be kept off by the level of enforcement. */
export interface SharedMembers {
  /**
   * Done (undefined: at once) when no member can run on a CPU outside `pool` any more, read back from the kernel. Called under the state's lock, before
   * the commit: a crash in between leaves the pool too small, never an overlap.
   */
  confineTo(pool: CpuSet): Promise<void> | undefined;
}

/** Nobody is registered: a grant is kept from other users of numalign only, which is what the level `recorded` says. */
export const NO_MEMBERS: SharedMembers = { confineTo: () => undefined };

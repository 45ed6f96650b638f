// Housekeeping: the CPUs that take over work from quiet CPUs.
import { native } from '../base/native.js';
import { CpuSet } from './cpu-set.js';
import type { Topology } from './topology.js';

/**
 * Returns `base` without `quiet`. If none of these is online: the other online CPUs on the NUMA
 * nodes of `base`, then those on the nearest nodes, then all. Empty only if every online CPU is
 * quiet.
 */
export function housekeepingCpus(topology: Topology, base: CpuSet, quiet: CpuSet): CpuSet {
  return new CpuSet(native.housekeepingCpus(topology.handle, base.words, quiet.words));
}

// Housekeeping: the CPUs that take over what leaves quiet ones.
import { native } from '../base/native.js';
import { CpuSet } from './cpu-set.js';
import type { Topology } from './topology.js';

/**
 * `base` less `quiet`. Where none of that is online: the other online CPUs on the NUMA nodes of
 * `base`, else on the nodes nearest to these, else all of them. Empty only where every online CPU is
 * quiet.
 */
export function housekeepingCpus(topology: Topology, base: CpuSet, quiet: CpuSet): CpuSet {
  return new CpuSet(native.housekeepingCpus(topology.handle, base.words, quiet.words));
}

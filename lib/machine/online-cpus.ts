// The CPUs of a machine that are online at this moment.
import { oncePer } from '../base/collections/once-per.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { Words } from '../base/words.js';
import { CpuSet } from './cpu-set.js';
import type { Topology } from './topology.js';

/**
 * The set of a kernel list; the same object while the list does not change, since the addon returns
 * the same words.
 */
export const listedCpus = oncePer((words: Words) => new CpuSet(words));

/** /sys/devices/system/cpu/online; undefined if hidden, as in some containers. */
export function readOnlineCpus(): CpuSet | undefined {
  return unlessRefused(() => listedCpus(native.onlineCpus()));
}

/**
 * The topology's CPUs that are online now. CPUs that came after the topology was loaded are unknown
 * to it; load the topology again to see them. Described machines do not change. Reads
 * /sys/devices/system/cpu/online each time.
 */
export function onlineCpus(topology: Topology): CpuSet {
  return topology.isSimulated ? topology.cpus : cpusAmong(topology, readOnlineCpus());
}

/** Like {@link onlineCpus}, for these online CPUs; undefined: hidden. */
export function cpusAmong(topology: Topology, online: CpuSet | undefined): CpuSet {
  return !online || topology.cpus.isSubsetOf(online) ? topology.cpus : topology.cpus.intersection(online);
}

/**
 * Returns `base` without `quiet`. If none of these is online: the other online CPUs on the NUMA
 * nodes of `base`, then those on the nearest nodes, then all. Empty only if every online CPU is
 * quiet.
 */
export function housekeepingCpus(topology: Topology, base: CpuSet, quiet: CpuSet): CpuSet {
  return new CpuSet(native.housekeepingCpus(topology.handle, base.words, quiet.words));
}

// The CPUs that the kernel keeps ordinary work off, as it tells at this moment.
import { native } from '../base/native.js';
import { CPU_LISTS, type CpuListName } from '../base/native-tables.js';
import { ENVIRONMENT } from '../base/registry.js';
import { CpuSet } from './cpu-set.js';
import { listedCpus } from './online-cpus.js';

// None where there is no such file, or it says `(null)`: a kernel that knows nohz_full= and was
// started without it. Asked for often, so not by way of an error.
function readList(name: CpuListName): CpuSet {
  const words = native.readCpuList(CPU_LISTS.indexOf(name));
  return words === undefined ? CpuSet.EMPTY : listedCpus(words);
}

/**
 * CPUs over which the kernel balances no load: isolcpus=, and isolated partitions of cgroup v2
 * where it tells of them (/sys/devices/system/cpu/isolated, cpuset.cpus.isolated of the root
 * cgroup). A thread with several of them in its mask stays on one.
 */
export function unbalancedCpus(): CpuSet {
  return readList('isolated').union(readList('partitions'));
}

/** isolcpus= alone: CPUs that no process may use at first. */
export function bootIsolatedCpus(): CpuSet {
  return readList('isolated').difference(readList('partitions'));
}

/**
 * Whether the kernel balances no load over some of these CPUs, so that threads must be placed one
 * by one. Read anew each time.
 */
export function hasNoLoadBalancing(cpus: CpuSet): boolean {
  return cpus.intersects(unbalancedCpus());
}

const readTickless = () => readList('tickless');

/** Those without a tick while one thread runs there (nohz_full=). */
export function ticklessCpus(): CpuSet {
  // Only a boot changes it.
  return ENVIRONMENT.of(readTickless);
}

/** {@link unbalancedCpus}, read anew where it is not given, and {@link ticklessCpus}. */
export function kernelIsolatedCpus(unbalanced = unbalancedCpus()): CpuSet {
  return unbalanced.union(ticklessCpus());
}

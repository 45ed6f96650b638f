// The CPUs that the kernel keeps ordinary work off, as it tells at this moment.
import { native } from '../base/native.js';
import { ENVIRONMENT } from '../base/registry.js';
import { CpuSet } from './cpu-set.js';
import { listedCpus } from './online-cpus.js';

// isolcpus=; of the newest kernels isolated partitions too.
const NO_DOMAIN = '/sys/devices/system/cpu/isolated';
// All isolated partitions, nested ones too; in the root of cgroup v2 only, and not of older
// kernels.
const PARTITIONS = '/sys/fs/cgroup/cpuset.cpus.isolated';
// nohz_full=: no tick while one thread runs there. Load is balanced over them all the same.
const NO_TICK = '/sys/devices/system/cpu/nohz_full';

// None where there is no such file, or it says `(null)`: a kernel that knows nohz_full= and was
// started without it. Asked for often, so not by way of an error.
function readList(path: string): CpuSet {
  const words = native.readCpuList(path);
  return words === undefined ? CpuSet.EMPTY : listedCpus(words);
}

/**
 * CPUs over which the kernel balances no load: isolcpus=, and isolated partitions of cgroup v2
 * where it tells of them (/sys/devices/system/cpu/isolated, cpuset.cpus.isolated of the root
 * cgroup). A thread with several of them in its mask stays on one.
 */
export function unbalancedCpus(): CpuSet {
  return readList(NO_DOMAIN).union(readList(PARTITIONS));
}

/** isolcpus= alone: CPUs that no process may use at first. */
export function bootIsolatedCpus(): CpuSet {
  return readList(NO_DOMAIN).difference(readList(PARTITIONS));
}

/**
 * Whether the kernel balances no load over some of these CPUs, so that threads must be placed one
 * by one. Read anew each time.
 */
export function hasNoLoadBalancing(cpus: CpuSet): boolean {
  return cpus.intersects(unbalancedCpus());
}

const readTickless = () => readList(NO_TICK);

/** Those without a tick while one thread runs there (nohz_full=). */
export function ticklessCpus(): CpuSet {
  // Only a boot changes it.
  return ENVIRONMENT.of(readTickless);
}

/** {@link unbalancedCpus}, read anew where it is not given, and {@link ticklessCpus}. */
export function kernelIsolatedCpus(unbalanced = unbalancedCpus()): CpuSet {
  return unbalanced.union(ticklessCpus());
}

// The CPUs that the kernel keeps ordinary work off, at this moment.

import { ENVIRONMENT } from '../base/collections/registry.js';
import { native } from '../base/native.js';
import { CPU_LISTS, type CpuListName } from '../base/native-tables.js';
import { CpuSet } from './cpu-set.js';
import { listedCpus, readOnlineCpus } from './online-cpus.js';

// Empty if the file is missing or says `(null)`, which a kernel with nohz_full= support shows if
// booted without it. Called often, so it does not use exceptions.
function readList(name: CpuListName): CpuSet {
  const words = native.readCpuList(CPU_LISTS.indexOf(name));
  return words === undefined ? CpuSet.EMPTY : listedCpus(words);
}

/** The kernel's lists of CPUs at one moment. */
export interface KernelCpus {
  /** undefined if hidden. */
  readonly online: CpuSet | undefined;
  /**
   * CPUs without load balancing: isolcpus=, and isolated partitions of cgroup v2 where visible
   * (/sys/devices/system/cpu/isolated, cpuset.cpus.isolated of the root cgroup). A thread with
   * several of them in its mask stays on one.
   */
  readonly unbalanced: CpuSet;
  /** `unbalanced` and {@link ticklessCpus}. */
  readonly isolated: CpuSet;
}

interface Lists {
  readonly online: CpuSet | undefined;
  readonly isolated: CpuSet;
  readonly partitions: CpuSet;
  readonly cpus: KernelCpus;
}

let last: Lists | undefined;

/** Reads the lists each time. Returns the same object while they do not change. */
export function kernelCpus(): KernelCpus {
  const online = readOnlineCpus();
  const isolated = readList('isolated');
  const partitions = readList('partitions');
  if (last?.online === online && last?.isolated === isolated && last.partitions === partitions)
    return last.cpus;
  const unbalanced = isolated.union(partitions);
  const cpus = Object.freeze({ online, unbalanced, isolated: unbalanced.union(ticklessCpus()) });
  last = { online, isolated, partitions, cpus };
  return cpus;
}

export const unbalancedCpus = (): CpuSet => kernelCpus().unbalanced;

/** Only isolcpus=: CPUs that no process may use at first. */
export function bootIsolatedCpus(): CpuSet {
  return readList('isolated').difference(readList('partitions'));
}

const readTickless = () => readList('tickless');

/** CPUs without a tick while one thread runs there (nohz_full=). */
export function ticklessCpus(): CpuSet {
  // Changes only with a boot.
  return ENVIRONMENT.of(readTickless);
}

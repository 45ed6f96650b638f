// The CPUs that the kernel keeps ordinary work off, as it tells at this moment.
import { native } from '../base/native.js';
import { CPU_LISTS, type CpuListName } from '../base/native-tables.js';
import { ENVIRONMENT } from '../base/registry.js';
import { CpuSet } from './cpu-set.js';
import { listedCpus, readOnlineCpus } from './online-cpus.js';

// None where there is no such file, or it says `(null)`: a kernel that knows nohz_full= and was
// started without it. Asked for often, so not by way of an error.
function readList(name: CpuListName): CpuSet {
  const words = native.readCpuList(CPU_LISTS.indexOf(name));
  return words === undefined ? CpuSet.EMPTY : listedCpus(words);
}

/** What the kernel says of the machine's CPUs at one moment. */
export interface KernelCpus {
  /** undefined where that is hidden. */
  readonly online: CpuSet | undefined;
  /**
   * Over which it balances no load: isolcpus=, and isolated partitions of cgroup v2 where it
   * shows them (/sys/devices/system/cpu/isolated, cpuset.cpus.isolated of the root cgroup). A thread
   * with several of them in its mask stays on one.
   */
  readonly unbalanced: CpuSet;
  /** These, and {@link ticklessCpus}. */
  readonly isolated: CpuSet;
}

interface Lists {
  readonly online: CpuSet | undefined;
  readonly isolated: CpuSet;
  readonly partitions: CpuSet;
  readonly cpus: KernelCpus;
}

let last: Lists | undefined;

/** Read each time: the same object as long as the kernel says the same. */
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

export const kernelIsolatedCpus = (): CpuSet => kernelCpus().isolated;

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

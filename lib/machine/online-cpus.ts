// The CPUs of a machine that are online at this moment.
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { CpuSet } from './cpu-set.js';
import type { Topology } from './topology.js';

/** /sys/devices/system/cpu/online; undefined where it is hidden, such as from a container. */
export function readOnlineCpus(): CpuSet | undefined {
  return unlessRefused(() => new CpuSet(native.onlineCpus()));
}

/**
 * Those of the topology's CPUs that have not gone offline since it was loaded. Of those that have
 * come since nothing is known: who loads the topology anew has them. Described machines do not
 * change. /sys/devices/system/cpu/online is read each time.
 */
export function onlineCpus(topology: Topology): CpuSet {
  if (topology.isSimulated) return topology.cpus;
  const online = readOnlineCpus();
  return !online || topology.cpus.isSubsetOf(online) ? topology.cpus : topology.cpus.intersection(online);
}

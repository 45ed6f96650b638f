// The CPUs of a machine that are online at this moment.
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { CpuSet } from './cpu-set.js';
import type { Topology } from './topology.js';

/**
 * Those of the topology's CPUs that have not gone offline since it was loaded. Of those that have
 * come since nothing is known: who loads the topology anew has them. Described machines do not
 * change. /sys/devices/system/cpu/online is read each time.
 */
export function onlineCpus(topology: Topology): CpuSet {
  if (topology.isSimulated) return topology.cpus;
  let online: CpuSet;
  try {
    online = new CpuSet(native.onlineCpus());
  } catch (error) {
    // Hidden from a container, say.
    if (error instanceof NumalignError) return topology.cpus;
    throw error;
  }
  return topology.cpus.isSubsetOf(online) ? topology.cpus : topology.cpus.intersection(online);
}

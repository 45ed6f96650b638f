// The CPUs of a machine that are online at this moment.
import { readFileSync } from 'node:fs';
import { CpuSet } from './cpu-set.js';
import type { Topology } from './topology.js';

const ONLINE = '/sys/devices/system/cpu/online';

/**
 * Those of the topology's CPUs that have not gone offline since it was loaded. Of those that have come since nothing is known: who loads the topology
 * anew has them. Described machines do not change. One small file is read each time.
 */
export function onlineCpus(topology: Topology): CpuSet {
  if (topology.isSimulated) return topology.cpus;
  let online: CpuSet;
  try {
    online = CpuSet.parse(readFileSync(ONLINE, 'latin1').trim());
  } catch {
    // Hidden from a container, say.
    return topology.cpus;
  }
  return topology.cpus.intersection(online);
}

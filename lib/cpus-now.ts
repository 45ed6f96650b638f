// What decisions look at of a machine's CPUs at this moment.
import { CpuSet } from './cpu-set.js';
import { kernelIsolatedCpus, unbalancedCpus } from './isolated-cpus.js';
import { onlineCpus } from './online-cpus.js';
import type { CpusNow } from './state/assignments.js';
import type { Topology } from './topology.js';

/**
 * Read anew each time; what the kernel isolates only where it is asked for. Of a described machine none is isolated but by its settings.
 * `unbalanced`: those over which the kernel balances no load.
 */
export function cpusNow(topology: Topology): CpusNow & { readonly unbalanced: CpuSet } {
  const online = onlineCpus(topology);
  const once = (read: () => CpuSet) => {
    let cpus: CpuSet | undefined;
    return () => {
      cpus ??= topology.isSimulated ? CpuSet.EMPTY : read();
      return cpus;
    };
  };
  const [isolated, unbalanced] = [once(kernelIsolatedCpus), once(unbalancedCpus)];
  return {
    online,
    get isolated() {
      return isolated();
    },
    get unbalanced() {
      return unbalanced();
    },
  };
}

// What decisions look at of a machine's CPUs at this moment.
import { CpuSet } from '../machine/cpu-set.js';
import { kernelIsolatedCpus, unbalancedCpus } from '../machine/isolated-cpus.js';
import { onlineCpus } from '../machine/online-cpus.js';
import type { Topology } from '../machine/topology.js';
import { cpusOf, type PodAssignment, poolOf } from './pod-assignment.js';
import type { CpusNow } from './pools.js';

/**
 * Read anew each time; what the kernel isolates only where it is asked for. Of a described machine
 * none is isolated but by its settings. `unbalanced`: those over which the kernel balances no load.
 * `pods`: grants on record, which may have made ordinary CPUs an isolated partition: these are not
 * isolated for others.
 */
export function cpusNow(
  topology: Topology,
  pods: readonly PodAssignment[] = [],
): CpusNow & { readonly unbalanced: CpuSet } {
  if (topology.isSimulated)
    return { online: topology.cpus, isolated: CpuSet.EMPTY, unbalanced: CpuSet.EMPTY };
  const online = onlineCpus(topology);
  const once = (read: () => CpuSet) => {
    let cpus: CpuSet | undefined;
    return () => {
      cpus ??= read();
      return cpus;
    };
  };
  const [isolated, unbalanced] = [once(kernelIsolatedCpus), once(unbalancedCpus)];
  return {
    online,
    get isolated() {
      return isolated().difference(isolatedByGrants(pods));
    },
    get unbalanced() {
      return unbalanced();
    },
  };
}

function isolatedByGrants(pods: readonly PodAssignment[]): CpuSet {
  return pods
    .filter((pod) => pod.enforcement.level === 'isolated' && poolOf(pod) === 'ordinary')
    .reduce((cpus, pod) => cpus.union(cpusOf(pod)), CpuSet.EMPTY);
}

// Reads what decisions look at of a machine's CPUs: the one file here that asks the machine.
import { CpuSet } from '../machine/cpu-set.js';
import { kernelIsolatedCpus, unbalancedCpus } from '../machine/isolated-cpus.js';
import { onlineCpus } from '../machine/online-cpus.js';
import type { Topology } from '../machine/topology.js';
import type { PodAssignment } from './pod-assignment.js';
import { cpusOf, poolOf } from './pod-holdings.js';
import type { CpuSnapshot } from './pools.js';

/** `unbalanced`: CPUs over which the kernel balances no load. */
export interface CpusNow extends CpuSnapshot {
  readonly unbalanced: CpuSet;
}

/**
 * The CPUs as they are at this moment, read once. Of a described machine none is isolated but by
 * its settings. `pods`: grants on record, which may have made ordinary CPUs an isolated partition:
 * these are not isolated for others.
 */
export function cpusNow(topology: Topology, pods: readonly PodAssignment[] = []): CpusNow {
  if (topology.isSimulated) {
    return { online: topology.cpus, isolated: CpuSet.EMPTY, unbalanced: CpuSet.EMPTY };
  }
  const unbalanced = unbalancedCpus();
  const isolated = kernelIsolatedCpus(unbalanced).difference(isolatedByGrants(pods));
  return { online: onlineCpus(topology), isolated, unbalanced };
}

function isolatedByGrants(pods: readonly PodAssignment[]): CpuSet {
  return pods
    .filter((pod) => pod.enforcement.level === 'isolated' && poolOf(pod) === 'ordinary')
    .reduce((cpus, pod) => cpus.union(cpusOf(pod)), CpuSet.EMPTY);
}

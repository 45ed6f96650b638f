// Reads what decisions look at of a machine's CPUs: the one file here that asks the machine.
import { CpuSet } from '../machine/cpu-set.js';
import { kernelIsolatedCpus, unbalancedCpus } from '../machine/isolated-cpus.js';
import { onlineCpus } from '../machine/online-cpus.js';
import type { Topology } from '../machine/topology.js';
import type { PodAssignment } from './pod-assignment.js';
import { cpusOf, poolOf } from './pod-holdings.js';
import { oncePerPods } from './pod-summary.js';
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
  if (topology.isSimulated) return sameAsLast(topology, topology.cpus, CpuSet.EMPTY, CpuSet.EMPTY);
  const unbalanced = unbalancedCpus();
  const isolated = kernelIsolatedCpus(unbalanced).difference(isolatedByGrants(pods));
  return sameAsLast(topology, onlineCpus(topology), isolated, unbalanced);
}

const lastOf = new WeakMap<Topology, CpusNow>();

// The same object as long as nothing has changed: what follows from it need not be found once more.
function sameAsLast(topology: Topology, online: CpuSet, isolated: CpuSet, unbalanced: CpuSet): CpusNow {
  const last = lastOf.get(topology);
  if (last?.online.equals(online) && last.isolated.equals(isolated) && last.unbalanced.equals(unbalanced)) {
    return last;
  }
  const now = Object.freeze({ online, isolated, unbalanced });
  lastOf.set(topology, now);
  return now;
}

const isolatedByGrants = oncePerPods((pods) =>
  pods
    .filter((pod) => pod.enforcement.level === 'isolated' && poolOf(pod) === 'ordinary')
    .reduce((cpus, pod) => cpus.union(cpusOf(pod)), CpuSet.EMPTY),
);

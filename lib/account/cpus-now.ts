// Reads what decisions look at of a machine's CPUs: the one file here that asks the machine.
import { CpuSet } from '../machine/cpu-set.js';
import { type KernelCpus, kernelCpus } from '../machine/isolated-cpus.js';
import { cpusAmong } from '../machine/online-cpus.js';
import type { Topology } from '../machine/topology.js';
import { cpusOfSome } from './cpus-of-pods.js';
import type { PodAssignment } from './pod-assignment.js';
import { poolOf } from './pod-holdings.js';
import { oncePerPods, podsThat } from './pod-summary.js';
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
  const kernel = topology.isSimulated ? NO_KERNEL : kernelCpus();
  const ofGrants = topology.isSimulated ? CpuSet.EMPTY : isolatedByGrants(pods);
  const last = lastOf.get(topology);
  if (last?.kernel === kernel && last.ofGrants === ofGrants) return last.now;
  const now = sameAs(last?.now, {
    online: cpusAmong(topology, kernel.online),
    isolated: kernel.isolated.difference(ofGrants),
    unbalanced: kernel.unbalanced,
  });
  lastOf.set(topology, { kernel, ofGrants, now });
  return now;
}

// Of a described machine.
const NO_KERNEL: KernelCpus = { online: undefined, isolated: CpuSet.EMPTY, unbalanced: CpuSet.EMPTY };

interface Last {
  readonly kernel: KernelCpus;
  readonly ofGrants: CpuSet;
  readonly now: CpusNow;
}

const lastOf = new WeakMap<Topology, Last>();

// The same object as long as nothing has changed: what follows from it need not be found once more.
function sameAs(last: CpusNow | undefined, now: CpusNow): CpusNow {
  if (
    last?.online.equals(now.online) &&
    last.isolated.equals(now.isolated) &&
    last.unbalanced.equals(now.unbalanced)
  )
    return last;
  return Object.freeze(now);
}

const isolatedGrants = podsThat((pod) => pod.enforcement.level === 'isolated' && poolOf(pod) === 'ordinary');

const cpusOfGrants = oncePerPods(cpusOfSome);

const isolatedByGrants = (pods: readonly PodAssignment[]) => cpusOfGrants(isolatedGrants(pods));

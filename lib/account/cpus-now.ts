// Reads the machine's CPUs for decisions. The only file in this room that reads the machine.
import { CpuSet } from '../machine/cpu-set.js';
import { type KernelCpus, kernelCpus } from '../machine/isolated-cpus.js';
import { cpusAmong } from '../machine/online-cpus.js';
import type { Topology } from '../machine/topology.js';
import { cpusOfPartitions } from './cpus-of-pods.js';
import type { PodAssignment } from './pod-assignment.js';
import type { CpuSnapshot } from './pools.js';

/** `unbalanced`: CPUs over which the kernel balances no load. */
export interface CpusNow extends CpuSnapshot {
  readonly unbalanced: CpuSet;
}

/**
 * Reads the CPUs once. On a described machine, only settings isolate CPUs. `pods`: grants on
 * record, which may have made ordinary CPUs an isolated partition. Those do not count as isolated
 * for others.
 */
export function cpusNow(topology: Topology, pods: readonly PodAssignment[] = []): CpusNow {
  const kernel = topology.isSimulated ? NO_KERNEL : kernelCpus();
  const ofGrants = topology.isSimulated ? CpuSet.EMPTY : cpusOfPartitions(pods);
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

// The kernel's part for a described machine.
const NO_KERNEL: KernelCpus = { online: undefined, isolated: CpuSet.EMPTY, unbalanced: CpuSet.EMPTY };

interface Last {
  readonly kernel: KernelCpus;
  readonly ofGrants: CpuSet;
  readonly now: CpusNow;
}

const lastOf = new WeakMap<Topology, Last>();

// Returns the same object while nothing changes, so that derived results stay cached.
function sameAs(last: CpusNow | undefined, now: CpusNow): CpusNow {
  if (
    last?.online.equals(now.online) &&
    last.isolated.equals(now.isolated) &&
    last.unbalanced.equals(now.unbalanced)
  )
    return last;
  return Object.freeze(now);
}

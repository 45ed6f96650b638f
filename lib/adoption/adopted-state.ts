// AdoptedState: the state with pods that were placed elsewhere, left where they are. Pure.
import type { Assignments } from '../account/assignments.js';
import type { BookedMemory } from '../account/booked-memory.js';
import { cpusOfSome, mixedOfPods } from '../account/cpus-of-pods.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { addPod } from '../account/pod-changes.js';
import { cpusOf, ISOLATED_OPTION } from '../account/pod-holdings.js';
import { type CpuSnapshot, freeCpus, isolatedPool, sharedPool } from '../account/pools.js';
import { MILLI } from '../input/values/quantity.js';
import type { Topology } from '../machine/topology.js';
import { cpuConflicts, deviceConflicts, memoryConflicts } from './conflicts.js';

/** A state with more pods; invalid if there are conflicts. */
export interface AdoptedState {
  readonly next: Assignments;
  readonly pods: readonly PodAssignment[];
  /** Sentences about everything that stands against it. */
  readonly conflicts: readonly string[];
}

/**
 * The state once some pods have what they claim. `booked`: the booked memory with these pods.
 * REQUIRES: none of these pods is on record.
 */
export function withAdopted(
  state: Assignments,
  pods: readonly PodAssignment[],
  booked: BookedMemory,
  { topology, present }: { readonly topology: Topology; readonly present: CpuSnapshot },
): AdoptedState {
  const pool = isolatedPool(state.settings, present);
  const result = pods.map((pod) => {
    const cpus = cpusOf(pod);
    return cpus.isEmpty || !cpus.isSubsetOf(pool) ? pod : { ...pod, options: { [ISOLATED_OPTION]: true } };
  });
  const next = result.reduce((all, pod) => addPod(all, pod, booked), state);
  const conflicts = [
    ...cpuConflicts(state, present, result),
    ...deviceConflicts(state, result),
    ...memoryConflicts(state.memory, next, topology, result),
  ];
  if (pods.length > 0 && sharedPool(next, present).isEmpty)
    conflicts.push('no CPU would be left for the shared pool, where everything else runs');
  const [remainingMilli, mixed] = [freeCpus(next, present).size * MILLI, mixedOfPods(next.pods)];
  if (!cpusOfSome(result).isEmpty && remainingMilli < mixed)
    conflicts.push(
      `mixed grants have booked ${mixed}m of the shared pool, and only ${remainingMilli}m would be left`,
    );
  return { next, pods: result, conflicts };
}

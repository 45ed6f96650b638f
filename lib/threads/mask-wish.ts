// MaskWish: CPUs that were chosen for this process by its mask, such as taskset, CPUAffinity= or
// a parent. A grant keeps to them. Follows sched_getaffinity(2).
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { cpusOf, runningCpus } from '../account/pod-holdings.js';
import { type CpuSnapshot, isolatedPool, sharedPool } from '../account/pools.js';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { native } from '../base/native.js';
import { isStartedBy } from '../enforcement/members/descent.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';

/** What a mask is judged by. */
export interface MaskFacts {
  readonly mask: CpuSet;
  /** The CPUs of its cpuset, which is a limit and no wish. */
  readonly limit: CpuSet;
  /** The shared pool, without CPUs that the kernel isolates: it leaves these out of every mask. */
  readonly pool: CpuSet;
  /** The CPUs of the grants of this process, or of one that has started it. */
  readonly grants: () => readonly CpuSet[];
  /** Whether numalign gave it the mask earlier, as the state folder shows. */
  readonly isFromBefore: () => boolean;
}

/** `wide`: nothing was chosen. `numalign`: it has the mask from numalign. Else a person or another program chose it. */
export type MaskOrigin = 'wide' | 'numalign' | 'chosen';

/**
 * Where a mask comes from, by the record. A mask with the whole shared pool is that of a member, or
 * of what a member has started. CPUs of one grant are the mask of a process on it, or of what that
 * has started.
 */
export function originOf({ mask, limit, pool, grants, isFromBefore }: MaskFacts): MaskOrigin {
  if (pool.intersection(limit).isSubsetOf(mask)) return 'wide';
  const own = mask.intersection(limit);
  return grants().some((cpus) => own.isSubsetOf(cpus)) || isFromBefore() ? 'numalign' : 'chosen';
}

// The grants that this process or its children may have their masks from.
const ownGrants = (pods: readonly PodAssignment[]) =>
  pods.filter(({ owner }) => owner.kind === 'process' && isStartedBy(owner, process.pid));

// A mask that came from numalign, also after the grants that it was for, and the last one of which the
// state folder was asked.
const inherited = () => ({ mask: undefined as CpuSet | undefined, asked: undefined as CpuSet | undefined });

/**
 * The CPUs that were chosen for this process by its mask; undefined: none were, or the machine is
 * simulated. A program on a grant of its parent's (NUMALIGN_GRANT) has the mask from numalign.
 * Isolated CPUs are in no mask at first, so requests for them may have them all.
 */
export function maskWish(topology: Topology, state: Assignments, present: CpuSnapshot): CpuSet | undefined {
  if (topology.isSimulated || process.env.NUMALIGN_GRANT !== undefined) return undefined;
  const given = ENVIRONMENT.of(inherited);
  const mask = chosenMask();
  const pool = sharedPool(state, present).difference(present.isolated);
  const grants = () => ownGrants(state.pods).map(cpusOf);
  const origin = originOf({ mask, limit: topology.allowed, pool, grants, isFromBefore: () => false });
  if (origin !== 'chosen') given.mask = mask;
  return given.mask?.equals(mask) ? undefined : mask.union(isolatedPool(state.settings, present));
}

// The main thread's: others may have been placed one by one.
const chosenMask = () => new CpuSet(native.chosenMask());

/**
 * Notes where the mask of this process comes from, when a manager is opened: the record, or the state
 * folder, then shows it. `stateDir`: undefined if the state is in memory.
 */
export async function noteMask(
  { topology, stateDir }: { readonly topology: Topology; readonly stateDir: string | undefined },
  state: Assignments,
  present: CpuSnapshot,
): Promise<void> {
  if (maskWish(topology, state, present) === undefined || stateDir === undefined) return;
  const given = ENVIRONMENT.of(inherited);
  const mask = chosenMask();
  if (given.asked?.equals(mask)) return;
  // Few processes have a mask of their own.
  const { isFromBefore } = await import('../enforcement/members/earlier-masks.js');
  given.asked = mask;
  if (isFromBefore(stateDir, { mask, limit: topology.allowed, present })) given.mask = mask;
}

/** The same for a grant of this process; undefined too if the grant has CPUs outside the mask. */
export function maskOfGrant(
  pod: PodAssignment,
  topology: Topology,
  state: Assignments,
  present: CpuSnapshot,
): CpuSet | undefined {
  const wish = pod.owner.kind === 'process' ? maskWish(topology, state, present) : undefined;
  return wish && runningCpus(pod).isSubsetOf(wish) ? wish : undefined;
}

// MaskWish: CPUs that were chosen for this process by its mask, such as taskset, CPUAffinity= or
// a parent. A grant keeps to them. Follows sched_getaffinity(2).
import { join } from 'node:path';
import type { Assignments } from '../account/assignments.js';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import { cpusOf, runningCpus } from '../account/pod-holdings.js';
import { type CpuSnapshot, isolatedPool, sharedPool } from '../account/pools.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeFolder } from '../base/native-files.js';
import { ENVIRONMENT } from '../base/registry.js';
import { isStartedBy } from '../enforcement/members/descent.js';
import { lineageOf } from '../enforcement/members/lineage.js';
import { SharedMembers } from '../enforcement/members/shared-members.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { hasEnded } from '../processes/process-identity.js';
import { readBootId } from '../state/folder/folder.js';
import { statesBetween } from '../state/past-states.js';
import { openExisting, withChild } from '../state/read-only-store.js';

/** What a mask is judged by. */
export interface MaskFacts {
  readonly mask: CpuSet;
  /** The CPUs of its cpuset, which is a limit and no wish. */
  readonly limit: CpuSet;
  /** The shared pool, without CPUs that the kernel isolates: it leaves these out of every mask. */
  readonly pool: CpuSet;
  /** The CPUs of the grants of this process, or of one that has started it. */
  readonly grants: () => readonly CpuSet[];
  /** Whether numalign gave it the mask earlier: see {@link isFromBefore}. */
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

// The record tells when a state was in force, /proc when a process started, both not exactly. Masks
// change some milliseconds before or after a commit.
const SLACK_MS = 250;

/**
 * Whether this process, or a parent that it has the mask from, has the mask from numalign, though
 * the record does not show it any more. That is so if numalign gave it to one of them; or if the one
 * that had it first was started by a member or an owner of a grant, and members or that grant had
 * this mask when it started. If what started it has ended, it may have been one of these.
 */
export function isFromBefore(
  stateDir: string,
  { mask, limit, present }: Pick<MaskFacts, 'mask' | 'limit'> & { readonly present: CpuSnapshot },
): boolean {
  const lineage = lineageOf(mask);
  const folder = lineage && unlessRefused(() => openExisting(stateDir));
  if (!folder) return false;
  const { heirs, began, starters, isOrphan } = lineage;
  const own = mask.intersection(limit);
  const isPoolOf = (state: Assignments) => {
    const pool = sharedPool(state, present).difference(present.isolated);
    return own.equals(pool.intersection(limit));
  };
  const mayBeOwner = ({ kind, pid }: OwnerRecord) =>
    kind === 'process' && (starters.some((each) => each.pid === pid) || (isOrphan && hasEnded(pid!)));
  const isGrantOf = ({ pods }: Assignments) =>
    pods.some((pod) => mayBeOwner(pod.owner) && own.isSubsetOf(cpusOf(pod)));
  const judge = (members: SharedMembers) => {
    if (heirs.some((each) => members.hasGiven(each, mask))) return true;
    const mayBeMember = isOrphan || starters.some((each) => members.registry.knows(each));
    const bootId = readBootId();
    return statesBetween(folder, began - SLACK_MS, began + SLACK_MS)
      .filter((state) => state.bootId === bootId)
      .some(({ assignments }) => (mayBeMember && isPoolOf(assignments)) || isGrantOf(assignments));
  };
  try {
    const look = (members?: NativeFolder) =>
      members !== undefined && judge(new SharedMembers(members, join(stateDir, 'members')));
    return unlessRefused(() => withChild(folder, 'members', look), false);
  } finally {
    folder.close();
  }
}

// A mask that came from numalign, also after the grants that it was for.
const inherited = () => ({ mask: undefined as CpuSet | undefined });

/**
 * The CPUs that were chosen for this process by its mask; undefined: none were, or the machine is
 * simulated. A program on a grant of its parent's (NUMALIGN_GRANT) has the mask from numalign.
 * Isolated CPUs are in no mask at first, so requests for them may have them all. The first call is
 * made when a manager is opened, with the state folder: that shows where an inherited mask comes from.
 */
export function maskWish(
  topology: Topology,
  state: Assignments,
  present: CpuSnapshot,
  stateDir?: string,
): CpuSet | undefined {
  if (topology.isSimulated || process.env.NUMALIGN_GRANT !== undefined) return undefined;
  const given = ENVIRONMENT.of(inherited);
  // The main thread's: others may have been placed one by one.
  const mask = new CpuSet(native.chosenMask());
  const pool = sharedPool(state, present).difference(present.isolated);
  const grants = () => ownGrants(state.pods).map(cpusOf);
  const limit = topology.allowed;
  const wasGiven = () => stateDir !== undefined && isFromBefore(stateDir, { mask, limit, present });
  const origin = originOf({ mask, limit, pool, grants, isFromBefore: wasGiven });
  if (origin !== 'chosen') given.mask = mask;
  return given.mask?.equals(mask) ? undefined : mask.union(isolatedPool(state.settings, present));
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

// Enforcer: makes the kernel of this machine agree with the record. CPUs that become exclusive are
// cleared and read back before the commit. CPUs that are given back are opened to others after it. A
// crash in between leaves the shared pool too small, but never causes an overlap.
import { join } from 'node:path';
import type { Assignments, MachineSettings } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import { BY_RECORD, type EnforcementLevel, type EnforcementRequest } from '../account/levels.js';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import { exclusiveCpus, sharedPool } from '../account/pools.js';
import { NumalignError, refusalOf, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { openCpusetHierarchy } from '../cgroups/cpuset-hierarchy.js';
import { FolderMadeGroups } from '../cgroups/files/made-groups.js';
import { cgroupAdvice } from '../input/values/machine-folder.js';
import { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { identifySelf } from '../processes/process-identity.js';
import type { Store } from '../state/store.js';
import { type Cleared, Clearing } from './clearing.js';
import { compare, levelsNow } from './comparison.js';
import type { Comparison } from './drift.js';
import { Cpusets } from './layout/cpusets.js';
import type { PoolCpuset } from './layout/shared-group.js';
import { transitionOf } from './layout/transition.js';
import { bindMemory, type FoundCpusets, fitGroups, MachineConfiner } from './machine-confiner.js';
import type { UnpinnedThread } from './members/confinement.js';
import { processName } from './members/member-entry.js';
import { SharedMembers } from './members/shared-members.js';

class MachineEnforcer {
  /**
   * `state` reads the state on record; undefined if it cannot be read. `isDoubtful`: whether this
   * process is root, and others can write the record.
   */
  constructor(
    private readonly confiner: MachineConfiner,
    private readonly state: () => Assignments | undefined,
    private readonly isDoubtful: () => boolean,
  ) {}

  get members(): SharedMembers {
    return this.confiner.members;
  }

  /** Where processes of grants are put; undefined if only masks are used. */
  cpusetsOf(settings: MachineSettings): Cpusets | undefined {
    return this.confiner.cpusetsOf(settings);
  }

  /**
   * Whether this process may move the processes of the cgroup that owns a grant. Root may not move
   * just any process because a record says so that others may have written.
   */
  mayMoveOwner({ kind, cgroup }: OwnerRecord): boolean {
    const isOurs = () => {
      const settings = this.state()?.settings;
      return settings !== undefined && this.cpusetsOf(settings)?.isOurs(cgroup!.path) === true;
    };
    return kind !== 'cgroup' || !this.isDoubtful() || isOurs();
  }

  /**
   * The CPUs that this process may use, or that only groups of numalign keep from it. Empty without
   * such groups.
   */
  cpusWithinReach({ settings, pods }: Assignments): CpuSet {
    return this.cpusetsOf(settings)?.cpusWithinReach(process.pid, pods) ?? CpuSet.EMPTY;
  }

  /**
   * Records what the threads of this process that run on no grant have chosen. Call it before
   * anything changes their masks or their cpuset: afterwards the kernel shows only a part of it.
   */
  learnAskedMasks(settings: MachineSettings): void {
    const { possible, cpus } = this.confiner.topology();
    const limit = this.cpusetsOf(settings)?.cpusOutsideGrants(process.pid) ?? CpuSet.EMPTY;
    const all = possible.union(cpus).words;
    native.learnAskedMasks(limit.words, all, processName(identifySelf()), this.members.ownRecord());
  }

  /** Makes this process run in the shared pool from now on. REQUIRES: the lock. */
  join(state: Assignments, onReopen: () => void): void {
    this.learnAskedMasks(state.settings);
    this.members.join(() => this.state()?.pods ?? [], onReopen);
    this.share(process.pid, state);
  }

  /**
   * Moves a registered process to the shared pool, into its cgroup if possible; with `leavesGrants`,
   * out of the cgroup of a grant too. REQUIRES: the lock. @throws ERR_CGROUP
   */
  share(pid: number, state: Assignments, { leavesGrants = false } = {}): void {
    const cpusets = this.cpusetsOf(state.settings);
    const pool = cpusets && this.#poolCpuset(state);
    if (leavesGrants) cpusets?.leaveGrants(pid, pool!);
    cpusets?.shared.join(pid, pool!);
  }

  #poolCpuset(state: Assignments): PoolCpuset {
    const topology = this.confiner.topology();
    const pool = sharedPool(state, cpusNow(topology));
    return { pool, all: topology.cpus, mems: NodeSet.from(topology.numaNodes) };
  }

  /** Call this as often as {@link join}. */
  leave(): void {
    this.members.leave();
    const state = this.state();
    if (state) this.unshare(process.pid, state);
  }

  /**
   * Moves a process that is no longer a member back to where {@link share} took it from, if nothing
   * is exclusive. REQUIRES: the lock.
   */
  unshare(pid: number, state: Assignments): void {
    // Elsewhere it could run on exclusive CPUs.
    const cpusets = exclusiveCpus(state).isEmpty ? this.cpusetsOf(state.settings) : undefined;
    cpusets?.shared.leave(pid, cpusets.pathOf(pid) ?? '');
  }

  /**
   * Clears what `next` takes. `unpinned`: threads of this process that have left their grants for
   * it. REQUIRES: the state's lock, and right afterwards the commit of the returned `next`.
   * @throws ERR_MEMBER_UNMOVABLE; ERR_ENFORCEMENT if a new grant does not reach the level it
   *   requires; then everything is as before
   */
  clear(
    before: Assignments,
    next: Assignments,
    request: EnforcementRequest,
    unpinned: readonly UnpinnedThread[] = [],
  ): Promise<Cleared> | Cleared {
    const transition = transitionOf(before, next);
    if (!transition) return unchanged(next);
    if (transition.isTaken) this.confiner.claim(next);
    if (this.cpusetsOf(next.settings)) this.learnAskedMasks(next.settings);
    const reopen = (state: Assignments) => void this.apply(state, [], true);
    return new Clearing(this.confiner, { transition, request, unpinned, reopen }).clear();
  }

  /**
   * Makes the kernel agree with a state. Returns what could not be done, and which members are
   * stuck. `isReopened`: CPUs were given back, and members that cannot be moved from here must be
   * notified. REQUIRES: the lock.
   */
  apply(state: Assignments, unpinned: readonly UnpinnedThread[] = [], isReopened = false) {
    const refusal = refusalOf(() => {
      const groups = this.confiner.groupsNow([state]);
      if (groups) {
        // The next round of reconciling reports what is refused.
        bindMemory(groups);
        fitGroups(groups);
      }
      this.confiner.setPartition([state], unpinned);
    });
    const { stuck, refused, confinement } = this.confiner.confine([state], unpinned);
    this.confiner.restoreAskedMasks(state, false);
    // Each notified member does the same, so numalign announces only CPUs that were given back.
    if (isReopened) this.members.announceReopened([...stuck, ...refused], confinement);
    return { failed: refusal ? [refusal.message] : [], stuck };
  }

  /**
   * Finds what differs from a state below `cgroupRoot` and among the shared members. Needs no lock
   * and changes nothing. `isGivenUp`: true for keys of what will not be repaired.
   * @throws ERR_CGROUP
   */
  compare(state: Assignments, isGivenUp: (key: string) => boolean): Comparison {
    const share = (pid: number) => this.share(pid, state);
    return compare({ confiner: this.confiner, state, isGivenUp, share });
  }

  /**
   * The level at which the CPUs of a grant are kept from others now, if its partition is valid:
   * `recorded` if its groups lack some, or the group of another grant has some.
   */
  levelsNow(state: Assignments): (pod: PodAssignment) => EnforcementLevel {
    return levelsNow(this.confiner, state);
  }
}

/** What enforces grants on a machine. */
export type Enforcer = Pick<MachineEnforcer, Exclude<keyof MachineEnforcer, 'members'>> & {
  /** Undefined for a simulated machine. */
  readonly members: SharedMembers | undefined;
};

/** The machine that grants are enforced on. */
export interface Machine {
  readonly enforcer: Enforcer;
  readonly topology: Topology;
}

const unchanged = (next: Assignments): Cleared => ({
  next,
  shortfalls: [],
  settle: undefined,
  undo: () => {},
});

/** The enforcer of a simulated machine. */
export const noEnforcer = (): Enforcer => ({
  clear: (_, next) => unchanged(next),
  apply: () => ({ failed: [], stuck: [] }),
  compare: () => ({ checked: 0, drifts: [] }),
  levelsNow: () => () => BY_RECORD,
  cpusetsOf: () => undefined,
  mayMoveOwner: () => true,
  members: undefined,
  learnAskedMasks: () => {},
  cpusWithinReach: () => CpuSet.EMPTY,
  join: () => {},
  leave: () => {},
  share: () => {},
  unshare: () => {},
});

/**
 * The enforcer of this machine, as far as this process may enforce anything. `given`: its own option
 * `cgroupRoot`.
 */
export function enforcerOf(
  topology: () => Topology,
  store: Store,
  given: string | null | undefined,
): Enforcer {
  const members = SharedMembers.of(store);
  if (!members) return noEnforcer();
  const state = () => unlessRefused(() => store.read()?.assignments);
  const find = (cgroupRoot: string | null): FoundCpusets => {
    if (cgroupRoot === null) return whyNoCgroups(store.path);
    try {
      const refusal = store.agreedRoot?.refusal(cgroupRoot, given);
      if (refusal) return `${refusal.why}: ${refusal.advice}`;
      const hierarchy = openCpusetHierarchy(cgroupRoot, new FolderMadeGroups(join(store.path, 'cgroups')));
      return hierarchy.canWrite() ? new Cpusets(hierarchy) : `this user may not write ${hierarchy.rootPath}`;
    } catch (error) {
      if (error instanceof NumalignError) return error.message;
      throw error;
    }
  };
  const isDoubtful = () => store.agreedRoot?.counts === true;
  return new MachineEnforcer(
    new MachineConfiner(topology, members, find, store.rootUsers),
    state,
    isDoubtful,
  );
}

const whyNoCgroups = (path: string): string =>
  `the settings of this state have no cgroup root, so no cgroups are used; as root, ${cgroupAdvice(path)} changes that`;

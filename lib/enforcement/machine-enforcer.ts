// MachineEnforcer: makes the kernel of this machine keep others off granted CPUs.
import { join } from 'node:path';
import type { Assignments, MachineSettings } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { EnforcementLevel, EnforcementRequest } from '../account/levels.js';
import type { OwnerRecord, PodAssignment } from '../account/pod-assignment.js';
import { exclusiveCpus, sharedPool } from '../account/pools.js';
import { NumalignError, refusalOf, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { openCpusetHierarchy } from '../cgroups/cpuset-hierarchy.js';
import { FolderMadeGroups } from '../cgroups/files/made-groups.js';
import { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { Store } from '../state/store.js';
import { Clearing } from './clearing.js';
import { compare, levelsNow } from './comparison.js';
import type { Comparison } from './drift.js';
import { type Applied, type Cleared, type Enforcer, NO_ENFORCER } from './enforcer.js';
import { Cpusets } from './layout/cpusets.js';
import type { PoolCpuset } from './layout/shared-group.js';
import { transitionOf } from './layout/transition.js';
import { bindMemory, type FoundCpusets, fitGroups, MachineConfiner } from './machine-confiner.js';
import type { UnpinnedThread } from './members/confinement.js';
import { SharedMembers } from './members/shared-members.js';

export class MachineEnforcer implements Enforcer {
  readonly #confiner: MachineConfiner;
  readonly #state: () => Assignments | undefined;
  readonly #isDoubtful: () => boolean;

  /**
   * `state` reads the state on record; undefined if it cannot be read. `isDoubtful`: whether this
   * process is root, and others can write the record.
   */
  constructor(confiner: MachineConfiner, state: () => Assignments | undefined, isDoubtful: () => boolean) {
    this.#confiner = confiner;
    this.#state = state;
    this.#isDoubtful = isDoubtful;
  }

  get members(): SharedMembers {
    return this.#confiner.members;
  }

  cpusetsOf(settings: MachineSettings): Cpusets | undefined {
    return this.#confiner.cpusetsOf(settings);
  }

  mayMoveOwner({ kind, cgroup }: OwnerRecord): boolean {
    const isOurs = () => {
      const settings = this.#state()?.settings;
      return settings !== undefined && this.cpusetsOf(settings)?.isOurs(cgroup!.path) === true;
    };
    return kind !== 'cgroup' || !this.#isDoubtful() || isOurs();
  }

  cpusWithinReach({ settings, pods }: Assignments): CpuSet {
    return this.cpusetsOf(settings)?.cpusWithinReach(process.pid, pods) ?? CpuSet.EMPTY;
  }

  learnChoices(settings: MachineSettings): void {
    const { possible, cpus } = this.#confiner.topology();
    const limit = this.cpusetsOf(settings)?.cpusOutsideGrants(process.pid) ?? CpuSet.EMPTY;
    native.learnChoices(limit.words, possible.union(cpus).words, this.members.ownMasks());
  }

  join(state: Assignments, onReopen: () => void): void {
    this.learnChoices(state.settings);
    this.members.join(() => this.#state()?.pods ?? [], onReopen);
    this.share(process.pid, state);
  }

  share(pid: number, state: Assignments): void {
    this.cpusetsOf(state.settings)?.shared.join(pid, this.#poolCpuset(state));
  }

  shareAnyway(pid: number, state: Assignments): void {
    this.cpusetsOf(state.settings)?.leaveGrants(pid, this.#poolCpuset(state));
    this.share(pid, state);
  }

  #poolCpuset(state: Assignments): PoolCpuset {
    const topology = this.#confiner.topology();
    const pool = sharedPool(state, cpusNow(topology));
    return { pool, all: topology.cpus, mems: NodeSet.from(topology.numaNodes) };
  }

  leave(): void {
    this.members.leave();
    const state = this.#state();
    if (state) this.unshare(process.pid, state);
  }

  unshare(pid: number, state: Assignments): void {
    // Elsewhere it could run on exclusive CPUs.
    const cpusets = exclusiveCpus(state).isEmpty ? this.cpusetsOf(state.settings) : undefined;
    cpusets?.shared.leave(pid, cpusets.pathOf(pid) ?? '');
  }

  clear(
    before: Assignments,
    next: Assignments,
    request: EnforcementRequest,
    unpinned: readonly UnpinnedThread[] = [],
  ): Promise<Cleared> | Cleared {
    const transition = transitionOf(before, next);
    if (!transition) return NO_ENFORCER.clear(before, next, request);
    if (this.cpusetsOf(next.settings)) this.learnChoices(next.settings);
    const reopen = (state: Assignments) => void this.apply(state, [], true);
    return new Clearing(this.#confiner, { transition, request, unpinned, reopen }).clear();
  }

  apply(state: Assignments, unpinned: readonly UnpinnedThread[] = [], isReopened = false): Applied {
    const refusal = refusalOf(() => {
      const groups = this.#confiner.groupsNow([state]);
      if (groups) {
        // The next round of reconciling reports what is refused.
        bindMemory(groups);
        fitGroups(groups);
      }
      this.#confiner.setPartition([state], unpinned);
    });
    const { stuck, refused, ...confinement } = this.#confiner.confine([state], unpinned);
    this.#confiner.restoreChoices(state, false);
    // Each notified member does the same, so numalign announces only CPUs that were given back.
    if (isReopened) this.members.announceReopened([...stuck, ...refused], confinement);
    return { failed: refusal ? [refusal.message] : [], stuck };
  }

  compare(state: Assignments, isGivenUp: (key: string) => boolean): Comparison {
    const share = (pid: number) => this.share(pid, state);
    return compare({ confiner: this.#confiner, state, isGivenUp, share });
  }

  levelsNow(state: Assignments): (pod: PodAssignment) => EnforcementLevel {
    return levelsNow(this.#confiner, state);
  }
}

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
  if (!members) return NO_ENFORCER;
  const state = () => unlessRefused(() => store.read()?.assignments);
  const find = (cgroupRoot: string): FoundCpusets => {
    try {
      const refusal = store.rootChoice?.refusal(cgroupRoot, given);
      if (refusal) return `${refusal.why}: ${refusal.advice}`;
      const hierarchy = openCpusetHierarchy(cgroupRoot, new FolderMadeGroups(join(store.path, 'cgroups')));
      return hierarchy.canWrite() ? new Cpusets(hierarchy) : `this user may not write ${hierarchy.rootPath}`;
    } catch (error) {
      if (error instanceof NumalignError) return error.message;
      throw error;
    }
  };
  const isDoubtful = () => store.rootChoice?.counts === true;
  return new MachineEnforcer(new MachineConfiner(topology, members, find), state, isDoubtful);
}

// MachineConfiner: keeps the shared members off exclusive CPUs, by cpusets, a partition or masks.
import type { Assignments, MachineSettings } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import { cpusOfSome } from '../account/cpus-of-pods.js';
import { type EnforcementLevel, strongestLevel } from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { cpusOf } from '../account/pod-holdings.js';
import { podListChanges, podsAfter, podsBefore, podsOfBoth } from '../account/pod-list-changes.js';
import { exclusiveCpus, sharedPool } from '../account/pools.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { isLinuxFrom } from '../cgroups/files/linux-version.js';
import { CpuSet } from '../machine/cpu-set.js';
import { bootIsolatedCpus } from '../machine/isolated-cpus.js';
import type { Topology } from '../machine/topology.js';
import type { RootClaims } from '../state/store.js';
import type { Cpusets } from './layout/cpusets.js';
import {
  groupDifferences,
  memoryDifferences,
  partitionDifferences,
  poolDifferences,
} from './layout/differences.js';
import { readGrants, readPartition, readPools } from './layout/facts.js';
import { layoutOf, podsInPartition } from './layout/layout.js';
import { mend } from './layout/steps.js';
import { podsNotIn } from './layout/transition.js';
import type { Confined, Confinement, UnpinnedThread } from './members/confinement.js';
import type { Registered } from './members/member-entry.js';
import type { AskedMasks } from './members/member-masks.js';
import { memberOf, type SharedMember } from './members/shared-member.js';
import type { SharedMembers } from './members/shared-members.js';
import { type BindingOutcomes, whyUnbound } from './memory-binding.js';

/** A confinement, and what became of the members. */
export interface ConfinedMembers extends Confined {
  readonly confinement: Confinement;
  /** Their number. */
  readonly members: number;
}

/** Groups of grants, and their CPUs and nodes. */
type GroupsNow = NonNullable<ReturnType<MachineConfiner['groupsNow']>>;

/** Gives groups of grants their CPUs. REQUIRES: the state's lock. @throws ERR_CGROUP */
export function fitGroups({ hierarchy, groups, facts }: GroupsNow): void {
  mend(hierarchy, groupDifferences(groups, facts));
}

/**
 * Binds groups of grants to the memory nodes of what is booked. A refusal of the kernel is part of
 * the result, and fails nothing. REQUIRES: the state's lock.
 */
export function bindMemory({ hierarchy, groups, facts }: GroupsNow): BindingOutcomes {
  const outcomes = new Map<string, Map<string, string | null>>();
  for (const difference of memoryDifferences(groups, facts)) {
    const { pod, container } = difference;
    const refusals = outcomes.get(pod.uid) ?? new Map<string, string | null>();
    outcomes.set(pod.uid, refusals.set(container, whyUnbound(() => mend(hierarchy, [difference])) ?? null));
  }
  return outcomes;
}

/** The cgroups below a root, or in words why none can be used. */
export type FoundCpusets = Cpusets | string;
type FindCpusets = (cgroupRoot: string | null) => FoundCpusets;

/** Everything that writes REQUIRES the state's lock. */
export class MachineConfiner {
  readonly #users: RootClaims | undefined;
  readonly #cpusets = new Map<string | null, FoundCpusets>();
  // What members had chosen before the first change of the partition since they were last confined.
  #askedMasks: AskedMasks | undefined;

  constructor(
    readonly topology: () => Topology,
    readonly members: SharedMembers,
    private readonly find: FindCpusets,
    users?: RootClaims,
  ) {
    this.#users = users;
  }

  /** Takes the cgroup root for grants of this state, unless another state enforces there. */
  claim(state: Assignments): void {
    const found = this.#foundAt(state.settings.cgroupRoot);
    if (typeof found !== 'string') this.#users?.claim(state, found.hierarchy);
  }

  cpusetsOf(settings: MachineSettings): Cpusets | undefined {
    const found = this.findCpusets(settings);
    return typeof found === 'string' ? undefined : found;
  }

  /** The cgroups, or in words why none are used. */
  findCpusets(settings: MachineSettings): FoundCpusets {
    const found = this.#foundAt(settings.cgroupRoot);
    const refusal = typeof found === 'string' ? undefined : this.#users?.refusal(settings);
    return refusal ? `${refusal.why}: ${refusal.advice}` : found;
  }

  #foundAt(cgroupRoot: string | null): FoundCpusets {
    const found = this.#cpusets.get(cgroupRoot) ?? this.find(cgroupRoot);
    this.#cpusets.set(cgroupRoot, found);
    return found;
  }

  /**
   * Makes the root a partition with the CPUs of all of these states, or ends the partition. The
   * last state says which grants are isolated in it. `isWhole`: see {@link readGrants}.
   * @throws ERR_CGROUP with the kernel's reason; then the root is as before
   */
  setPartition(
    states: readonly Assignments[],
    unpinned: readonly UnpinnedThread[] = [],
    isWhole = false,
  ): void {
    const cpusets = this.cpusetsOf(states[0]!.settings);
    if (cpusets?.hierarchy.version !== 2) return;
    const layout = layoutOf(states);
    if (layout.partition.isEmpty && !cpusets.isPartition) return;
    const { hierarchy } = cpusets;
    const grants = readGrants(hierarchy, layout.groups, isWhole);
    const differences = partitionDifferences(layout, readPartition(hierarchy, grants));
    if (differences.length === 0) return;
    this.#askedMasks ??= this.#askedMasksOf(cpusets, this.members.present(), states, unpinned);
    mend(hierarchy, differences);
  }

  /**
   * The groups of grants in all of these states, with their current facts; `concerns` selects the
   * grants, `isWhole`: see {@link readGrants}. Undefined if there are none.
   * @throws ERR_CGROUP
   */
  groupsNow(
    states: readonly Assignments[],
    concerns: (pod: PodAssignment) => boolean = () => true,
    isWhole = false,
  ) {
    const groups = layoutOf(states).groups.filter(({ pod }) => concerns(pod));
    const hierarchy = this.cpusetsOf(states.at(-1)!.settings)?.hierarchy;
    if (!hierarchy || groups.length === 0) return undefined;
    return { hierarchy, groups, facts: readGrants(hierarchy, groups, isWhole) };
  }

  // Reads them before the kernel resets the masks.
  #askedMasksOf(
    cpusets: Cpusets,
    present: readonly Registered[],
    states: readonly Assignments[],
    unpinned: readonly UnpinnedThread[],
  ): AskedMasks {
    const pods = podsOfBoth(states[0]!.pods, states.at(-1)!.pods);
    const ordinary = this.topology().cpus.difference(bootIsolatedCpus());
    const cpusetOf = (pid: number) => cpusets.cpusOf(pid);
    return this.members.learnAskedMasks(present, { pods, unpinned, cpusetOf }, ordinary);
  }

  /**
   * Moves members off what any of these states takes, unless a partition keeps everyone else off.
   */
  confine(
    states: readonly Assignments[],
    unpinned: readonly UnpinnedThread[],
    onMoved?: Confinement['onMoved'],
  ): ConfinedMembers {
    const { members } = this;
    const cpusets = this.cpusetsOf(states[0]!.settings);
    const confinement = this.confinement(states, unpinned, onMoved);
    const { pool, pods } = confinement;
    const present = members.present();
    const list = present.map(({ entry }) => memberOf(entry));
    const isPartition = cpusets?.isPartition === true;
    // If the shared pool's cgroups cannot be read or changed, only masks are used.
    const differences =
      cpusets && !isPartition ? unlessRefused(() => differentPools(cpusets, pool, list)) : undefined;
    if (cpusets && differences?.length !== 0 && (isPartition || !keepsMasks())) {
      this.#askedMasks ??= this.#askedMasksOf(cpusets, present, states, unpinned);
    }
    const askedMasks = this.#askedMasks;
    this.#askedMasks = undefined;
    const setPools = () => {
      mend(cpusets!.hierarchy, differences!);
      return true;
    };
    const isSet = differences !== undefined && unlessRefused(setPools, false);
    const isConfined = (member: SharedMember) => isSet && cpusets!.confines(member, list, pods, pool);
    const { stuck, refused, byMask } = members.confine(present, confinement, isConfined, askedMasks);
    return { stuck, refused, byMask, members: list.length, confinement };
  }

  /** Where members may be while all of these states hold. */
  confinement(
    states: readonly Assignments[],
    unpinned: readonly UnpinnedThread[],
    onMoved?: Confinement['onMoved'],
  ): Confinement {
    const [first, last] = [states[0]!, states.at(-1)!];
    const changes = podListChanges(first.pods, last.pods);
    const [former, changedPods] = [podsBefore(changes), new Set(podsAfter(changes))];
    const now = cpusNow(this.topology(), podsOfBoth(first.pods, last.pods));
    // Processes on a grant that ends must leave it. No process can rightfully be on a new grant
    // yet.
    const newPods = podsNotIn(last, first);
    const staying = newPods.length === 0 ? last.pods : last.pods.filter((pod) => !newPods.includes(pod));
    const before = new Map(former.map((pod) => [pod.uid, cpusOf(pod)]));
    const rightfulCpus = (pod: PodAssignment) =>
      changedPods.has(pod) ? cpusOf(pod).intersection(before.get(pod.uid) ?? CpuSet.EMPTY) : cpusOf(pod);
    const pool = states.map((state) => sharedPool(state, now)).reduce((a, b) => a.intersection(b));
    const exclusive = states.map(openCpus).reduce((a, b) => a.union(b));
    const { possible, cpus } = this.topology();
    const cpusets = this.cpusetsOf(last.settings);
    return {
      taken: exclusive,
      pool,
      all: possible.union(cpus),
      pods: staying,
      granted: exclusiveCpus(last),
      rightfulCpus,
      held: last.pods,
      unpinned,
      cpusetOf: (pid) => cpusets?.cpusOf(pid),
      onMoved,
    };
  }

  /**
   * Gives threads of this process what they have chosen if the kernel has not applied it yet.
   * Returns how many. If masks keep threads in the pool, the members' masks decide.
   */
  restoreAskedMasks(state: Assignments, dryRun: boolean): number {
    const cpusets = this.cpusetsOf(state.settings);
    const limit = cpusets?.holdsInPool(process.pid) ? cpusets.cpusOutsideGrants(process.pid) : undefined;
    return limit ? native.settleAskedMasks(limit.words, dryRun) : 0;
  }
}

// The exclusive CPUs that no partition protects.
function openCpus(state: Assignments): CpuSet {
  return exclusiveCpus(state).difference(cpusOfSome(podsInPartition(state.pods)));
}

// Since Linux 6.2 the kernel remembers the mask that a thread asked for when its cpuset changes.
const keepsMasks = () => isLinuxFrom(6, 2);

/** Groups whose CPUs are not the shared pool. */
export function differentPools(cpusets: Cpusets, pool: CpuSet, members: readonly SharedMember[]) {
  return poolDifferences(pool, readPools(cpusets.hierarchy, cpusets.poolGroups(members)));
}

/** What decides a level. */
type LevelFacts = Pick<ConfinedMembers, 'byMask' | 'members'> & { readonly stuck: readonly unknown[] };

/** The level at which these members are kept off, without a partition. */
export function levelOf({ stuck, byMask, members }: LevelFacts): EnforcementLevel {
  return strongestLevel({ movesMembers: stuck.length === 0 && members > 0, usesCgroups: byMask === 0 });
}

// MachineConfiner: keeps the shared members off exclusive CPUs, by cpusets, a partition or masks.
import type { Assignments, MachineSettings } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import { cpusOf, type EnforcementLevel, type PodAssignment } from '../account/pod-assignment.js';
import { sharedPool } from '../account/pools.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { CpuSet } from '../machine/cpu-set.js';
import { bootIsolatedCpus } from '../machine/isolated-cpus.js';
import type { Topology } from '../machine/topology.js';
import { allCpusOf, type CpusetLayout, isPartitioned } from './cpuset-layout.js';
import type { Confinement, SharedMember, StuckMember, UnpinnedThread } from './members/confinement.js';
import type { MemberChoices } from './members/member-masks.js';
import type { SharedMembers } from './members/shared-members.js';
import { podsNotIn } from './transition.js';

/** How members stand to a state. */
export interface Standing extends Confinement {
  readonly stuck: readonly StuckMember[];
  readonly refused: readonly StuckMember[];
  /** Processes that only masks keep off. */
  readonly byMask: number;
  readonly members: number;
}

/** The cgroups below a root; or why there are none to be used. */
export type FoundLayout = CpusetLayout | string;

/** REQUIRES for everything that writes: the state's lock. */
export class MachineConfiner {
  readonly topology: () => Topology;
  readonly members: SharedMembers;
  readonly #find: (cgroupRoot: string) => FoundLayout;
  readonly #layouts = new Map<string, FoundLayout>();
  // Of members before the first change of the partition that they have not been confined after.
  #choices: MemberChoices | undefined;

  constructor(topology: () => Topology, members: SharedMembers, find: (cgroupRoot: string) => FoundLayout) {
    this.topology = topology;
    this.members = members;
    this.#find = find;
  }

  layoutOf(settings: MachineSettings): CpusetLayout | undefined {
    const found = this.findLayout(settings);
    return typeof found === 'string' ? undefined : found;
  }

  /** Or, in words, why no cgroups are used. */
  findLayout({ cgroupRoot }: MachineSettings): FoundLayout {
    if (cgroupRoot === null)
      return 'the settings of this state name no cgroup root, so that no cgroups are used';
    const found = this.#layouts.get(cgroupRoot) ?? this.#find(cgroupRoot);
    this.#layouts.set(cgroupRoot, found);
    return found;
  }

  /**
   * Makes the root a partition with the CPUs of all of these states. The last one says which grants
   * are isolated in it.
   * @throws ERR_CGROUP
   */
  setPartition(states: readonly Assignments[], unpinned: readonly UnpinnedThread[] = []): void {
    const layout = this.layoutOf(states[0]!.settings);
    if (layout?.hierarchy.version !== 2) return;
    const pods = states.flatMap((state) => state.pods);
    if (!layout.isPartition && !pods.some(isPartitioned)) return;
    if (!layout.isPartitionOf(pods)) this.#choices ??= this.#choicesOf(layout, states, unpinned);
    layout.setPartition(pods, states.at(-1)!.pods);
  }

  // Before the kernel resets them.
  #choicesOf(
    layout: CpusetLayout,
    states: readonly Assignments[],
    unpinned: readonly UnpinnedThread[],
  ): MemberChoices {
    const pods = states.flatMap((state) => state.pods);
    const ordinary = this.topology().cpus.difference(bootIsolatedCpus());
    return this.members.choices({ pods, unpinned }, (pid) => layout.cpusetOf(pid), ordinary);
  }

  /** Off what any of these states takes, unless a partition keeps everybody off it. */
  confine(states: readonly Assignments[], unpinned: readonly UnpinnedThread[]): Standing {
    const { members } = this;
    const layout = this.layoutOf(states[0]!.settings);
    const confinement = this.confinement(states, unpinned);
    const { pool, pods } = confinement;
    const list = members.list();
    if (layout?.isPartition || layout?.resetsMasks(pool, list)) {
      this.#choices ??= this.#choicesOf(layout, states, unpinned);
    }
    const choices = this.#choices;
    this.#choices = undefined;
    const isSet = layout !== undefined && !layout.isPartition && this.#isPoolSet(layout, pool, list);
    const isConfined = (member: SharedMember) => isSet && layout.confines(member, list, pods, pool);
    const { stuck, refused, byMask } = members.confine(confinement, isConfined, choices);
    return { stuck, refused, byMask, members: list.length, ...confinement };
  }

  /** Where members may be while all of these states hold. */
  confinement(states: readonly Assignments[], unpinned: readonly UnpinnedThread[]): Confinement {
    const pods = states.flatMap((state) => state.pods);
    const now = cpusNow(this.topology(), pods);
    // Who was on a grant that ends must leave it, and on a new one nobody can be by right yet.
    const [first, last] = [states[0]!, states.at(-1)!];
    const added = podsNotIn(last, first);
    const staying = last.pods.filter((pod) => !added.includes(pod));
    const before = new Map(first.pods.map((pod) => [pod.uid, cpusOf(pod)]));
    const rightfulCpus = (pod: PodAssignment) =>
      cpusOf(pod).intersection(before.get(pod.uid) ?? CpuSet.EMPTY);
    const pool = states.map((state) => sharedPool(state, now)).reduce((a, b) => a.intersection(b));
    const taken = allCpusOf(pods.filter((pod) => !isPartitioned(pod)));
    const { possible, cpus } = this.topology();
    const cpusetOf = (pid: number) => this.layoutOf(last.settings)?.cpusetOf(pid);
    const all = possible.union(cpus);
    return { taken, pool, all, pods: staying, rightfulCpus, held: last.pods, unpinned, cpusetOf };
  }

  // Where it cannot be, masks must do.
  #isPoolSet(layout: CpusetLayout, pool: CpuSet, members: readonly SharedMember[]): boolean {
    try {
      layout.setPool(pool, members);
      return true;
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      return false;
    }
  }

  /**
   * Threads of this process get what they have chosen where the kernel has not taken it yet. Answers
   * how many. Where masks keep threads in the pool, the members' masks say what they have.
   */
  settleChoices(state: Assignments, dryRun: boolean): number {
    const layout = this.layoutOf(state.settings);
    const limit = layout?.holdsInPool(process.pid) ? layout.cpusOutsideGrants(process.pid) : undefined;
    return limit ? native.settleChoices(limit.words, dryRun) : 0;
  }
}

/** What a level follows from. */
interface LevelFacts {
  readonly stuck: readonly unknown[];
  readonly byMask: number;
  readonly members: number;
}

/** The level at which these members are kept off, with no partition. */
export function levelOf({ stuck, byMask, members }: LevelFacts): EnforcementLevel {
  if (stuck.length > 0 || members === 0) return 'recorded';
  return byMask === 0 ? 'cpuset' : 'members';
}

// Enforcer: has the kernel agree with the record. CPUs that are about to be somebody's alone are cleared before the commit, and read back; those that are given back
// are opened to the others after it. So a crash in between leaves the shared pool too small, never an overlap.
import { join } from 'node:path';
import { openCpusetHierarchy } from '../cgroups/cpuset-hierarchy.js';
import { FolderMadeGroups } from '../cgroups/made-groups.js';
import { CpuSet, NodeSet } from '../cpu-set.js';
import { cpusNow } from '../cpus-now.js';
import { NumalignError } from '../errors.js';
import {
  type Assignments,
  cpusOf,
  type EnforcementLevel,
  exclusiveCpus,
  type MachineSettings,
  type PodAssignment,
  runningCpus,
  sharedPool,
} from '../state/assignments.js';
import type { Store } from '../state/store.js';
import type { Topology } from '../topology.js';
import { allCpusOf, CpusetLayout, isPartitioned } from './cpuset-layout.js';
import { type EnforcementRequest, enforcementError, isAtLeast, weaker } from './levels.js';
import type { Confinement, MemberChoices, SharedMember, SharedMembers, StuckMember } from './shared-members.js';

/** CPUs are cleared for a state that is about to be committed. */
export interface Cleared {
  /** With the level that each new grant has reached. */
  readonly next: Assignments;
  /** Why new grants have not reached what was aimed at. */
  readonly shortfalls: readonly string[];
  /** Opens what is given back, once it is committed; `unpinned`: threads of this process whose masks were changed for them. Undefined where nothing is. */
  readonly settle: ((unpinned: readonly number[]) => void) | undefined;
  /** It was not committed. */
  undo(): void;
}

export interface Enforcer {
  /**
   * Clears what `next` takes. REQUIRES: the state's lock, and the commit of the answer's `next` right after.
   * @throws ERR_MEMBER_UNMOVABLE, ERR_ENFORCEMENT where a new grant does not reach what it requires; then everything is as it was
   */
  clear(before: Assignments, next: Assignments, request: EnforcementRequest): Promise<Cleared> | Cleared;
  /** Has the kernel agree with a state, as far as it does not. Answers what could not be done. REQUIRES: the lock. */
  apply(state: Assignments, unpinned?: readonly number[]): readonly string[];
  /** Where processes of grants are put; undefined where masks must do. */
  layoutOf(settings: MachineSettings): CpusetLayout | undefined;
  readonly members: SharedMembers | undefined;
  /** CPUs of grants that this process does not see among its own just because a partition keeps it off them. */
  hiddenCpus(state: Assignments): CpuSet;
  /** This process runs in the shared pool from now on. REQUIRES: the lock. */
  join(state: Assignments, reopened: () => void): void;
  /** As often as {@link join}. */
  leave(): void;
  /** A registered process goes to the shared pool: into its cgroup where that is possible. REQUIRES: the lock. */
  share(pid: number, state: Assignments): void;
}

/** Of a simulated machine. */
export const NO_ENFORCER: Enforcer = {
  clear: (_, next) => ({ next, shortfalls: [], settle: undefined, undo: () => {} }),
  apply: () => [],
  layoutOf: () => undefined,
  members: undefined,
  hiddenCpus: () => CpuSet.EMPTY,
  join: () => {},
  leave: () => {},
  share: () => {},
};

// How long a member that nobody here can move has to leave by itself.
const MEMBER_TIMEOUT_MS = 1000;

/** From one state to the next. */
interface Step {
  readonly before: Assignments;
  readonly next: Assignments;
  readonly added: readonly PodAssignment[];
  readonly gone: readonly PodAssignment[];
  readonly isGivenBack: boolean;
}

// How members stand to a state.
interface Standing extends Confinement {
  readonly stuck: readonly StuckMember[];
  /** Processes that only masks keep off. */
  readonly byMask: number;
  readonly members: number;
}

// Another grant may have come under a uid.
const grantKey = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;

function podsNotIn({ pods }: Assignments, { pods: others }: Assignments): readonly PodAssignment[] {
  if (pods === others) return [];
  const known = new Set(others.map(grantKey));
  return pods.filter((pod) => !known.has(grantKey(pod)));
}

/** Grants with groups that run on other CPUs than before. */
function refitted(before: Assignments, next: Assignments): { pod: PodAssignment; known: PodAssignment }[] {
  if (before.pods === next.pods) return [];
  const old = new Map(before.pods.map((pod) => [pod.uid, pod]));
  return next.pods.flatMap((pod) => {
    const known = pod.enforcement.target === null ? undefined : old.get(pod.uid);
    return known === undefined || runningCpus(known).equals(runningCpus(pod)) ? [] : [{ pod, known }];
  });
}

const stuckText = ({ member, reason }: StuckMember) =>
  member.kind === 'process'
    ? `process ${member.pid} (${member.command}) cannot be moved: ${reason}`
    : `a process in ${member.path} cannot be moved: ${reason}`;

/** The cgroups below a root; or why there are none to be used. */
export type FoundLayout = CpusetLayout | string;

/** Of the machine that this process runs on. */
export class MachineEnforcer implements Enforcer {
  readonly members: SharedMembers;
  readonly #topology: () => Topology;
  readonly #state: () => Assignments | undefined;
  readonly #find: (cgroupRoot: string) => FoundLayout;
  readonly #layouts = new Map<string, FoundLayout>();
  // Of members before the first change of the partition that they have not been confined after.
  #choices: MemberChoices | undefined;

  /** `state`: on record now, where it can be read. */
  constructor(
    topology: () => Topology,
    state: () => Assignments | undefined,
    members: SharedMembers,
    find: (cgroupRoot: string) => FoundLayout,
  ) {
    this.#topology = topology;
    this.#state = state;
    this.members = members;
    this.#find = find;
  }

  layoutOf(settings: MachineSettings): CpusetLayout | undefined {
    const found = this.#layout(settings);
    return typeof found === 'string' ? undefined : found;
  }

  hiddenCpus({ settings, pods }: Assignments): CpuSet {
    const layout = this.layoutOf(settings);
    const isHidden = layout?.isPartition && layout.hasAllThatIsLeft(process.pid);
    return isHidden ? allCpusOf(pods.filter(isPartitioned)) : CpuSet.EMPTY;
  }

  join(state: Assignments, reopened: () => void): void {
    this.members.join(() => this.#state()?.pods ?? [], reopened);
    this.share(process.pid, state);
  }

  share(pid: number, state: Assignments): void {
    const topology = this.#topology();
    const pool = sharedPool(state, cpusNow(topology));
    this.layoutOf(state.settings)?.joinShared(pid, pool, topology.cpus, NodeSet.from(topology.numaNodes));
  }

  leave(): void {
    this.members.leave();
    const state = this.#state();
    // Elsewhere it could come on CPUs that are somebody's.
    if (state && exclusiveCpus(state).isEmpty) this.layoutOf(state.settings)?.leaveShared(process.pid);
  }

  #whyNot(level: EnforcementLevel, { members }: Standing, settings: MachineSettings): string {
    if (members === 0) return 'nobody is registered as a shared member';
    const found = this.#layout(settings);
    if (typeof found === 'string') return found;
    if (level === 'cpuset')
      return `partitions need cgroup v2, and here the cpuset controller is in v${found.hierarchy.version}`;
    return 'some shared members are in no cgroup of ours, and kept off by their masks only';
  }

  // What is no news: without cgroups nobody expects them, and who is no member here may have left that to others.
  #usual({ cgroupRoot }: MachineSettings): EnforcementLevel {
    return cgroupRoot === null ? 'recorded' : 'cpuset';
  }

  #layout({ cgroupRoot }: MachineSettings): FoundLayout {
    if (cgroupRoot === null) return 'cgroupRoot is null: no cgroups are used';
    const found = this.#layouts.get(cgroupRoot) ?? this.#find(cgroupRoot);
    this.#layouts.set(cgroupRoot, found);
    return found;
  }

  clear(before: Assignments, next: Assignments, request: EnforcementRequest): Promise<Cleared> | Cleared {
    const added = podsNotIn(next, before).filter((pod) => !cpusOf(pod).isEmpty);
    const gone = podsNotIn(before, next);
    const [old, now] = [exclusiveCpus(before), exclusiveCpus(next)];
    const isSame = added.length === 0 && gone.length === 0 && old.equals(now);
    // What a resize has announced is exclusive before the grant's groups have it.
    if (isSame && refitted(before, next).length === 0) return NO_ENFORCER.clear(before, next, request);
    return this.#take({ before, next, added, gone, isGivenBack: gone.length > 0 || !old.isSubsetOf(now) }, request);
  }

  // Not asynchronous where nobody has to be asked: the lock must not be held while the caller's own code runs.
  #take(step: Step, request: EnforcementRequest): Promise<Cleared> | Cleared {
    const { before, next, gone } = step;
    const shortfalls: string[] = [];
    const orUndo = (error: unknown): never => {
      this.apply(before);
      throw error;
    };
    try {
      // Whoever still runs there, though the grant ends.
      for (const pod of gone) this.#dissolve(pod, before.settings, shortfalls);
      const partitioned = this.#inPartition(step, request, shortfalls);
      if (!partitioned) this.#setPartition([before, next]);
      this.#fitGroups(before, next);
      const confined = this.#confine([before, partitioned ?? next], []);
      const finish = (stuck: readonly StuckMember[]) =>
        this.#taken(step, partitioned, { ...confined, stuck }, request, shortfalls);
      if (confined.stuck.length === 0) return finish([]);
      return this.members.ask(confined.stuck, confined, MEMBER_TIMEOUT_MS).then(finish).catch(orUndo);
    } catch (error) {
      return orUndo(error);
    }
  }

  #taken(
    { before, next, added, isGivenBack }: Step,
    partitioned: Assignments | undefined,
    standing: Standing,
    { enforcement, require, unmovableMembers, isNamed = false }: EnforcementRequest,
    shortfalls: string[],
  ): Cleared {
    const [stuck] = standing.stuck;
    if (stuck && unmovableMembers === 'fail') {
      throw new NumalignError('ERR_MEMBER_UNMOVABLE', stuckText(stuck), {
        value: stuck.member,
        valid: "a shared member that may be moved, or the option unmovableMembers: 'report'",
      });
    }
    shortfalls.push(...standing.stuck.map(stuckText));
    const level = weaker(levelOf(standing), enforcement);
    if (!partitioned && added.length > 0 && !isAtLeast(level, require)) {
      throw enforcementError(level, require, [...shortfalls, this.#whyNot(level, standing, next.settings)]);
    }
    if (!partitioned && added.length > 0 && !isAtLeast(level, isNamed ? enforcement : this.#usual(next.settings))) {
      shortfalls.push(this.#whyNot(level, standing, next.settings));
    }
    const reached = partitioned ?? this.#withLevel(next, added, level);
    const settle = (unpinned: readonly number[]) => void this.apply(reached, unpinned);
    const undo = () => void this.apply(before);
    return { next: reached, shortfalls, settle: isGivenBack ? settle : undefined, undo };
  }

  // The groups of grants that are about to have other CPUs have those of before too, until it is done.
  #fitGroups(before: Assignments, next: Assignments): void {
    for (const { pod, known } of refitted(before, next)) this.layoutOf(next.settings)?.fit(pod, runningCpus(known));
  }

  #withLevel(next: Assignments, added: readonly PodAssignment[], level: EnforcementLevel): Assignments {
    if (added.length === 0) return next;
    const found = this.layoutOf(next.settings);
    // With cgroup v1 its owner may be in the shared group, which has none of its CPUs: it needs one of its own, however weakly others are kept off.
    const layout = isAtLeast(level, 'cpuset') || found?.hierarchy.version === 1 ? found : undefined;
    const pods = next.pods.map((pod) =>
      added.includes(pod) ? { ...pod, enforcement: { level, target: layout?.pathOf(pod) ?? null } } : pod,
    );
    return { ...next, pods };
  }

  /** The state with the new grants in the partition, once the kernel has made it so. */
  #inPartition(
    { before, next, added }: Step,
    { enforcement, require }: EnforcementRequest,
    shortfalls: string[],
  ): Assignments | undefined {
    const layout = this.layoutOf(next.settings);
    if (added.length === 0 || !isAtLeast(enforcement, 'partition') || layout?.hierarchy.version !== 2) return undefined;
    if (layout.isPlain) {
      shortfalls.push('cgroups of the plain layout are in use');
      return undefined;
    }
    const level = enforcement === 'isolated' || require === 'isolated' ? 'isolated' : 'partition';
    const reached = this.#withLevel(next, added, level);
    try {
      this.#setPartition([before, reached]);
      return reached;
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      shortfalls.push(error.message);
      return undefined;
    }
  }

  // With the CPUs of all of these states; who is isolated in it the last one says.
  #setPartition(states: readonly Assignments[], unpinned: readonly number[] = []): void {
    const layout = this.layoutOf(states[0]!.settings);
    if (layout?.hierarchy.version !== 2) return;
    const pods = states.flatMap((state) => state.pods).filter(isPartitioned);
    if (pods.length === 0 && !layout.isPartition) return;
    if (!layout.isPartitionOf(pods)) this.#choices ??= this.#choicesOf(layout, states, unpinned);
    layout.setPartition(pods, states.at(-1)!.pods);
  }

  // Before the kernel resets them.
  #choicesOf(layout: CpusetLayout, states: readonly Assignments[], unpinned: readonly number[]): MemberChoices {
    const pods = states.flatMap((state) => state.pods);
    return this.members.choices({ pods, unpinned }, (pid) => layout.cpusetOf(pid), this.#topology().cpus);
  }

  // Off what any of these states takes, unless a partition keeps everybody off it.
  #confine(states: readonly Assignments[], unpinned: readonly number[]): Standing {
    const { members } = this;
    const layout = this.layoutOf(states[0]!.settings);
    const pods = states.flatMap((state) => state.pods);
    const now = cpusNow(this.#topology(), pods);
    const pool = states.map((state) => sharedPool(state, now)).reduce((a, b) => a.intersection(b));
    const taken = allCpusOf(pods.filter((pod) => !isPartitioned(pod)));
    const list = members.list();
    const isSet = layout !== undefined && !layout.isPartition && this.#isPoolSet(layout, pool, list);
    const isConfined = (member: SharedMember) => isSet && layout.confines(member, list, pods);
    const choices = this.#choices ?? (layout?.isPartition ? this.#choicesOf(layout, states, unpinned) : undefined);
    this.#choices = undefined;
    const { stuck, byMask } = members.confine({ taken, pool, pods, unpinned }, isConfined, choices);
    return { stuck, byMask, members: list.length, taken, pool, pods, unpinned };
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

  apply(state: Assignments, unpinned: readonly number[] = []): readonly string[] {
    const failed: string[] = [];
    try {
      for (const pod of state.pods) {
        if (pod.enforcement.target !== null) this.layoutOf(state.settings)?.fit(pod, CpuSet.EMPTY);
      }
      this.#setPartition([state], unpinned);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      failed.push(error.message);
    }
    const { stuck, ...confinement } = this.#confine([state], unpinned);
    this.members.tellReopened(stuck, confinement);
    return [...failed, ...stuck.map(stuckText)];
  }

  #dissolve(pod: PodAssignment, settings: MachineSettings, shortfalls: string[]): void {
    if (pod.enforcement.target === null) return;
    try {
      this.layoutOf(settings)?.remove(pod);
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      shortfalls.push(error.message);
    }
  }
}

function levelOf({ stuck, byMask, members }: Standing): EnforcementLevel {
  if (stuck.length > 0 || members === 0) return 'recorded';
  return byMask === 0 ? 'cpuset' : 'members';
}

/** Of the machine, as far as this process may enforce anything on it. */
export function enforcerOf(topology: () => Topology, store: Store): Enforcer {
  if (!store.members) return NO_ENFORCER;
  const state = () => {
    try {
      return store.read()?.assignments;
    } catch (error) {
      if (error instanceof NumalignError) return undefined;
      throw error;
    }
  };
  return new MachineEnforcer(topology, state, store.members, (cgroupRoot) => {
    try {
      const hierarchy = openCpusetHierarchy(cgroupRoot, new FolderMadeGroups(join(store.path, 'cgroups')));
      return hierarchy.canWrite() ? new CpusetLayout(hierarchy) : `this user may not write ${hierarchy.rootPath}`;
    } catch (error) {
      if (error instanceof NumalignError) return error.message;
      throw error;
    }
  });
}

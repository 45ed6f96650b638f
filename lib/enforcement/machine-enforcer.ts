// MachineEnforcer: has the kernel of this machine keep others off what is granted.
import { join } from 'node:path';
import type { Assignments, MachineSettings } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import { type EnforcementRequest, enforcementError, isAtLeast, weaker } from '../account/levels.js';
import { cpusOf, type EnforcementLevel, type PodAssignment, runningCpus } from '../account/pod-assignment.js';
import { exclusiveCpus, sharedPool } from '../account/pools.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { FolderMadeGroups } from '../cgroups/made-groups.js';
import { openCpusetHierarchy } from '../cgroups/open-hierarchy.js';
import { CpuSet, NodeSet } from '../machine/cpu-set.js';
import { bootIsolatedCpus } from '../machine/isolated-cpus.js';
import type { Topology } from '../machine/topology.js';
import { pidNamespace } from '../processes/process-identity.js';
import type { Store } from '../state/store.js';
import { allCpusOf, CpusetLayout, isPartitioned } from './cpuset-layout.js';
import type { Comparison, Found } from './drift.js';
import { type Applied, type Cleared, type Enforcer, NO_ENFORCER } from './enforcer.js';
import type { Confinement, SharedMember, StuckMember, UnpinnedThread } from './members/confinement.js';
import { told } from './members/confinement.js';
import type { MemberChoices } from './members/member-masks.js';
import { ownerText } from './members/member-registry.js';
import { SharedMembers } from './members/shared-members.js';

// How long a member that nobody here can move has to leave by itself.
const MEMBER_TIMEOUT_MS = 1000;

/** From one state to the next. */
interface Step {
  readonly before: Assignments;
  readonly next: Assignments;
  readonly added: readonly PodAssignment[];
  readonly gone: readonly PodAssignment[];
  readonly isTaken: boolean;
  readonly isGivenBack: boolean;
  readonly unpinned: readonly UnpinnedThread[];
}

// How members stand to a state.
interface Standing extends Confinement {
  readonly stuck: readonly StuckMember[];
  readonly refused: readonly StuckMember[];
  /** Processes that only masks keep off. */
  readonly byMask: number;
  readonly members: number;
}

/** Another grant may have come under a uid. */
export const grantKey = ({ uid, admittedAt }: PodAssignment) => `${uid} ${admittedAt}`;

function podsNotIn({ pods }: Assignments, { pods: others }: Assignments): readonly PodAssignment[] {
  if (pods === others) return [];
  const known = new Set(others.map(grantKey));
  return pods.filter((pod) => !known.has(grantKey(pod)));
}

function without(state: Assignments, gone: readonly PodAssignment[]): Assignments {
  return { ...state, pods: state.pods.filter((pod) => !gone.includes(pod)) };
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

/** Why a member is stuck, for messages. */
export const stuckText = ({ member, reason }: StuckMember) =>
  member.kind === 'process'
    ? `process ${member.pid} (${member.command}) cannot be moved: ${reason}${/\bEPERM$/.test(reason) ? ownerText(member.pid) : ''}`
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

  cpusWithinReach({ settings, pods }: Assignments): CpuSet {
    return this.layoutOf(settings)?.cpusWithinReach(process.pid, pods) ?? CpuSet.EMPTY;
  }

  learnChoices(settings: MachineSettings): void {
    const { possible, cpus } = this.#topology();
    const limit = this.layoutOf(settings)?.cpusOutsideGrants(process.pid) ?? CpuSet.EMPTY;
    native.learnChoices(limit.words, possible.union(cpus).words, this.members.ownMasks());
  }

  join(state: Assignments, reopened: () => void): void {
    this.learnChoices(state.settings);
    this.members.join(() => this.#state()?.pods ?? [], reopened);
    this.share(process.pid, state);
  }

  share(pid: number, state: Assignments): void {
    this.layoutOf(state.settings)?.joinShared(pid, ...this.#sharedCpuset(state));
  }

  shareAnyway(pid: number, state: Assignments): void {
    this.layoutOf(state.settings)?.leaveGrants(pid, ...this.#sharedCpuset(state));
    this.share(pid, state);
  }

  #sharedCpuset(state: Assignments): [pool: CpuSet, all: CpuSet, mems: NodeSet] {
    const topology = this.#topology();
    return [sharedPool(state, cpusNow(topology)), topology.cpus, NodeSet.from(topology.numaNodes)];
  }

  leave(): void {
    this.members.leave();
    const state = this.#state();
    if (state) this.unshare(process.pid, state);
  }

  unshare(pid: number, state: Assignments): void {
    // Elsewhere it could come on CPUs that are somebody's.
    if (exclusiveCpus(state).isEmpty) this.layoutOf(state.settings)?.leaveShared(pid);
  }

  // None where what went wrong says it.
  #whyNot(level: EnforcementLevel, { members }: Standing, settings: MachineSettings): readonly string[] {
    if (members === 0) return ['nobody is registered as a shared member'];
    const found = this.#layout(settings);
    if (typeof found === 'string') return [found];
    if (level === 'cpuset')
      return found.hierarchy.version === 1
        ? ['partitions need cgroup v2, and here the cpuset controller is in v1']
        : [];
    return ['some shared members are in no cgroup of ours, and kept off by their masks only'];
  }

  // What is no news: without cgroups nobody expects them, and who is no member here may have left
  // that to others.
  #usual({ cgroupRoot }: MachineSettings): EnforcementLevel {
    return cgroupRoot === null ? 'recorded' : 'cpuset';
  }

  #layout({ cgroupRoot }: MachineSettings): FoundLayout {
    if (cgroupRoot === null)
      return 'the settings of this state name no cgroup root, so that no cgroups are used';
    const found = this.#layouts.get(cgroupRoot) ?? this.#find(cgroupRoot);
    this.#layouts.set(cgroupRoot, found);
    return found;
  }

  clear(
    before: Assignments,
    next: Assignments,
    request: EnforcementRequest,
    unpinned: readonly UnpinnedThread[] = [],
  ): Promise<Cleared> | Cleared {
    const added = podsNotIn(next, before).filter((pod) => !cpusOf(pod).isEmpty);
    const gone = podsNotIn(before, next);
    const [old, now] = [exclusiveCpus(before), exclusiveCpus(next)];
    const isSame = added.length === 0 && gone.length === 0 && old.equals(now);
    // What a resize has announced is exclusive before the grant's groups have it.
    if (isSame && refitted(before, next).length === 0) return NO_ENFORCER.clear(before, next, request);
    const isTaken = added.length > 0 || !now.isSubsetOf(old);
    const isGivenBack = gone.length > 0 || !old.isSubsetOf(now);
    if (this.layoutOf(next.settings)) this.learnChoices(next.settings);
    return this.#take({ before, next, added, gone, isTaken, isGivenBack, unpinned }, request);
  }

  // Not asynchronous where nobody has to be asked: the lock must not be held while the caller's own
  // code runs.
  #take(step: Step, request: EnforcementRequest): Promise<Cleared> | Cleared {
    const { next, gone } = step;
    // The owners of grants that go with an admission are dead: nobody is on their CPUs any more,
    // and where everything else is taken members have nowhere else to go.
    const before = step.added.length > 0 ? without(step.before, gone) : step.before;
    const shortfalls: string[] = [];
    const undo = this.#undoing(step);
    const orUndo = (error: unknown): never => {
      undo();
      throw error;
    };
    try {
      // Whoever still runs there, though the grant ends.
      const left = [
        ...this.#sweep(step.before, next),
        ...gone.flatMap((pod) => this.#dissolve(pod, before.settings)),
      ];
      const partitioned = this.#inPartition({ ...step, before }, request, shortfalls);
      if (!partitioned) this.#setPartition([before, next], step.unpinned);
      this.#fitGroups(before, next);
      const confined = this.#confine([before, partitioned ?? next], step.unpinned);
      const finish = (stuck: readonly StuckMember[]) =>
        this.#taken(
          step,
          partitioned,
          { ...confined, stuck: [...left, ...stuck] },
          request,
          shortfalls,
          undo,
        );
      if (confined.stuck.length === 0) return finish([]);
      // Whoever did not leave before is no reason not to give back.
      if (!step.isTaken) return finish(confined.stuck);
      return this.members.ask(confined.stuck, confined, MEMBER_TIMEOUT_MS).then(finish).catch(orUndo);
    } catch (error) {
      return orUndo(error);
    }
  }

  #taken(
    { before, next, added, isTaken, isGivenBack }: Step,
    partitioned: Assignments | undefined,
    standing: Standing,
    { enforcement, require, unmovableMembers, isNamed = false }: EnforcementRequest,
    shortfalls: string[],
    undo: () => void,
  ): Cleared {
    const [stuck] = standing.stuck;
    if (stuck && isTaken && unmovableMembers === 'fail') {
      throw new NumalignError('ERR_MEMBER_UNMOVABLE', stuckText(stuck), {
        value: stuck.member,
        valid: "a shared member that may be moved, or the option unmovableMembers: 'report'",
      });
    }
    shortfalls.push(...standing.stuck.map(stuckText));
    const level = weaker(levelOf(standing), enforcement);
    if (!partitioned && added.length > 0 && !isAtLeast(level, require)) {
      throw enforcementError(level, require, [
        ...shortfalls,
        ...this.#whyNot(level, standing, next.settings),
      ]);
    }
    if (
      !partitioned &&
      added.length > 0 &&
      !isAtLeast(level, isNamed ? enforcement : this.#usual(next.settings))
    ) {
      shortfalls.push(...this.#whyNot(level, standing, next.settings));
    }
    const old = new Map(before.pods.map((pod) => [pod.uid, cpusOf(pod)]));
    // Grants that grow onto CPUs that somebody has not left.
    const grown = stuck
      ? next.pods.filter((pod) => old.has(pod.uid) && !cpusOf(pod).isSubsetOf(old.get(pod.uid)!))
      : [];
    const reached = this.#withLevel(partitioned ?? this.#withLevel(next, added, level), grown, 'recorded');
    const settle = () => this.#reopen(reached);
    return { next: reached, shortfalls, settle: isGivenBack ? settle : undefined, undo };
  }

  // Those who were moved out of groups come back; where that fails, what went wrong first is what
  // the caller must hear of.
  #undoing({ before, gone }: Step): () => void {
    const layout = this.layoutOf(before.settings);
    const inside = gone
      .filter(({ enforcement }) => enforcement.target !== null)
      .flatMap((pod) => (layout?.processesOf(pod) ?? []).map((each) => ({ pod, ...each })));
    const tried = (step: () => void) => {
      try {
        step();
      } catch (error) {
        if (!(error instanceof NumalignError)) throw error;
      }
    };
    return () => {
      for (const { pod, group, pids } of inside) {
        tried(() => {
          if (pids.length > 0) group.create(this.#online(runningCpus(pod)), this.#mems(layout!));
          for (const pid of pids) if (pid !== process.pid) group.attach(pid);
        });
      }
      tried(() => this.#reopen(before));
    };
  }

  #online(cpus: CpuSet): CpuSet {
    return cpus.intersection(cpusNow(this.#topology()).online);
  }

  #mems(layout: CpusetLayout): NodeSet {
    return layout.memsOfGroups(NodeSet.from(this.#topology().numaNodes));
  }

  // What was given back is told to those who cannot be moved from here.
  #reopen(state: Assignments): void {
    this.apply(state, [], true);
  }

  // The groups of grants that are about to have other CPUs have those of before too, until it is
  // done.
  #fitGroups(before: Assignments, next: Assignments): void {
    for (const { pod, known } of refitted(before, next))
      this.layoutOf(next.settings)?.fit(pod, runningCpus(known));
  }

  #withLevel(next: Assignments, added: readonly PodAssignment[], level: EnforcementLevel): Assignments {
    if (added.length === 0) return next;
    const found = this.layoutOf(next.settings);
    // With cgroup v1 its owner may be in the shared group, which has none of its CPUs: it needs one
    // of its own, however weakly others are kept off.
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
    if (added.length === 0 || !isAtLeast(enforcement, 'partition') || layout?.hierarchy.version !== 2)
      return undefined;
    const why = layout.whyNoPartition([...before.pods, ...next.pods]);
    if (why !== undefined) {
      shortfalls.push(why);
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
  #setPartition(states: readonly Assignments[], unpinned: readonly UnpinnedThread[] = []): void {
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
    const ordinary = this.#topology().cpus.difference(bootIsolatedCpus());
    return this.members.choices({ pods, unpinned }, (pid) => layout.cpusetOf(pid), ordinary);
  }

  // Off what any of these states takes, unless a partition keeps everybody off it.
  #confine(states: readonly Assignments[], unpinned: readonly UnpinnedThread[]): Standing {
    const { members } = this;
    const layout = this.layoutOf(states[0]!.settings);
    const confinement = this.#confinement(states, unpinned);
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

  #confinement(states: readonly Assignments[], unpinned: readonly UnpinnedThread[]): Confinement {
    const pods = states.flatMap((state) => state.pods);
    const now = cpusNow(this.#topology(), pods);
    // Who was on a grant that ends must leave it, and on a new one nobody can be by right yet.
    const [first, last] = [states[0]!, states.at(-1)!];
    const added = podsNotIn(last, first);
    const staying = last.pods.filter((pod) => !added.includes(pod));
    const before = new Map(first.pods.map((pod) => [pod.uid, cpusOf(pod)]));
    const rightfulCpus = (pod: PodAssignment) =>
      cpusOf(pod).intersection(before.get(pod.uid) ?? CpuSet.EMPTY);
    const pool = states.map((state) => sharedPool(state, now)).reduce((a, b) => a.intersection(b));
    const taken = allCpusOf(pods.filter((pod) => !isPartitioned(pod)));
    const { possible, cpus } = this.#topology();
    const cpusetOf = (pid: number) => this.layoutOf(last.settings)?.cpusetOf(pid);
    const all = possible.union(cpus);
    return { taken, pool, all, pods: staying, rightfulCpus, held: last.pods, unpinned, cpusetOf };
  }

  compare(state: Assignments, isGivenUp: (key: string) => boolean): Comparison {
    const confinement = this.#confinement([state], []);
    const { pool, pods, taken } = confinement;
    const layout = this.layoutOf(state.settings);
    const members = this.members.registry.look();
    const list = members.map(({ entry }) => told(entry));
    const found: Found[] = [];
    const groups = layout?.strays(pods, pool, list) ?? { checked: 0, found: [] };
    for (const { kind, pod, path, what, repair } of groups.found) {
      const of = pod
        ? `${grantKey(pod)} ${cpusOf(pod)}`
        : `${taken} ${allCpusOf(pods.filter(isPartitioned))}`;
      const once = () => {
        if (kind !== 'partition') repair();
        else {
          try {
            this.#setPartition([state]);
          } finally {
            // Whose masks the kernel has reset by that.
            this.#confine([state], []);
          }
        }
        return 0;
      };
      found.push({ kind, uid: pod?.uid ?? null, what, key: `${kind} ${path} ${of}`, repair: once });
    }
    // Processes that were taken out of the shared group.
    const outside = new Set<number>();
    for (const { entry } of members) {
      if (entry.kind !== 'process' || entry.namespace !== pidNamespace()) continue;
      if (!layout?.couldJoinShared(entry.pid) || pods.some(({ uid }) => uid === entry.grant)) continue;
      const { pid, command } = entry;
      const key = `member ${pid} ${entry.start} cgroup ${taken}`;
      const what = `process ${pid} (${command}) is in no cgroup of the shared pool`;
      if (!isGivenUp(key)) outside.add(pid);
      const repair = () => {
        this.share(pid, state);
        return 0;
      };
      found.push({ kind: 'member', uid: null, what, key, repair });
    }
    const isPoolSet =
      layout !== undefined &&
      !layout.isPartition &&
      !found.some(({ kind, key }) => kind === 'pool' && isGivenUp(key));
    const strays = this.members.strays(
      confinement,
      (member) =>
        (member.kind === 'process' && outside.has(member.pid)) ||
        (isPoolSet && layout.confines(member, list, pods, pool)),
    );
    for (const { member, process, threads, repair } of strays.found) {
      const name = member.kind === 'process' ? ` (${member.command})` : ` in ${member.path}`;
      found.push({
        kind: 'member',
        uid: null,
        what: `${threads} threads of process ${process.pid}${name} are not in the shared pool ${pool}`,
        key: `member ${process.pid} ${process.start} masks ${taken}`,
        repair: () => {
          const { moved, reason } = repair();
          if (reason === undefined) return moved;
          throw new NumalignError('ERR_MEMBER_UNMOVABLE', stuckText({ member, reason, names: [] }), {
            value: member,
          });
        },
      });
    }
    const late = this.#settleChoices(state, true);
    if (late > 0) {
      found.push({
        kind: 'member',
        uid: null,
        what: `${late} threads of this process may run on CPUs that they have not chosen`,
        key: `choices ${taken}`,
        repair: () => this.#settleChoices(state, false),
      });
    }
    return { checked: groups.checked + strays.checked + outside.size, found };
  }

  levelNow(state: Assignments): EnforcementLevel {
    const confinement = this.#confinement([state], []);
    const layout = this.layoutOf(state.settings);
    const list = this.members.list();
    if (layout?.strays(confinement.pods, confinement.pool, list).found.some(({ kind }) => kind === 'pool')) {
      return 'recorded';
    }
    const isConfined = (member: SharedMember) =>
      layout !== undefined &&
      !layout.isPartition &&
      layout.confines(member, list, confinement.pods, confinement.pool);
    const { found, byMask } = this.members.strays(confinement, isConfined);
    if (list.length === 0 || found.length > 0) return 'recorded';
    return byMask === 0 ? 'cpuset' : 'members';
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

  apply(state: Assignments, unpinned: readonly UnpinnedThread[] = [], isReopened = false): Applied {
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
    const { stuck, refused, ...confinement } = this.#confine([state], unpinned);
    this.#settleChoices(state, false);
    // Whoever hears of it does the same: only what was given back is worth telling.
    if (isReopened) this.members.tellReopened([...stuck, ...refused], confinement);
    return { failed, stuck };
  }

  // Where masks keep threads in the pool, what they have chosen is for the members' masks to say.
  #settleChoices(state: Assignments, dryRun: boolean): number {
    const layout = this.layoutOf(state.settings);
    const limit = layout?.holdsInPool(process.pid) ? layout.cpusOutsideGrants(process.pid) : undefined;
    return limit ? native.settleChoices(limit.words, dryRun) : 0;
  }

  // What an earlier end of a grant could not move. Answers what still cannot be.
  #sweep(before: Assignments, next: Assignments): StuckMember[] {
    const layout = this.layoutOf(before.settings);
    return (layout?.leftovers([...before.pods, ...next.pods]) ?? []).flatMap((group) => {
      const { path } = group;
      try {
        group.evacuate(layout!.home);
        return [];
      } catch (error) {
        if (!(error instanceof NumalignError)) throw error;
        return [{ member: { kind: 'cgroup', path }, reason: error.message, names: [] }];
      }
    });
  }

  // Answers what cannot leave the grant's groups.
  #dissolve(pod: PodAssignment, settings: MachineSettings): StuckMember[] {
    const layout = pod.enforcement.target === null ? undefined : this.layoutOf(settings);
    if (!layout) return [];
    try {
      layout.remove(pod);
      return [];
    } catch (error) {
      if (!(error instanceof NumalignError)) throw error;
      // Empty ones may stay.
      if (!layout.isPopulated(pod)) return [];
      return [{ member: { kind: 'cgroup', path: layout.pathOf(pod) }, reason: error.message, names: [] }];
    }
  }
}

function levelOf({ stuck, byMask, members }: Standing): EnforcementLevel {
  if (stuck.length > 0 || members === 0) return 'recorded';
  return byMask === 0 ? 'cpuset' : 'members';
}

/** Of the machine, as far as this process may enforce anything on it. */
export function enforcerOf(topology: () => Topology, store: Store): Enforcer {
  const members = SharedMembers.of(store);
  if (!members) return NO_ENFORCER;
  const state = () => {
    try {
      return store.read()?.assignments;
    } catch (error) {
      if (error instanceof NumalignError) return undefined;
      throw error;
    }
  };
  return new MachineEnforcer(topology, state, members, (cgroupRoot) => {
    try {
      const hierarchy = openCpusetHierarchy(cgroupRoot, new FolderMadeGroups(join(store.path, 'cgroups')));
      return hierarchy.canWrite()
        ? new CpusetLayout(hierarchy)
        : `this user may not write ${hierarchy.rootPath}`;
    } catch (error) {
      if (error instanceof NumalignError) return error.message;
      throw error;
    }
  });
}

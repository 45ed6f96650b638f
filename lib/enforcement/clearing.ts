// Clearing: keeps others off CPUs before a commit makes them exclusive.
import type { Assignments, MachineSettings } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import {
  BY_CGROUPS,
  BY_RECORD,
  type EnforcementLevel,
  type EnforcementRequest,
  enforcementError,
  isAtLeast,
  LEVELS,
  strongestLevel,
  weaker,
} from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { hasParts, runningCpus } from '../account/pod-holdings.js';
import { NumalignError, refusalOf, unlessRefused } from '../base/errors.js';
import { grownPods, refits, type Transition, without } from './layout/transition.js';
import {
  bindMemory,
  type ConfinedMembers,
  fitGroups,
  levelOf,
  type MachineConfiner,
} from './machine-confiner.js';
import { type StuckMember, stuckText, type UnpinnedThread } from './members/confinement.js';
import { type BindingOutcomes, withMemoryRefusals } from './memory-binding.js';

// How long a member has to leave by itself if this process cannot move it.
const MEMBER_TIMEOUT_MS = 1000;

/** CPUs that are cleared for a state that is about to be committed. */
export interface Cleared {
  /** The state, with the level that each new grant has reached. */
  readonly next: Assignments;
  /** Why new grants have not reached the level aimed at. */
  readonly shortfalls: readonly string[];
  /** Opens what is given back, after the commit. Undefined if nothing is given back. */
  readonly settle: (() => void) | undefined;
  /** Call this if the state was not committed. */
  undo(): void;
}

type ClearedMembers = Pick<ConfinedMembers, 'stuck' | 'byMask' | 'members'>;

/** What a commit changes, and how it may be enforced. */
interface ClearingOptions {
  readonly transition: Transition;
  readonly request: EnforcementRequest;
  readonly unpinned: readonly UnpinnedThread[];
  /** Opens to others what a state does not take. */
  reopen(state: Assignments): void;
}

/** Clears the CPUs of one commit. REQUIRES: the state's lock. */
export class Clearing {
  readonly #shortfalls: string[] = [];
  // By member, in the order of their moves.
  readonly #putBacks: (() => void)[] = [];
  #bindings: BindingOutcomes = new Map();

  constructor(
    private readonly confiner: MachineConfiner,
    private readonly options: ClearingOptions,
  ) {}

  /**
   * Runs synchronously unless a member has to be asked: the lock must not be held while the
   * caller's code runs.
   * @throws ERR_MEMBER_UNMOVABLE, ERR_ENFORCEMENT; then everything is as before
   */
  clear(): Promise<Cleared> | Cleared {
    const { next, ended, added, isTaken, isGivenBack } = this.options.transition;
    // The owners of grants that end with an admission are dead, so nothing runs on their CPUs. If
    // everything else is taken, members have nowhere else to go.
    const before =
      added.length > 0 ? without(this.options.transition.before, ended) : this.options.transition.before;
    const undo = this.#undoing();
    const orUndo = (error: unknown): never => {
      undo();
      throw error;
    };
    try {
      // Processes that still run on a grant that ends.
      const leftovers = [...this.#sweep(), ...ended.flatMap((pod) => this.#dissolve(pod, before.settings))];
      const partitioned = this.#inPartition(before);
      // CPUs that are only given back can wait until after the commit: members are not in the way
      // on them. What the threads that left these CPUs had chosen must be recorded before the
      // commit.
      if (!isTaken && isGivenBack && this.options.unpinned.length === 0) {
        this.#fitGroups(before, true);
        return this.#givenBack(leftovers, undo);
      }
      if (!partitioned) this.confiner.setPartition([before, next], this.options.unpinned);
      this.#fitGroups(before);
      const confined = this.confiner.confine(
        [before, partitioned ?? next],
        this.options.unpinned,
        (putBack) => this.#putBacks.push(putBack),
      );
      const { byMask, members, confinement } = confined;
      const finish = (stuck: readonly StuckMember[]) =>
        this.#confirm(partitioned, { stuck: [...leftovers, ...stuck], byMask, members }, undo);
      if (confined.stuck.length === 0) return finish([]);
      // A member that has not left other CPUs does not keep this grant from giving back its own.
      if (!isTaken) return finish(confined.stuck);
      return this.confiner.members
        .ask(confined.stuck, confinement, MEMBER_TIMEOUT_MS)
        .then(finish)
        .catch(orUndo);
    } catch (error) {
      return orUndo(error);
    }
  }

  #givenBack(leftovers: readonly StuckMember[], undo: () => void): Cleared {
    const next = this.#bound(this.options.transition.next);
    return { next, shortfalls: leftovers.map(stuckText), settle: () => this.options.reopen(next), undo };
  }

  #confirm(partitioned: Assignments | undefined, confined: ClearedMembers, undo: () => void): Cleared {
    const { before, next, added, isTaken, isGivenBack } = this.options.transition;
    const [stuck] = confined.stuck;
    if (stuck && isTaken && this.options.request.unmovableMembers === 'fail') {
      throw new NumalignError('ERR_MEMBER_UNMOVABLE', stuckText(stuck), {
        value: stuck.member,
        valid: "a shared member that may be moved, or the option unmovableMembers: 'report'",
      });
    }
    this.#shortfalls.push(...confined.stuck.map(stuckText));
    const granted = partitioned ?? this.#withLevel(next, added, this.#levelByMembers(confined));
    // Grants that grow onto CPUs that a member has not left do not keep their level.
    const reached = this.#bound(this.#withLevel(granted, stuck ? grownPods(before, next) : [], BY_RECORD));
    const settle = () => this.options.reopen(reached);
    return { next: reached, shortfalls: this.#shortfalls, settle: isGivenBack ? settle : undefined, undo };
  }

  // The level that new grants reach without a partition. @throws ERR_ENFORCEMENT
  #levelByMembers(confined: ClearedMembers): EnforcementLevel {
    const { next, added } = this.options.transition;
    const { enforcement, require, isNamed = false } = this.options.request;
    const level = weaker(levelOf(confined), enforcement);
    if (added.length === 0) return level;
    const whyNot = () => this.#whyNot(level, confined, next.settings);
    if (!isAtLeast(level, require))
      throw enforcementError(level, require, [...this.#shortfalls, ...whyNot()]);
    const isExpected = isAtLeast(level, isNamed ? enforcement : usualLevel(next.settings));
    if (!isExpected) this.#shortfalls.push(...whyNot());
    return level;
  }

  // Moves processes back into groups that they were moved out of. A failure here is ignored: the
  // caller must see the first error.
  #undoing(): () => void {
    const { before, ended } = this.options.transition;
    const cpusets = this.confiner.cpusetsOf(before.settings);
    const processes = ended
      .filter(({ enforcement }) => enforcement.target !== null)
      .flatMap((pod) => (cpusets?.grants.processesOf(pod) ?? []).map((each) => ({ pod, ...each })));
    return () => {
      for (const { pod, group, pids } of processes) {
        const create = () => {
          const { online } = cpusNow(this.confiner.topology());
          group.create(runningCpus(pod).intersection(online), cpusets!.grants.anyNodes());
        };
        if (pids.length > 0) unlessRefused(create);
        for (const pid of pids) if (pid !== process.pid) unlessRefused(() => group.attach(pid));
      }
      unlessRefused(() => this.options.reopen(before));
      // What could not be opened again, because the choices on record could not be read or written.
      for (const putBack of this.#putBacks.reverse()) putBack();
    };
  }

  // A refusal of memory nodes is recorded but fails nothing. `isMemoryOnly`: the CPUs that a grant
  // gives back leave its groups only after the commit.
  #fitGroups(before: Assignments, isMemoryOnly = false): void {
    const { next } = this.options.transition;
    const changedPods = new Set(refits(before, next).map(({ pod }) => pod));
    if (changedPods.size === 0) return;
    const groups = this.confiner.groupsNow([before, next], (pod) => changedPods.has(pod));
    if (!groups) return;
    this.#bindings = bindMemory(groups);
    if (!isMemoryOnly) fitGroups(groups);
  }

  #bound(state: Assignments): Assignments {
    return withMemoryRefusals(state, this.#bindings);
  }

  #withLevel(next: Assignments, newPods: readonly PodAssignment[], level: EnforcementLevel): Assignments {
    if (newPods.length === 0) return next;
    const found = this.confiner.cpusetsOf(next.settings);
    // With cgroup v1, the owner may be in the shared group, which has none of the grant's CPUs. It
    // needs a group of its own, even at a weak level.
    const cpusets = LEVELS[level].usesCgroups || found?.hierarchy.version === 1 ? found : undefined;
    const pods = next.pods.map((pod) =>
      newPods.includes(pod)
        ? { ...pod, enforcement: { level, target: cpusets?.grants.pathOf(pod) ?? null } }
        : pod,
    );
    return { ...next, pods };
  }

  // The state with the new grants in the partition, after the kernel has made the partition.
  #inPartition(before: Assignments): Assignments | undefined {
    const { next, added } = this.options.transition;
    const { enforcement, require } = this.options.request;
    const cpusets = this.confiner.cpusetsOf(next.settings);
    if (added.length === 0 || !LEVELS[enforcement].inPartition || cpusets?.hierarchy.version !== 2)
      return undefined;
    const why = cpusets.whyNoPartition([...before.pods, ...next.pods]);
    if (why !== undefined) {
      this.#shortfalls.push(why);
      return undefined;
    }
    const wantsIsolation = LEVELS[enforcement].isolatesCpus || LEVELS[require].isolatesCpus;
    // The kernel does not make isolated partitions that overlap.
    const sharesCpus = wantsIsolation && added.some((pod) => pod.booking !== null && !hasParts(pod));
    if (sharesCpus) this.#shortfalls.push(SHARED_CPUS);
    if (sharesCpus && LEVELS[require].isolatesCpus) return undefined;
    const isolatesCpus = wantsIsolation && !sharesCpus;
    const level = strongestLevel({ movesMembers: true, usesCgroups: true, inPartition: true, isolatesCpus });
    const reached = this.#withLevel(next, added, level);
    const refusal = refusalOf(() => this.confiner.setPartition([before, reached]));
    if (refusal) this.#shortfalls.push(refusal.message);
    return refusal ? undefined : reached;
  }

  // Empty if the shortfalls already give the reason.
  #whyNot(
    level: EnforcementLevel,
    { members }: ClearedMembers,
    settings: MachineSettings,
  ): readonly string[] {
    if (members === 0) return ['no process or cgroup is registered as a shared member'];
    const found = this.confiner.findCpusets(settings);
    if (typeof found === 'string') return [found];
    if (LEVELS[level].usesCgroups)
      return found.hierarchy.version === 1
        ? ['partitions need cgroup v2, and here the cpuset controller is in v1']
        : [];
    return ['some shared members are in no cgroup of numalign: only their masks keep them off'];
  }

  // Moves what an earlier end of a grant could not move. Returns what still cannot leave.
  #sweep(): StuckMember[] {
    const { before, next } = this.options.transition;
    const cpusets = this.confiner.cpusetsOf(before.settings);
    const groups = cpusets?.grants.leftovers([...before.pods, ...next.pods]) ?? [];
    return groups.flatMap((group) => {
      const refusal = refusalOf(() => group.evacuate(cpusets!.home));
      return refusal ? [stuckIn(group.path, refusal)] : [];
    });
  }

  // Returns what cannot leave the grant's groups.
  #dissolve(pod: PodAssignment, settings: MachineSettings): StuckMember[] {
    const cpusets = pod.enforcement.target === null ? undefined : this.confiner.cpusetsOf(settings);
    if (!cpusets) return [];
    const { grants, home } = cpusets;
    const refusal = refusalOf(() => grants.remove(pod, home));
    // Empty groups may stay.
    return refusal && grants.isPopulated(pod) ? [stuckIn(grants.pathOf(pod), refusal)] : [];
  }
}

const stuckIn = (path: string, { message }: NumalignError): StuckMember => ({
  member: { kind: 'cgroup', path },
  reason: message,
  names: [],
});

const SHARED_CPUS = 'containers of a pod that is booked as a whole share CPUs: they cannot be isolated';

// The level to expect: without cgroups no more than a record. A process that is not a member may
// leave enforcement to others.
const usualLevel = ({ cgroupRoot }: MachineSettings): EnforcementLevel =>
  cgroupRoot === null ? BY_RECORD : BY_CGROUPS;

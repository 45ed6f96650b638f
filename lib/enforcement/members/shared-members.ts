// SharedMembers: the processes in the shared pool, which numalign keeps off granted CPUs.
import { cpusOfPods } from '../../account/cpus-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import type { NativeMemberThread } from '../../base/native-threads.js';
import { CpuSet } from '../../machine/cpu-set.js';
import {
  identifyProcess,
  identifySelf,
  isProcOurs,
  type ProcessIdentity,
} from '../../processes/process-identity.js';
import type { StatePart, Store } from '../../state/store.js';
import type { Confined, Confinement, Outcome, StrayMember, StuckMember } from './confinement.js';
import { Holders } from './holders.js';
import { processName, type Registered } from './member-entry.js';
import { type AskedMasks, NO_CHOICES, unpinnedOf } from './member-masks.js';
import { processesOf, unconfined } from './member-processes.js';
import { MemberRegistry } from './member-registry.js';
import { type ClearRequest, MemberRequests } from './member-requests.js';
import { ProcessConfiner } from './process-confiner.js';
import { memberOf, type SharedMember } from './shared-member.js';

/** The members of one state folder. Everything that changes something REQUIRES the state's lock. */
export class SharedMembers implements StatePart {
  readonly registry: MemberRegistry;
  readonly #requests: MemberRequests;
  readonly #holders = new Holders();
  readonly #confiner: ProcessConfiner;

  /**
   * The members that share a state; undefined for a simulated machine.
   * @throws ERR_STATE_FOLDER
   */
  static of(store: Store): SharedMembers | undefined {
    return store.part('members', (folder, path) => new SharedMembers(folder, path));
  }

  /**
   * `folder`: members/ of the state folder, where others cannot write this process's files; `path`:
   * where this process sees it.
   */
  constructor(folder: NativeFolder, path: string) {
    this.registry = new MemberRegistry(folder);
    this.#requests = new MemberRequests(folder, path);
    this.#confiner = new ProcessConfiner(folder, this.#holders);
  }

  /**
   * Makes this process a member, which leaves CPUs on request. Calls `onReopen` when CPUs are given
   * back, and when another program has removed the registration. Call {@link leave} as often.
   */
  join(pods: () => readonly PodAssignment[], onReopen: () => void): void {
    this.registry.join();
    const name = this.registry.ownName;
    if (name !== undefined)
      this.#requests.listen(name, (request) => this.#obey(request, pods(), onReopen), onReopen);
  }

  leave(): void {
    if (this.registry.leave()) this.#requests.stop();
  }

  /** Makes this process a member again if another program removed its registration. */
  rejoin(): void {
    if (this.registry.rejoin()) this.#requests.restart();
  }

  close(): void {
    this.registry.close();
  }

  #obey(
    { taken, pool, isOver }: ClearRequest,
    pods: readonly PodAssignment[],
    onReopen: () => void,
  ): boolean {
    if (isOver) onReopen();
    if (isOver) return true;
    const self = identifySelf();
    if (!isProcOurs()) return false;
    const confinement = {
      taken,
      pool,
      all: taken.union(pool),
      pods,
      granted: cpusOfPods(pods),
      rightfulCpus: cpusOf,
      held: pods,
      unpinned: [],
      cpusetOf: () => undefined,
    };
    return this.#confiner.confine(self, confinement, { onlyNarrow: true }).reason === undefined;
  }

  /** The living members, each once. Only looks, and needs no lock. */
  list(): readonly SharedMember[] {
    return this.registry.look().map(({ entry }) => memberOf(entry));
  }

  /**
   * The living members. Only the holder of the lock registers members, so this list stays valid
   * while it holds the lock. Removes what has ended.
   */
  present(): readonly Registered[] {
    return this.registry.all();
  }

  /**
   * What the threads of every member that this process can move have chosen, for {@link confine}
   * after a change of a cpuset. Before Linux 6.2 the kernel gives a thread all CPUs of its cpuset
   * when that changes.
   * `cpusetOf`: the CPUs that a process may choose from now. A thread that may use all of them is
   * taken to have chosen `all`, the CPUs that are not isolated.
   */
  learnAskedMasks(
    members: readonly Registered[],
    { pods, unpinned, cpusetOf }: Pick<Confinement, 'pods' | 'unpinned' | 'cpusetOf'>,
    all: CpuSet,
  ): AskedMasks {
    const processes = members.map(processesOf).flatMap((each) => (typeof each === 'string' ? [] : each));
    const askedMasksOf = (process: ProcessIdentity) =>
      native.askedMasks({
        pid: process.pid,
        process: processName(process),
        known: this.#confiner.masks(process)?.known ?? '',
        isAsked: false,
        unpinned: unpinnedOf(process, unpinned),
        grants: this.#holders.grantsOf(pods, process).map((pod) => cpusOf(pod).words),
        limit: (cpusetOf(process.pid) ?? CpuSet.EMPTY).words,
        all: all.words,
      });
    return new Map(processes.map((process) => [process.pid, askedMasksOf(process)]));
  }

  /**
   * Gives each thread of every member what it has chosen, less what is taken, and reads back. For
   * cgroups this means every process in them. Returns the members that may still run on taken CPUs.
   * `isConfined`: true for members that a cpuset keeps off already.
   */
  confine(
    all: readonly Registered[],
    confinement: Confinement,
    isConfined: (member: SharedMember) => boolean,
    choices: AskedMasks = NO_CHOICES,
  ): Confined {
    const stuck: StuckMember[] = [];
    const refused: StuckMember[] = [];
    let byMask = 0;
    for (const { member, names, process, reason } of unconfined(all, isConfined)) {
      byMask++;
      const result: Outcome = process
        ? this.#confiner.confine(process, confinement, { choices: choices.get(process.pid) })
        : { moved: 0, reason };
      if (result.reason !== undefined) stuck.push({ member, reason: result.reason, names });
      else if (result.isRefused) refused.push({ member, reason: 'EPERM', names });
    }
    if (choices.size === 0) return { stuck, refused, byMask };
    // A cpuset keeps these off, but its change may have reset their masks.
    for (const { process } of unconfined(all, (member) => !isConfined(member))) {
      const asked = process && choices.get(process.pid);
      if (asked && !asked.areFree) this.#confiner.confine(process, confinement, { choices: asked });
    }
    return { stuck, refused, byMask };
  }

  /**
   * Finds processes with threads that are not where {@link confine} would put them, as far as this
   * process may move them. Members of other pid namespaces check this themselves. Changes nothing.
   * `byMask`: how many processes no cpuset keeps off.
   */
  strays(confinement: Confinement, isConfined: (member: SharedMember) => boolean) {
    const found: StrayMember[] = [];
    let [count, byMask] = [0, 0];
    for (const { member, process } of unconfined(this.registry.look(), isConfined)) {
      byMask++;
      const plan = process && this.#confiner.plan(process, confinement)?.planned;
      if (!process || plan?.isRefused) continue;
      count++;
      const threads = plan?.moved ?? 0;
      if (threads === 0) continue;
      const repair = () => this.#confiner.confine(process, confinement);
      found.push({ member, process, threads, repair });
    }
    return { checked: count, byMask, found };
  }

  /** The record about the threads of this process; empty if there is none. */
  ownRecord(): string {
    return this.#confiner.masks(identifySelf())?.known ?? '';
  }

  /**
   * Whether numalign gave a thread of a process this mask, and has not taken it back. False if the
   * thread had chosen not all of `all`: the mask is then a part of that choice.
   */
  hasGiven(process: ProcessIdentity, mask: CpuSet, all: CpuSet): boolean {
    const { known = '' } = this.#confiner.masks(process) ?? {};
    return native
      .memberThreads(processName(process), known)
      .some(({ chosen, applied }) => new CpuSet(applied).equals(mask) && all.isSubsetOf(new CpuSet(chosen)));
  }

  /**
   * Records the choice of a process that was just started with another mask: its threads would
   * choose `chosen`.
   */
  learnAskedMask(pid: number, choice: Omit<NativeMemberThread, 'tid'>): void {
    const process = identifyProcess(pid);
    if (process) this.#confiner.learn(process, { ...choice, tid: pid });
  }

  /**
   * Asks stuck members to leave the taken CPUs by themselves. Returns those that have not left in
   * time.
   */
  async ask(
    stuck: readonly StuckMember[],
    { taken, pool }: Confinement,
    timeoutMs: number,
  ): Promise<StuckMember[]> {
    const names = stuck.flatMap((each) => (each.member.kind === 'process' ? each.names : []));
    if (names.length === 0) return [...stuck];
    const isThere = (name: string) => this.registry.look([name]).length > 0;
    const answer = await this.#requests.ask(
      { names, taken, pool, isOver: false },
      timeoutMs,
      isThere,
      (...answer) => this.registry.mayAnswer(...answer),
    );
    return stuck.filter(
      ({ member, names }) =>
        member.kind !== 'process' || (!names.some((name) => answer.has(name)) && names.some(isThere)),
    );
  }

  /** Notifies members that cannot be moved that CPUs are given back. */
  announceReopened(stuck: readonly StuckMember[], { taken, pool }: Confinement): void {
    const names = stuck.flatMap((each) => each.names);
    if (names.length > 0) this.#requests.send({ names, taken, pool, isOver: true });
  }
}

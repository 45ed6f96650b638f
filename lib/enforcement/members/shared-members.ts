import { cpusOfPods } from '../../account/cpus-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import type { NativeMemberChoice, NativeMemberThread } from '../../base/native-threads.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { identifyProcess, identifySelf, isProcOurs } from '../../processes/process-identity.js';
import type { StatePart, Store } from '../../state/store.js';
import type { Confined, Confinement, Outcome, StrayMember, StuckMember } from './confinement.js';
import { Holders } from './holders.js';
import { type MemberChoices, masked, NO_CHOICES, unpinnedOf, withUnpinned } from './member-masks.js';
import { processesOf, unconfined } from './member-processes.js';
import { MemberRegistry } from './member-registry.js';
import { type ClearRequest, MemberRequests } from './member-requests.js';
import { ProcessConfiner } from './process-confiner.js';
import type { Registered } from './registration.js';
import { memberOf, type SharedMember } from './shared-member.js';

/** The names in members/, and who is registered by them. */
export interface PresentMembers {
  readonly names: readonly string[];
  readonly registered: readonly Registered[];
}

/** The members of one state folder. What changes something REQUIRES the state's lock. */
export class SharedMembers implements StatePart {
  readonly registry: MemberRegistry;
  readonly #requests: MemberRequests;
  readonly #folder: NativeFolder;
  readonly #holders = new Holders();
  readonly #confiner: ProcessConfiner;

  /**
   * Of those that share a state; undefined where nobody runs on the machine.
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
    this.#folder = folder;
    this.registry = new MemberRegistry(this.#folder);
    this.#requests = new MemberRequests(this.#folder, path);
    this.#confiner = new ProcessConfiner(this.#folder, this.#holders);
  }

  /**
   * This process is a member from now on, and leaves CPUs when it is asked to. `reopened`: called
   * when CPUs are given back, and when somebody has removed the registration. As often as
   * {@link leave}.
   */
  join(pods: () => readonly PodAssignment[], reopened: () => void): void {
    this.registry.join();
    const name = this.registry.ownName;
    if (name !== undefined)
      this.#requests.listen(name, (request) => this.#obey(request, pods(), reopened), reopened);
  }

  leave(): void {
    if (this.registry.leave()) this.#requests.stop();
  }

  /** This process is a member again where somebody has removed its registration. */
  rejoin(): void {
    if (this.registry.rejoin()) this.#requests.restart();
  }

  close(): void {
    this.registry.close();
  }

  #obey(
    { taken, pool, isOver }: ClearRequest,
    pods: readonly PodAssignment[],
    reopened: () => void,
  ): boolean {
    if (isOver) reopened();
    if (isOver) return true;
    const own = identifySelf();
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
    return this.#confiner.confine(own, confinement, this.#folder.list(), true).reason === undefined;
  }

  /** Those that live, each once. Only looks, without the lock. */
  list(): readonly SharedMember[] {
    return this.registry.look().map(({ entry }) => memberOf(entry));
  }

  /**
   * Those that live, as they are while the lock is held: only what holds it registers members.
   * Forgets those that have ended.
   */
  present(): PresentMembers {
    const names = this.#folder.list();
    return { names, registered: this.registry.all(names) };
  }

  /**
   * What the threads of every member that can be moved from here have chosen, for {@link confine}
   * after a change of a cpuset: before Linux 6.2 the kernel gives a thread all CPUs of its cpuset
   * when these change. `cpusetOf`: the CPUs that a process may choose from now; threads that may
   * use all of them have chosen `all`, which are those that nobody has isolated.
   */
  choices(
    { registered: members }: PresentMembers,
    { pods, unpinned }: Pick<Confinement, 'pods' | 'unpinned'>,
    cpusetOf: (pid: number) => CpuSet | undefined,
    all: CpuSet,
  ): MemberChoices {
    const found = new Map<number, readonly NativeMemberChoice[]>();
    for (const registered of members) {
      const processes = processesOf(registered);
      if (typeof processes === 'string') continue;
      for (const process of processes) {
        const own = unpinnedOf(process, unpinned);
        const rows = this.#confiner.masks(process)?.threads ?? [];
        // Of its own threads this process knows what cpusets have cut, also where no mask of theirs
        // was changed.
        const isOwn = process.pid === globalThis.process.pid;
        const known = [...withUnpinned(rows, own), ...(isOwn ? native.choices() : [])];
        const threads = native.memberChoices({
          pid: process.pid,
          known,
          unpinned: own.map(({ tid }) => tid),
          grants: this.#holders.grantsOf(pods, process).map((pod) => cpusOf(pod).words),
          limit: (cpusetOf(process.pid) ?? CpuSet.EMPTY).words,
          all: all.words,
        });
        found.set(process.pid, threads);
      }
    }
    return found;
  }

  /**
   * Gives each thread of every member what it has chosen less what is taken, and reads back. Of
   * cgroups every process that is in them. Answers who may still run on what is taken.
   * `isConfined`: members that a cpuset keeps off already.
   */
  confine(
    { names, registered: all }: PresentMembers,
    confinement: Confinement,
    isConfined: (member: SharedMember) => boolean,
    choices: MemberChoices = NO_CHOICES,
  ): Confined {
    const stuck: StuckMember[] = [];
    const refused: StuckMember[] = [];
    let byMask = 0;
    for (const { member, names: registrations, process, reason } of unconfined(all, isConfined)) {
      byMask++;
      const result: Outcome = process
        ? this.#confiner.confine(process, confinement, names, false, choices.get(process.pid))
        : { moved: 0, reason };
      if (result.reason !== undefined) stuck.push({ member, reason: result.reason, names: registrations });
      else if (result.isRefused) refused.push({ member, reason: 'EPERM', names: registrations });
    }
    if (choices.size === 0) return { stuck, refused, byMask };
    // A cpuset keeps these off, but its change may have reset their masks.
    for (const { process } of unconfined(all, (member) => !isConfined(member))) {
      const chosen = process && choices.get(process.pid);
      if (!chosen?.some(({ isFree }) => !isFree)) continue;
      this.#confiner.confine(process!, confinement, names, false, chosen);
    }
    return { stuck, refused, byMask };
  }

  /**
   * The processes of which threads are not where {@link confine} would have them, as far as this
   * process may move them. Those of other pid namespaces look after themselves. Changes nothing.
   * `byMask`: how many no cpuset keeps off.
   */
  strays(confinement: Confinement, isConfined: (member: SharedMember) => boolean) {
    const names = this.#folder.list();
    const found: StrayMember[] = [];
    let [checked, byMask] = [0, 0];
    for (const { member, process } of unconfined(this.registry.look(names), isConfined)) {
      byMask++;
      const planned = process && this.#confiner.plan(process, confinement, names, false)?.planned;
      if (!process || planned?.isRefused) continue;
      checked++;
      const threads = planned?.moved ?? 0;
      if (threads === 0) continue;
      const repair = () => this.#confiner.confine(process, confinement, names, false);
      found.push({ member, process, threads, repair });
    }
    return { checked, byMask, found };
  }

  /** What threads of this process have chosen that have another mask now. */
  ownMasks(): readonly NativeMemberThread[] {
    return masked(this.#confiner.masks(identifySelf())?.threads ?? []);
  }

  /**
   * A process was started just now with a mask that is not its choice: its threads would choose
   * `chosen`.
   */
  noteChoice(pid: number, choice: Omit<NativeMemberThread, 'tid'>): void {
    const process = identifyProcess(pid);
    if (process) this.#confiner.note(process, { ...choice, tid: pid });
  }

  /**
   * Asks those who are stuck to leave what is taken by themselves; answers those who have not
   * within the time.
   */
  async ask(
    stuck: readonly StuckMember[],
    { taken, pool }: Confinement,
    timeoutMs: number,
  ): Promise<StuckMember[]> {
    const names = stuck.flatMap((each) => (each.member.kind === 'process' ? each.names : []));
    if (names.length === 0) return [...stuck];
    const isThere = (name: string) => this.registry.look([name]).length > 0;
    const answered = await this.#requests.ask(
      { names, taken, pool, isOver: false },
      timeoutMs,
      isThere,
      (...answer) => this.registry.mayAnswer(...answer),
    );
    return stuck.filter(
      ({ member, names }) =>
        member.kind !== 'process' || (!names.some((name) => answered.has(name)) && names.some(isThere)),
    );
  }

  /** Tells those who cannot be moved that CPUs are given back. */
  tellReopened(stuck: readonly StuckMember[], { taken, pool }: Confinement): void {
    const names = stuck.flatMap((each) => each.names);
    if (names.length > 0) this.#requests.tell({ names, taken, pool, isOver: true });
  }
}

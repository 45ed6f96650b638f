// SharedMembers: the processes and cgroups that run in the shared pool. They leave CPUs before
// these become exclusive, and come back when they are given back. Masks are theirs to choose: what
// a thread had chosen is remembered beside the registration of its process.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getSystemErrorName } from 'node:util';
import { cpusOf, type PodAssignment, runningCpus } from '../account/assignments.js';
import { native } from '../base/native.js';
import type { NativeFolder } from '../base/native-files.js';
import type { NativeConfinement, NativeMemberThread } from '../base/native-threads.js';
import { CpuSet } from '../machine/cpu-set.js';
import { listsAllProcesses, namespaceOf } from '../processes/cgroup-owner.js';
import {
  identifyProcess,
  identifySelf,
  isProcOurs,
  isUnused,
  type ProcessIdentity,
  pidNamespace,
} from '../processes/process-identity.js';
import type { StatePart, Store } from '../state/store.js';
import { isHolder, isStartedBy } from './descent.js';
import { mayVouch, readMemberFile } from './member-file.js';
import {
  DAMAGED,
  type Entry,
  isExplicit,
  MASKS,
  MemberRegistry,
  type ProcessEntry,
  processName,
  type Registered,
} from './member-registry.js';
import { type ClearRequest, MemberRequests } from './member-requests.js';

/** A process or a cgroup that runs in the shared pool. */
export type SharedMember =
  | { readonly kind: 'process'; readonly pid: number; readonly command: string }
  | { readonly kind: 'cgroup'; readonly path: string };

/** A member that may still run on CPUs that it must leave. */
export interface StuckMember {
  readonly member: SharedMember;
  /** In words. */
  readonly reason: string;
  /** Registrations of processes that may be asked to leave by themselves. */
  readonly names: readonly string[];
}

/**
 * A thread of this process whose mask was changed for it just now, and what it had chosen before it
 * was pinned.
 */
export interface UnpinnedThread {
  readonly tid: number;
  readonly earlier: CpuSet;
}

/** Where members may be from now on. */
export interface Confinement {
  /** CPUs that are nobody's but their holders'. */
  readonly taken: CpuSet;
  /** Where threads go that have chosen nothing else. */
  readonly pool: CpuSet;
  readonly all: CpuSet;
  /** The grants that there will be: their holders' threads stay on them. */
  readonly pods: readonly PodAssignment[];
  /**
   * The CPUs of one of them where its holders' threads can be by right: none that it is only about
   * to get.
   */
  readonly rightfulCpus: (pod: PodAssignment) => CpuSet;
  /** The grants from now on, new ones too: who holds one and cannot leave it is in nobody's way. */
  readonly held: readonly PodAssignment[];
  readonly unpinned: readonly UnpinnedThread[];
  /**
   * What a process may choose from: the CPUs of its cpuset. Undefined where that cannot be told.
   */
  readonly cpusetOf: (pid: number) => CpuSet | undefined;
}

/** What became of the members. */
export interface Confined {
  readonly stuck: readonly StuckMember[];
  /** Off what is taken, but not where they should be, and this process may not move them. */
  readonly refused: readonly StuckMember[];
  /** Processes that only masks keep off. */
  readonly byMask: number;
}

export interface Outcome {
  readonly moved: number;
  /** Why it is not off what is taken. */
  readonly reason?: string | undefined;
  /** This process may not move it: nothing was done. */
  readonly isRefused?: boolean;
}

interface MemberChoice extends NativeMemberThread {
  /** It may use all of its cpuset: the kernel opens to it by itself what is given back. */
  readonly isFree: boolean;
}

/** What threads have chosen, by process. */
export type MemberChoices = ReadonlyMap<number, readonly MemberChoice[]>;

const NO_CHOICES: MemberChoices = new Map();

/** A process that is not where it should be. */
export interface StrayMember {
  readonly member: SharedMember;
  readonly process: ProcessIdentity;
  /** How many of its threads. */
  readonly threads: number;
  repair(): Outcome;
}

const OTHER_NAMESPACES =
  'cgroup v1 does not list its processes of other pid namespaces: register its processes, or a cgroup below cgroupRoot';
const FOREIGN_PROC = '/proc shows another pid namespace';

const NOTHING_DONE: Outcome = { moved: 0 };

/** What is written down of a process's threads. */
interface Masks {
  readonly text: string;
  readonly threads: readonly NativeMemberThread[];
}

// A thread: [tid, chosen, applied, and asked where it is not what was applied]
function encodeMasks(process: string, threads: readonly NativeMemberThread[]): string {
  const rows = threads.map(({ tid, ...sets }) => {
    const [chosen, applied, asked] = [sets.chosen, sets.applied, sets.asked].map(
      (words) => `${new CpuSet(words)}`,
    );
    return asked === applied ? [tid, chosen, applied] : [tid, chosen, applied, asked];
  });
  return JSON.stringify({ process, threads: rows });
}

// What cannot be read is forgotten: threads then keep what they have as their choice. Earlier
// versions wrote the list alone, which says nothing of the process.
function decodeMasks(process: string, text: string, isNameSure: boolean): NativeMemberThread[] {
  try {
    const given = JSON.parse(text) as { process: unknown; threads: unknown[] } | unknown[];
    if (Array.isArray(given)) return isNameSure ? given.map(decodeThread) : [];
    return given.process === process ? given.threads.map(decodeThread) : [];
  } catch {
    return [];
  }
}

function decodeThread(row: unknown): NativeMemberThread {
  const [tid, ...lists] = row as [unknown, ...unknown[]];
  const [chosen, applied, asked = applied] = lists.map((list) => CpuSet.parse(list as string).words);
  if (!Number.isInteger(tid) || !chosen || !applied || !asked) throw new TypeError('not a thread');
  return { tid: tid as number, chosen, applied, asked };
}

/** Of a process that has ended, none. */
export function tidsOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).map(Number);
  } catch {
    return [];
  }
}

/** Where a thread may run, as the kernel says; undefined where it has ended. */
export function maskOf(tid: number): CpuSet | undefined {
  try {
    return new CpuSet(native.affinity(tid));
  } catch {
    return undefined;
  }
}

function withUnpinned(
  known: readonly NativeMemberThread[],
  unpinned: readonly UnpinnedThread[],
): readonly NativeMemberThread[] {
  const isKnown = ({ tid }: NativeMemberThread) => !unpinned.some((thread) => thread.tid === tid);
  return [
    ...known.filter(isKnown),
    ...unpinned.map(({ tid, earlier: { words } }) => ({ tid, chosen: words, applied: words, asked: words })),
  ];
}

// `isOurs`: whether a thread has a mask for a grant, and not of its own choice.
function choicesOf(
  pid: number,
  known: readonly NativeMemberThread[],
  isOurs: (tid: number, mask: CpuSet) => boolean,
  cpuset: CpuSet | undefined,
  all: CpuSet,
): MemberChoice[] {
  const isApplied = (mask: CpuSet) => (thread: NativeMemberThread) => new CpuSet(thread.applied).equals(mask);
  return tidsOf(pid).flatMap((tid) => {
    const mask = maskOf(tid);
    if (!mask) return [];
    const rows = known.filter((thread) => thread.tid === tid);
    // Two where a crash came between what it had and what it was to have.
    const isAsked = ({ asked }: NativeMemberThread) =>
      cpuset !== undefined && new CpuSet(asked).intersection(cpuset).equals(mask);
    const standing = rows.find(isApplied(mask)) ?? rows.find(isAsked);
    const own = standing ?? rows[0];
    const isAll = cpuset?.isSubsetOf(mask) ?? false;
    const byItself = () => {
      // Born of a thread whose mask was set.
      const parent = own ? undefined : known.find(isApplied(mask));
      return isAll ? all.words : (parent?.chosen ?? mask.words);
    };
    const entry = own && (standing || isOurs(tid, mask)) ? own : undefined;
    const chosen = entry?.chosen ?? byItself();
    const { applied, asked } = entry ?? { applied: mask.words, asked: mask.words };
    const isFree = isAll && mask.isSubsetOf(all) && all.isSubsetOf(new CpuSet(chosen));
    return [{ tid, chosen, applied, asked, place: mask.words, isFree }];
  });
}

/** As others hear of it. */
export function told(entry: Entry): SharedMember {
  return entry.kind === 'process'
    ? { kind: 'process', pid: entry.pid, command: entry.command }
    : { kind: 'cgroup', path: entry.path };
}

/** The members of one state folder. What changes something REQUIRES the state's lock. */
export class SharedMembers implements StatePart {
  readonly registry: MemberRegistry;
  readonly #requests: MemberRequests;
  readonly #folder: NativeFolder;

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
      rightfulCpus: cpusOf,
      held: pods,
      unpinned: [],
      cpusetOf: () => undefined,
    };
    return this.#confineProcess(own, confinement, this.#folder.list(), true).reason === undefined;
  }

  /** Those that live, each once. Only looks, without the lock. */
  list(): readonly SharedMember[] {
    return this.registry.look().map(({ entry }) => told(entry));
  }

  /**
   * What the threads of every member that can be moved from here have chosen, for {@link confine}
   * after a change of a cpuset: before Linux 6.2 the kernel gives a thread all CPUs of its cpuset
   * when these change. `cpusetOf`: the CPUs that a process may choose from now; threads that may
   * use all of them have chosen `all`, which are those that nobody has isolated.
   */
  choices(
    { pods, unpinned }: Pick<Confinement, 'pods' | 'unpinned'>,
    cpusetOf: (pid: number) => CpuSet | undefined,
    all: CpuSet,
  ): MemberChoices {
    const found = new Map<number, readonly MemberChoice[]>();
    for (const registered of this.registry.all()) {
      const processes = processesOf(registered);
      if (typeof processes === 'string') continue;
      for (const process of processes) {
        const own = unpinnedOf(process, unpinned);
        const rows = this.#masks(process)?.threads ?? [];
        // Of its own threads this process knows what cpusets have cut, also where no mask of theirs
        // was changed.
        const isOwn = process.pid === globalThis.process.pid;
        const known = [...withUnpinned(rows, own), ...(isOwn ? native.choices() : [])];
        const granted = pods.filter((pod) => mayRunOn(pod, process)).map(cpusOf);
        const isOurs = (tid: number, mask: CpuSet) =>
          own.some((each) => each.tid === tid) || granted.some((cpus) => mask.isSubsetOf(cpus));
        const threads = choicesOf(process.pid, known, isOurs, cpusetOf(process.pid), all);
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
    confinement: Confinement,
    isConfined: (member: SharedMember) => boolean,
    choices: MemberChoices = NO_CHOICES,
  ): Confined {
    const stuck: StuckMember[] = [];
    const refused: StuckMember[] = [];
    let byMask = 0;
    const names = this.#folder.list();
    const all = this.registry.all(names);
    for (const { member, names: registrations, process, reason } of unconfined(all, isConfined)) {
      byMask++;
      const result: Outcome = process
        ? this.#confineProcess(process, confinement, names, false, choices.get(process.pid))
        : { moved: 0, reason };
      if (result.reason !== undefined) stuck.push({ member, reason: result.reason, names: registrations });
      else if (result.isRefused) refused.push({ member, reason: 'EPERM', names: registrations });
    }
    // A cpuset keeps these off, but its change may have reset their masks.
    for (const { process } of unconfined(all, (member) => !isConfined(member))) {
      const chosen = process && choices.get(process.pid);
      if (!chosen?.some(({ isFree }) => !isFree)) continue;
      this.#confineProcess(process!, confinement, names, false, chosen);
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
      const planned = process && this.#plan(process, confinement, names, false)?.planned;
      if (!process || planned?.isRefused) continue;
      checked++;
      const threads = planned?.moved ?? 0;
      if (threads === 0) continue;
      const repair = () => this.#confineProcess(process, confinement, names, false);
      found.push({ member, process, threads, repair });
    }
    return { checked, byMask, found };
  }

  // Undefined where it is of no user whose word counts: it decides where threads go.
  #masks(process: ProcessIdentity): Masks | undefined {
    const name = processName(process);
    const file = readMemberFile(this.#folder, `${name}${MASKS}`);
    if (!file?.isSure || !mayVouch(file.user, process.pid)) return undefined;
    return { text: file.text, threads: decodeMasks(name, file.text, file.isNameSure) };
  }

  /** What threads of this process have chosen that have another mask now. */
  ownMasks(): readonly NativeMemberThread[] {
    return this.#masks(identifySelf())?.threads ?? [];
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

  // Undefined where nothing is to be done: nothing is taken, and nothing is known of it.
  #plan(
    process: Process,
    { all, pods, rightfulCpus, unpinned, cpusetOf, ...confinement }: Confinement,
    names: readonly string[],
    onlyNarrow: boolean,
    choices?: readonly MemberChoice[],
  ) {
    const { pid } = process;
    const file = `${processName(process)}${MASKS}`;
    const before = names.includes(file) ? this.#masks(process) : undefined;
    const attached = attachedCpus(process, pods);
    const { taken, pool } = attached ? { taken: all.difference(attached), pool: attached } : confinement;
    // All of them or none: one that is left out is taken for a child of another with the same mask.
    const chosen = taken.isEmpty && choices?.every(({ isFree }) => isFree) ? [] : choices;
    if (taken.isEmpty && before === undefined && (chosen ?? []).length === 0) return undefined;
    const left = unpinnedOf(process, unpinned);
    const known = chosen ?? withUnpinned(before?.threads ?? [], left);
    const own = (chosen ?? left).map(({ tid }) => tid);
    const limit = (known.length > 0 && cpusetOf(pid)) || CpuSet.EMPTY;
    const run = (allowed: readonly PodAssignment[], dryRun: boolean) => {
      const grants = [...(attached ? [attached] : []), ...allowed.map(rightfulCpus)].map(
        ({ words }) => words,
      );
      return native.confineMember(
        pid,
        known,
        taken.words,
        pool.words,
        grants,
        own,
        onlyNarrow,
        dryRun,
        limit.words,
      );
    };
    let allowed = pods.filter((pod) => mayRunOn(pod, process));
    let planned = run(allowed, true);
    if (planned && !isDone(planned)) {
      // Only then it is worth a look whose child it is. Whoever was attached to a container without
      // exclusive CPUs is off them all the same.
      const isSent = ({ uid }: PodAssignment) => uid === process.grant && !attached;
      allowed = pods.filter((pod) => allowed.includes(pod) || (!isSent(pod) && isStartedBy(pod.owner, pid)));
      planned = run(allowed, true);
    }
    return planned && { file, before: before?.text, known, planned, move: () => run(allowed, false) };
  }

  #confineProcess(
    process: Process,
    confinement: Confinement,
    names: readonly string[],
    onlyNarrow: boolean,
    choices?: readonly MemberChoice[],
  ): Outcome {
    const plan = this.#plan(process, confinement, names, onlyNarrow, choices);
    if (!plan) return NOTHING_DONE;
    const { file, before, known, planned, move } = plan;
    const own = confinement.held.filter((pod) => mayRunOn(pod, process)).map(cpusOf);
    const isInTheWay = ({ cpus }: { cpus: CpuSet['words'] }) => {
      const there = new CpuSet(cpus).intersection(confinement.taken);
      return !there.isEmpty && !own.some((set) => there.isSubsetOf(set));
    };
    const reasonOf = ({ stuck }: NativeConfinement) => {
      const first = stuck.find(isInTheWay);
      if (!first) return {};
      const why = first.errno === 0 ? 'the kernel left it there' : getSystemErrorName(-first.errno);
      return { reason: `its thread ${first.tid} stays on CPUs ${new CpuSet(first.cpus)}: ${why}` };
    };
    // Nothing is written: it would replace what others have written down, and they would not
    // believe it.
    if (planned.isRefused) return { moved: 0, isRefused: true, ...reasonOf(planned) };
    const save = (threads: readonly NativeMemberThread[], old: string | undefined) => {
      const text = threads.length === 0 ? undefined : encodeMasks(processName(process), threads);
      if (text === old) return text;
      if (text === undefined) this.#folder.remove(file);
      else this.#folder.replace(file, text);
      return text;
    };
    if (isDone(planned)) {
      if (native.mayMove(process.pid)) save(planned.threads, before);
      return NOTHING_DONE;
    }
    // Written down first, what they have now beside what they are to have: whoever crashes in
    // between must not have forgotten what they had chosen.
    const text = save([...planned.threads, ...known], before);
    const done = move();
    if (!done) return NOTHING_DONE;
    save(done.threads, text);
    return { moved: done.moved, ...reasonOf(done) };
  }
}

function unpinnedOf(
  { pid }: ProcessIdentity,
  unpinned: readonly UnpinnedThread[],
): readonly UnpinnedThread[] {
  return pid === globalThis.process.pid ? unpinned : [];
}

// Those of cgroups have no registration.
type Process = ProcessIdentity & Partial<Pick<ProcessEntry, 'grant' | 'container' | 'pinned'>>;

const isDone = ({ moved, stuck }: NativeConfinement) => moved === 0 && stuck.length === 0;

// Its own, or one of nobody's that it has pinned threads for. Where it was attached: see
// attachedCpus.
function mayRunOn({ uid, owner }: PodAssignment, { pid, pinned }: Process): boolean {
  if (owner.kind === 'process') return isHolder(owner, pid);
  if (pinned?.includes(uid)) return true;
  return owner.cgroup !== null && processesIn(owner.cgroup.path).includes(pid);
}

/** The CPUs that it was attached to; undefined where there are none any more. */
export function attachedCpus(
  { grant, container }: Process,
  pods: readonly PodAssignment[],
): CpuSet | undefined {
  const pod = pods.find(({ uid }) => uid === grant);
  if (!pod) return undefined;
  const cpus = container ? pod.containers.find(({ name }) => name === container)?.cpus : runningCpus(pod);
  return cpus?.isEmpty ? undefined : cpus;
}

interface Unconfined {
  readonly member: SharedMember;
  readonly names: readonly string[];
  readonly process?: Process;
  /** Why nobody here can move its processes. */
  readonly reason?: string;
}

/** The processes of members that no cpuset keeps off already, each once. */
function* unconfined(
  all: readonly Registered[],
  isConfined: (member: SharedMember) => boolean,
): Generator<Unconfined> {
  const seen = new Set<number>();
  for (const registered of all) {
    const { names, entry } = registered;
    const member = told(entry);
    // The cpuset of a member that cannot be seen is not known.
    if (registered.isSeen && isConfined(member)) continue;
    const processes = processesOf(registered);
    if (typeof processes === 'string') {
      yield { member, names, reason: processes };
      continue;
    }
    for (const process of processes) {
      if (seen.has(process.pid)) continue;
      seen.add(process.pid);
      yield { member, names, process };
    }
  }
}

// Why nobody here can move a member, though it is there: in words.
function whyUnseen({ entry, names }: Registered): string {
  if (entry.kind === 'process') {
    if (entry.namespace === pidNamespace()) return '/proc hides it';
    const [name] = names.every(isExplicit) ? names : [];
    return `it lives in another pid namespace${name === undefined ? '' : `: if it has ended, remove members/${name}`}`;
  }
  if (entry.namespace === DAMAGED)
    return 'its registration in members/ is damaged: remove it, and register the cgroup again';
  if (entry.namespace !== namespaceOf('cgroup')) return 'it is known in another cgroup namespace only';
  return 'it cannot be seen from here';
}

/** The processes of a member; a reason in words where nobody here can move them. */
function processesOf(registered: Registered): readonly ProcessIdentity[] | string {
  const { entry, user, doubt, isSeen } = registered;
  if (!isSeen) return whyUnseen(registered);
  if (!isProcOurs()) return FOREIGN_PROC;
  if (doubt !== undefined) return doubt;
  if (entry.kind === 'process') return [entry];
  if (!listsAllProcesses(entry.path)) return OTHER_NAMESPACES;
  const found: ProcessIdentity[] = [];
  for (const pid of processesIn(entry.path)) {
    const process = identifyProcess(pid);
    if (process && mayVouch(user, pid)) found.push(process);
    // cgroups(7): 0 is one of another pid namespace.
    if (!process && (pid === 0 || !isUnused(pid))) return `/proc hides process ${pid} in it`;
  }
  return found;
}

// In it and below it.
function processesIn(path: string): number[] {
  try {
    const own = readFileSync(join(path, 'cgroup.procs'), 'latin1').split('\n').filter(Boolean).map(Number);
    const below = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...own, ...below.flatMap(({ name }) => processesIn(join(path, name)))];
  } catch {
    // It was removed meanwhile.
    return [];
  }
}

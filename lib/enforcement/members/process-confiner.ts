// ProcessConfiner: moves the threads of one member off taken CPUs. What they had chosen is stored
// next to the registration of their process.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import { errnoName } from '../../base/codes/errno.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import type { NativeAskedMask, NativeConfinement, NativeMemberThread } from '../../base/native-threads.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { ProcessIdentity } from '../../processes/process-identity.js';
import type { Confinement, Outcome } from './confinement.js';
import { isStartedBy } from './descent.js';
import type { Holders } from './holders.js';
import { MASKS, processName } from './member-entry.js';
import { mayVouch, readMemberFile } from './member-file.js';
import { decodeMasks, encodeMasks, unpinnedOf, withUnpinned } from './member-masks.js';
import { attachedCpus, isDone, type Process } from './member-processes.js';

interface ConfineOptions {
  /** Only takes CPUs from masks. */
  readonly onlyNarrow?: boolean;
  /** What its threads have chosen, where that is known otherwise than from the record. */
  readonly choices?: readonly NativeAskedMask[] | undefined;
}

const NOTHING_DONE: Outcome = { moved: 0 };

/** Everything that changes something REQUIRES the state's lock, except for this process. */
export class ProcessConfiner {
  // Rows of records by process, which could not be written.
  readonly #unwritten = new Map<string, readonly NativeMemberThread[]>();

  /** `folder`: members/ of the state folder. */
  constructor(
    private readonly folder: NativeFolder,
    private readonly holders: Holders,
  ) {}

  /**
   * The record about its threads, which decides where they go. Undefined unless it comes from a
   * trusted user.
   */
  masks(process: ProcessIdentity) {
    const name = processName(process);
    const file = readMemberFile(this.folder, `${name}${MASKS}`);
    if (!file?.isSure || !mayVouch(file.user, process.pid)) return undefined;
    return {
      text: file.text,
      threads: [...decodeMasks(name, file.text), ...(this.#unwritten.get(name) ?? [])],
    };
  }

  /** Records what the only thread of a process has chosen. */
  learn(process: ProcessIdentity, thread: NativeMemberThread): void {
    const name = processName(process);
    this.folder.replace(`${name}${MASKS}`, encodeMasks(name, [thread]));
  }

  /** What {@link confine} would do. Undefined if nothing is taken and nothing is on record. */
  plan(
    process: Process,
    { all, pods, granted, rightfulCpus, unpinned, cpusetOf, taken: allTaken, pool: allPool }: Confinement,
    { onlyNarrow = false, choices }: ConfineOptions = {},
  ) {
    const { pid } = process;
    const file = `${processName(process)}${MASKS}`;
    const before = this.masks(process);
    const attached = attachedCpus(process, pods);
    const [taken, pool] = attached ? [all.difference(attached), attached] : [allTaken, allPool];
    // All choices or none: a thread that is left out would pass for the child of another thread
    // with the same mask.
    const askedByThreads = taken.isEmpty && choices?.every(({ isFree }) => isFree) ? [] : choices;
    if (taken.isEmpty && before === undefined && (askedByThreads ?? []).length === 0) return undefined;
    const unpinnedThreads = unpinnedOf(process, unpinned);
    const threads = askedByThreads ?? withUnpinned(before?.threads ?? [], unpinnedThreads);
    const movable = (askedByThreads ?? unpinnedThreads).map(({ tid }) => tid);
    const limit = (threads.length > 0 && cpusetOf(pid)) || CpuSet.EMPTY;
    const run = (allowed: readonly PodAssignment[], dryRun: boolean) => {
      const grants = [...(attached ? [attached] : []), ...allowed.map(rightfulCpus)];
      return native.confineMember({
        pid,
        known: threads,
        taken: taken.words,
        pool: pool.words,
        grants: grants.map(({ words }) => words),
        unpinned: movable,
        onlyNarrow,
        dryRun,
        limit: limit.words,
      });
    };
    let allowed = this.holders.grantsOf(pods, process);
    let plan = run(allowed, true);
    // The parents of a process matter only if its threads would be moved off a grant.
    const places = (plan?.places ?? []).map((words) => new CpuSet(words));
    if (places.some((place) => place.isSubsetOf(granted))) {
      // A process that was attached to a container without exclusive CPUs must leave them all the
      // same.
      const isShared = ({ uid }: PodAssignment) => uid === process.grant && !attached;
      const isThere = (cpus: CpuSet) => places.some((place) => place.isSubsetOf(cpus));
      const parents = pods.filter(
        (pod) =>
          isThere(rightfulCpus(pod)) &&
          !allowed.includes(pod) &&
          !isShared(pod) &&
          isStartedBy(pod.owner, pid),
      );
      if (parents.length > 0) {
        allowed = [...allowed, ...parents];
        plan = run(allowed, true);
      }
    }
    return (
      plan && { file, before: before?.text, known: threads, planned: plan, move: () => run(allowed, false) }
    );
  }

  /** Records what its threads have chosen, moves them, and reads back. */
  confine(process: Process, confinement: Confinement, options?: ConfineOptions): Outcome {
    const plan = this.plan(process, confinement, options);
    if (!plan) return NOTHING_DONE;
    const { file, before, known, planned, move } = plan;
    const isInTheWay = ({ cpus }: { cpus: CpuSet['words'] }) => {
      const exclusive = new CpuSet(cpus).intersection(confinement.taken);
      const isOwn = (pod: PodAssignment) => exclusive.isSubsetOf(cpusOf(pod));
      return !exclusive.isEmpty && !this.holders.grantsOf(confinement.held, process).some(isOwn);
    };
    const reasonOf = ({ stuck }: NativeConfinement) => {
      const first = stuck.find(isInTheWay);
      if (!first) return {};
      const why = first.errno === 0 ? 'the kernel left it there' : errnoName(first.errno);
      return { reason: `its thread ${first.tid} stays on CPUs ${new CpuSet(first.cpus)}: ${why}` };
    };
    // Nothing is written: this process's record would replace that of others, who would not trust
    // it.
    if (planned.isRefused) return { moved: 0, isRefused: true, ...reasonOf(planned) };
    const save = (threads: readonly NativeMemberThread[], old: string | undefined, mayWrite = () => true) => {
      const text = threads.length === 0 ? undefined : encodeMasks(processName(process), threads);
      if (text === old || !mayWrite()) return text;
      if (text === undefined) this.folder.remove(file);
      else this.folder.replace(file, text);
      this.#unwritten.delete(processName(process));
      return text;
    };
    if (isDone(planned)) {
      save(planned.threads, before, () => native.mayMove(process.pid));
      return NOTHING_DONE;
    }
    // The record is written first, with the current and the future masks: a crash in between must
    // not lose what the threads had chosen.
    const text = save([...planned.threads, ...known], before);
    const result = move();
    if (!result) return NOTHING_DONE;
    const { putBack } = result;
    if (putBack) {
      confinement.onMoved?.(() => {
        if (putBack()) this.#unwritten.set(processName(process), known);
      });
    }
    save(result.threads, text);
    return { moved: result.moved, ...reasonOf(result) };
  }
}

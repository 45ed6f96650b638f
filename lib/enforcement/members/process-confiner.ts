// ProcessConfiner: moves the threads of one member off taken CPUs. What they had chosen is stored
// next to the registration of their process.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import { errnoName } from '../../base/codes/errno.js';
import { native } from '../../base/native.js';
import type { NativeFolder } from '../../base/native-files.js';
import type { NativeConfinement, NativeMemberThread } from '../../base/native-threads.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { ProcessIdentity } from '../../processes/process-identity.js';
import type { Confinement, Outcome } from './confinement.js';
import { isStartedBy } from './descent.js';
import type { Holders } from './holders.js';
import { MASKS, processName } from './member-entry.js';
import { mayVouch, readMemberFile } from './member-file.js';
import { type Choices, unpinnedOf } from './member-masks.js';
import { attachedCpus, isDone, type Process } from './member-processes.js';

interface ConfineOptions {
  /** Only takes CPUs from masks. */
  readonly onlyNarrow?: boolean;
  /** What its threads have chosen, where that is known otherwise than from the record. */
  readonly choices?: Choices | undefined;
}

const NOTHING_DONE: Outcome = { moved: 0 };

/** Everything that changes something REQUIRES the state's lock, except for this process. */
export class ProcessConfiner {
  // Records by process, which could not be written.
  readonly #unwritten = new Map<string, string>();

  /** `folder`: members/ of the state folder. */
  constructor(
    private readonly folder: NativeFolder,
    private readonly holders: Holders,
  ) {}

  /**
   * The record about its threads, which decides where they go. Undefined unless it comes from a
   * trusted user. `known`: with what could not be written.
   */
  masks(process: ProcessIdentity) {
    const name = processName(process);
    const file = readMemberFile(this.folder, `${name}${MASKS}`);
    if (!file?.isSure || !mayVouch(file.user, process.pid)) return undefined;
    const { text } = file;
    const unwritten = this.#unwritten.get(name);
    if (unwritten === undefined) return { text, known: text };
    const threads = [text, unwritten].flatMap((record) => native.memberThreads(name, record));
    return { text, known: native.memberRecord(name, threads) };
  }

  /** Records what the only thread of a process has chosen. */
  learn(process: ProcessIdentity, thread: NativeMemberThread): void {
    const name = processName(process);
    this.folder.replace(`${name}${MASKS}`, native.memberRecord(name, [thread]));
  }

  /**
   * What {@link confine} would do. Undefined if nothing is taken and nothing is on record.
   * `before`: the record now.
   */
  plan(
    process: Process,
    { all, pods, granted, rightfulCpus, unpinned, cpusetOf, taken: allTaken, pool: allPool }: Confinement,
    { onlyNarrow = false, choices }: ConfineOptions = {},
  ) {
    const { pid } = process;
    const before = this.masks(process);
    const attached = attachedCpus(process, pods);
    const [taken, pool] = attached ? [all.difference(attached), attached] : [allTaken, allPool];
    // All choices or none: a thread that is left out would pass for the child of another thread
    // with the same mask.
    const asked = taken.isEmpty && choices?.areFree ? '' : choices?.threads;
    if (taken.isEmpty && before === undefined && !asked) return undefined;
    const known = asked ?? before?.known ?? '';
    const unpinnedThreads = asked === undefined ? unpinnedOf(process, unpinned) : [];
    const limit = ((known !== '' || unpinnedThreads.length > 0) && cpusetOf(pid)) || CpuSet.EMPTY;
    const planFor = (allowed: readonly PodAssignment[]) => {
      const grants = allowed.map((pod) => rightfulCpus(pod).words);
      if (attached) grants.unshift(attached.words);
      return native.planMember({
        pid,
        process: processName(process),
        known,
        isAsked: asked !== undefined,
        unpinned: unpinnedThreads,
        grants,
        limit: limit.words,
        taken: taken.words,
        pool: pool.words,
        granted: granted.words,
        onlyNarrow,
      });
    };
    const allowed = this.holders.grantsOf(pods, process);
    const planned = planFor(allowed);
    if (!planned) return undefined;
    const plan = { before: before?.text ?? '', planned };
    // The parents of a process matter only if its threads would be moved off a grant.
    if (planned.places.length === 0) return plan;
    const places = planned.places.map((words) => new CpuSet(words));
    // A process that was attached to a container without exclusive CPUs must leave them all the same.
    const isShared = ({ uid }: PodAssignment) => uid === process.grant && !attached;
    const isThere = (cpus: CpuSet) => places.some((place) => place.isSubsetOf(cpus));
    const parents = pods.filter(
      (pod) =>
        isThere(rightfulCpus(pod)) && !allowed.includes(pod) && !isShared(pod) && isStartedBy(pod.owner, pid),
    );
    if (parents.length === 0) return plan;
    const again = planFor([...allowed, ...parents]);
    return again && { ...plan, planned: again };
  }

  /** Records what its threads have chosen, moves them, and reads back. */
  confine(process: Process, confinement: Confinement, options?: ConfineOptions): Outcome {
    const plan = this.plan(process, confinement, options);
    if (!plan) return NOTHING_DONE;
    const { before, planned } = plan;
    const name = processName(process);
    const isInTheWay = ({ cpus }: { cpus: CpuSet['words'] }) => {
      const exclusive = new CpuSet(cpus).intersection(confinement.taken);
      const isOwn = (pod: PodAssignment) => exclusive.isSubsetOf(cpusOf(pod));
      return !exclusive.isEmpty && !this.holders.grantsOf(confinement.held, process).some(isOwn);
    };
    const reasonOf = ({ stuck }: NativeConfinement) => {
      const first = stuck.find(isInTheWay);
      if (!first) return undefined;
      const why = first.errno === 0 ? 'the kernel left it there' : errnoName(first.errno);
      return `its thread ${first.tid} stays on CPUs ${new CpuSet(first.cpus)}: ${why}`;
    };
    // Nothing is written: this process's record would replace that of others, who would not trust
    // it.
    if (planned.isRefused) return { moved: 0, isRefused: true, reason: reasonOf(planned) };
    const save = (record: string, old: string, mayWrite = () => true) => {
      if (record === old || !mayWrite()) return;
      if (record === '') this.folder.remove(`${name}${MASKS}`);
      else this.folder.replace(`${name}${MASKS}`, record);
      this.#unwritten.delete(name);
    };
    if (isDone(planned)) {
      save(planned.record, before, () => native.mayMove(process.pid));
      return NOTHING_DONE;
    }
    // The record is written first, with the current and the future masks: a crash in between must
    // not lose what the threads had chosen.
    save(planned.record, before);
    const { onMoved } = confinement;
    const result = native.moveMember(process.pid, onMoved !== undefined);
    if (!result) return NOTHING_DONE;
    const { putBack } = result;
    if (putBack) {
      onMoved?.(() => {
        const unwritten = putBack();
        if (unwritten !== undefined) this.#unwritten.set(name, unwritten);
      });
    }
    save(result.record, planned.record);
    return { moved: result.moved, reason: reasonOf(result) };
  }
}

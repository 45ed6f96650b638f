// WorkerPlacement: places all Workers of this thread on a grant as they are born, whichever package
// constructs them.
import type { Worker } from 'node:worker_threads';
import { checkNames } from '../base/check-options.js';
import { isNumalignError, refusalOf, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { checkSignal } from '../input/requests/request.js';
import { affinity, pinFor } from '../machine/affinity.js';
import { CpuSet } from '../machine/cpu-set.js';
import { openTrial } from '../threads/birth.js';
import { type GrantedThreads, inGroup, type ThreadPlace } from '../threads/granted-threads.js';
import { checkPlace, parsePlace } from '../threads/placement.js';
import { adoptWorker, type WorkerStart, workerStartOn } from '../threads/worker.js';
import { successorOn } from './balance.js';
import {
  type BirthListener,
  type Delivery,
  isWatching,
  unwatchBirths,
  watchBirths,
} from './worker-births.js';

/** The options of {@link Grant.placeWorkers}. */
export interface PlaceWorkersOptions {
  /**
   * CPUs of the grant, or of its `part`.
   * @default all CPUs that no part has
   */
  cpus?: CpuSet | string;
  /**
   * The part of the grant that Workers run on.
   * @default none
   */
  part?: string;
  /**
   * Gives each Worker one CPU, the one with the fewest Workers.
   * @default `false`; on isolated CPUs `true`
   */
  oneToOne?: boolean;
  /**
   * Ends the placement, as {@link WorkerPlacement.stop} does.
   * @default none
   */
  signal?: AbortSignal;
}

/** A Worker that {@link Grant.placeWorkers} saw. */
export interface WorkerBirth {
  /** The Worker of node:worker_threads. */
  readonly worker: Worker;
  /** Its Linux thread id, as gettid(2); null if it is not certain. */
  readonly tid: number | null;
  /**
   * The CPUs that it may run on, read back from the kernel; if `tid` is null, the CPUs that it was
   * given.
   */
  readonly cpus: CpuSet;
  /**
   * `atBirth`: placed before its first instruction. `afterBirth`: placed while it was starting,
   * before its constructor returned. `never`: not placed.
   */
  readonly when: 'atBirth' | 'afterBirth' | 'never';
  /** Why it was not placed, in one line; else null. */
  readonly reason: string | null;
}

/**
 * Checks what does not depend on the grant. @throws ERR_INVALID_OPTION, the reason of an aborted
 * `signal`
 */
export function checkPlaceWorkers(options: PlaceWorkersOptions) {
  const { signal, ...place } = checkNames(options, ['cpus', 'part', 'oneToOne', 'signal'], 'placeWorkers');
  checkPlace('placeWorkers', place);
  const stopSignal = checkSignal(signal);
  stopSignal?.throwIfAborted();
  return { stopSignal, place };
}

/** The placement of Workers by {@link Grant.placeWorkers}. `using` stops it. */
export class WorkerPlacement implements Disposable {
  readonly #grant: () => GrantedThreads;
  readonly #options: Omit<PlaceWorkersOptions, 'signal'>;
  readonly #noteRunning: () => void;
  readonly #isEnding: () => boolean;
  // In the order of their births.
  readonly #alive = new Set<Worker>();
  readonly #births = new WeakMap<Worker, WorkerBirth>();
  // Threads without a Worker whose birth was seen.
  #strangers: Set<number>;
  readonly #listener: BirthListener = {
    isOver: () => this.#isOver(),
    expect: () => this.#expect(),
    miss: (worker) => this.#orElse(worker, () => this.#place(worker)),
  };
  readonly #signal: AbortSignal | undefined;
  readonly #abort = () => this.stop();

  /**
   * Use {@link Grant.placeWorkers}. `isEnding`: whether the grant is being released, which may
   * still fail.
   * @throws like {@link Grant.placeWorkers}
   */
  constructor(
    grant: () => GrantedThreads,
    options: PlaceWorkersOptions,
    noteRunning: () => void,
    isEnding = () => false,
  ) {
    const { stopSignal, place } = checkPlaceWorkers(options);
    const target = grant();
    parsePlace(target, 'placeWorkers', place);
    target.group?.checkStart();
    this.#grant = grant;
    this.#options = place;
    this.#noteRunning = noteRunning;
    this.#isEnding = isEnding;
    this.#strangers = tidsNow();
    this.#signal = stopSignal;
    watchBirths(this.#listener);
    stopSignal?.addEventListener('abort', this.#abort);
  }

  #isOver(): boolean {
    const hasEnded = this.#hasEnded;
    if (hasEnded && !this.#isEnding()) this.stop();
    return hasEnded;
  }

  // Any other refusal of the grant may be temporary.
  get #hasEnded(): boolean {
    try {
      this.#grant();
      return false;
    } catch (error) {
      return isNumalignError(error, 'ERR_GRANT_RELEASED');
    }
  }

  /** Whether new Workers are placed. */
  get isActive(): boolean {
    return isWatching(this.#listener) && !this.#hasEnded;
  }

  /** The living Workers that it has seen, in the order of their births. */
  get workers(): readonly WorkerBirth[] {
    return [...this.#alive].map((worker) => withCpusNow(this.#births.get(worker)!));
  }

  /**
   * Returns what became of a Worker; undefined for an older one, or one of another thread or
   * {@link Grant.worker}.
   */
  of(worker: Worker): WorkerBirth | undefined {
    const birth = this.#births.get(worker);
    return birth && (this.#alive.has(worker) ? withCpusNow(birth) : Object.freeze({ ...birth }));
  }

  /** Stops placing new Workers. Placed Workers stay where they are. */
  stop(): void {
    unwatchBirths(this.#listener);
    this.#signal?.removeEventListener('abort', this.#abort);
  }

  /** As {@link stop}. */
  [Symbol.dispose](): void {
    this.stop();
  }

  #expect(): Delivery {
    let start: WorkerStart;
    let close: () => number;
    try {
      start = this.#nextStart();
      close = openTrial(start.target, start.cpus);
    } catch (error) {
      const raise = () => {
        throw error;
      };
      return (worker) => worker && this.#orElse(worker, raise);
    }
    return (worker) => {
      if (worker) this.#orElse(worker, () => this.#adopt(worker, start, close()));
      else unlessRefused(close);
    };
  }

  #adopt(worker: Worker, start: WorkerStart, tid: number): void {
    const { cpus } = start;
    // Only a thread that started after the mask was set has certainly inherited it.
    if (tid === 0 && this.#newcomers().every((thread) => !thread.cpus.isSubsetOf(cpus))) {
      this.#place(worker);
      return;
    }
    adoptWorker(start, worker, tid);
    this.#note({ worker, tid: tid || null, cpus, when: 'atBirth', reason: null });
  }

  // Places a Worker with the help of the kernel's list of threads.
  #place(worker: Worker): void {
    const newcomers = this.#newcomers();
    this.#strangers = tidsNow();
    const [thread, ...others] = newcomers;
    if (!thread || others.length > 0) {
      const reason = thread
        ? `${newcomers.length} threads may belong to it, since others started at the same time`
        : 'its thread has already ended';
      this.#noteUnplaced(worker, reason);
      return;
    }
    const { tid } = thread;
    const start = this.#nextStart();
    this.#move(tid, start);
    adoptWorker(start, worker, tid);
    this.#note({ worker, tid, cpus: start.cpus, when: 'afterBirth', reason: null });
  }

  #move(tid: number, { target, cpus }: WorkerStart): void {
    const { grant, part, owner } = target;
    inGroup(target, [tid], false, () => pinFor(cpus, tid, { grant, part, owner, replace: false }));
  }

  // Threads that may belong to a Worker whose birth was not seen.
  #newcomers(): { tid: number; cpus: CpuSet }[] {
    const tids = new Set([...this.#alive].map((worker) => this.#births.get(worker)!.tid));
    return native
      .threads()
      .filter(({ tid, role }) => !this.#strangers.has(tid) && !tids.has(tid) && isUnnamed(role))
      .map(({ tid, cpus }) => ({ tid, cpus: new CpuSet(cpus) }));
  }

  #nextStart(): WorkerStart {
    const grant = this.#grant();
    return workerStartOn(grant, this.#placeOn(grant));
  }

  // The grant may have other CPUs by now.
  #placeOn(grant: GrantedThreads): ThreadPlace {
    const { cpus: _, ...rest } = this.#options;
    const option = unlessRefused(() => parsePlace(grant, 'placeWorkers', this.#options));
    return option ?? parsePlace(grant, 'placeWorkers', rest);
  }

  // `new Worker` must not fail because a place is refused: the Worker stays where it was born.
  #orElse(worker: Worker, action: () => void): void {
    const refusal = refusalOf(action);
    if (refusal) this.#noteUnplaced(worker, refusal.message);
  }

  #noteUnplaced(worker: Worker, reason: string): void {
    this.#note({ worker, tid: null, cpus: CpuSet.EMPTY, when: 'never', reason });
  }

  #note(birth: WorkerBirth): void {
    const { worker } = birth;
    this.#alive.add(worker);
    this.#births.set(worker, birth);
    worker.once('exit', () => this.#end(worker));
    if (birth.when !== 'never') unlessRefused(this.#noteRunning);
  }

  // Moves a Worker that shares a CPU to the CPU that has become free: the next Worker of its pool
  // may have been born before this one had ended.
  #end(worker: Worker): void {
    const { tid, cpus } = this.#births.get(worker)!;
    this.#alive.delete(worker);
    // The kernel may reuse the id for the next thread.
    if (tid !== null) this.#strangers.delete(tid);
    if (cpus.size !== 1) return;
    const placed = this.workers.filter(({ tid }) => tid !== null);
    const successor = successorOn(cpus.first!, placed);
    if (!successor) return;
    unlessRefused(() => {
      const grant = this.#grant();
      const place = this.#placeOn(grant);
      if (!place.oneEach || !cpus.isSubsetOf(place.cpus)) return;
      const target = place.part === grant.part ? grant : grant.onPart(place.part);
      this.#move(successor.tid!, { target, cpus });
      this.#births.set(successor.worker, { ...successor, cpus });
    });
  }
}

function withCpusNow(birth: WorkerBirth): WorkerBirth {
  const { tid, cpus } = birth;
  return Object.freeze({
    ...birth,
    cpus: tid === null ? cpus : (unlessRefused(() => affinity(tid)) ?? cpus),
  });
}

const tidsNow = () => new Set(native.threads().map(({ tid }) => tid));

const isUnnamed = (role: string) => role === 'other' || role === 'worker';

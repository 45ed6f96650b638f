// Store: where assignments are kept between admissions. A Ledger is a folder that processes share;
// a MemoryStore is one process's own. A StateSource can be read only.
import type { Assignments } from '../account/assignments.js';
import type { TotalOn } from '../account/booked-memory.js';
import type { NumalignError } from '../base/errors.js';
import type { NativeFolder } from '../base/native-files.js';
import type { Registry } from '../base/registry.js';
import type { Listener, Listening } from './files/folder-watch.js';
import type { GoodState } from './files/state-files.js';
import type { Checkpoint } from './format/checkpoint.js';
import type { OwnerLookup, OwnerRegistry } from './owners/owner-registry.js';
import type { WaitQueue } from './wait-queue.js';

export interface TransactOptions {
  readonly lockTimeoutMs: number;
  /** What a NUMA node of the machine has of a type of memory, in bytes. */
  readonly totalOn: TotalOn;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Writes the next state durably, more than once where a step takes several states. `isLast`: others
 * may go on as soon as it is, whatever this process does next; it is the last call.
 */
export interface Commit {
  (next: Assignments, isLast?: boolean): Promise<void>;
  /** Why this and every other commit fails at present. */
  readonly refusal?: NumalignError | undefined;
}

/**
 * A damaged state is recovered. `quarantined` names the damaged files, `kept` the grants that are left.
 * @remedy Find the cause: a full disk, a crash.
 */
export interface StateRecovered {
  readonly code: 'STATE_RECOVERED';
  readonly message: string;
  /** File names in quarantine/. */
  readonly quarantined: readonly string[];
  /** The generation of the recovered state. */
  readonly generation: number;
  /** The uids of the grants that are left. */
  readonly kept: readonly string[];
}

/** See {@link Store.part}. */
export interface StatePart {
  /** At the beginning of each transaction: what somebody has removed is written again. */
  rejoin(): void;
  /** The state is not in use any more: what is open in the folder is closed. */
  close(): void;
}

/** What can be read of assignments that are kept. */
export interface StateSource {
  /**
   * `machine`: speaks for the whole machine. `private`: for those who share the folder. `memory`:
   * for this object alone.
   */
  readonly scope: 'machine' | 'private' | 'memory';
  /** For messages. */
  readonly path: string;
  readonly owners: OwnerLookup;
  /** What the rooms keep in memory of the state, as long as anybody here has to do with it. */
  readonly registry: Pick<Registry<StateSource>, 'of'>;
  /**
   * Has `listener` called after everybody's commits and when an owner has ended: within
   * milliseconds, once for several; in a stream of commits once a second, unless it waits in the
   * queue. Answers how to end it.
   */
  watch(listener: Listener, listening?: Listening): () => void;
  /** The newest committed checkpoint, undefined before the first commit. */
  read(): Checkpoint | undefined;
  /** What the file said when it was looked at last, where it was good. */
  readonly found?: GoodState | undefined;
  /** What was damaged and put together again by this store, the latest last. */
  readonly recoveries: readonly StateRecovered[];
}

export interface Store extends StateSource {
  readonly owners: OwnerRegistry;
  readonly waiters: WaitQueue;
  readonly registry: Registry<Store>;
  /**
   * Keeps what is open of the state open, until the answer is called. So does every watch, every
   * transaction, and every grant that this environment owns. Whoever comes later opens it again.
   */
  use(): () => void;
  /**
   * What another room keeps in a folder of its own in the state folder; made at the first call and
   * the same for all callers. `make` gets the folder, where others cannot write this process's
   * files, and its path as this process sees it. Undefined where the state is in no folder.
   */
  part<Part extends StatePart>(
    name: string,
    make: (folder: NativeFolder, path: string) => Part,
  ): Part | undefined;
  /**
   * Has `listener` called when an owner has ended that had grants; of several listeners one. Soon,
   * but not at once: of all processes that hear of it the first should do what is to be done.
   * Answers how to end it. Does not keep the process alive.
   */
  watchOwners(listener: Listener): () => void;
  /**
   * Runs `decide` as one step for all users of the store. A damaged state is put together first;
   * where that or the format stands in the way of any commit, the checkpoint has a `refusal`.
   */
  transact<T>(
    options: TransactOptions,
    decide: (checkpoint: Checkpoint | undefined, commit: Commit) => Promise<T>,
  ): Promise<T>;
  isOfThisBoot(checkpoint: Checkpoint): boolean;
  /** Keeps a copy of a checkpoint of an earlier boot; answers where. */
  archive(checkpoint: Checkpoint): Promise<string>;
}

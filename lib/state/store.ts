// Store: where assignments are kept between admissions. A Ledger is a folder that processes share; a MemoryStore is one process's own.
import type { Assignments, OwnerRecord, PodAssignment } from './assignments.js';
import type { Checkpoint } from './checkpoint.js';
import type { Listener } from './folder-watch.js';
import type { WaitQueue } from './wait-queue.js';

export interface TransactOptions {
  readonly lockTimeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

/** Writes the next state durably; may be called once. `isLast`: others may go on as soon as it is, whatever this process does next. */
export type Commit = (next: Assignments, isLast?: boolean) => Promise<void>;

/** Who owns what, and whether they live. Every member but the questions REQUIRES to be in a transaction. */
export interface OwnerRegistry {
  /** The record of this environment as an owner. */
  ownRecord(): OwnerRecord;
  isOwn(owner: OwnerRecord): boolean;
  /** Descriptor of a lock, for a child that shall keep the grants alive. */
  ownFd(): number | undefined;
  /** Called before the commit that adds a grant. */
  claim(pod: PodAssignment): void;
  /** Called after the commit that removes one. */
  disclaim(pod: PodAssignment): void;
  /** Gives up this environment's share of its only grant; says whether a child still has one. */
  handOver(uid: string): boolean;
  orphans(pods: readonly PodAssignment[]): PodAssignment[];
  isAlive(owner: OwnerRecord): boolean;
  isProcessAlive(uuid: string): boolean;
  deadPods(pods: readonly PodAssignment[]): PodAssignment[];
  /** Forgets dead owners. REQUIRES: a state that names none of them. */
  sweep(): void;
}

export interface Store {
  /** `machine`: speaks for the whole machine. `private`: for those who share the folder. `memory`: for this object alone. */
  readonly scope: 'machine' | 'private' | 'memory';
  /** For messages. */
  readonly path: string;
  readonly owners: OwnerRegistry;
  readonly waiters: WaitQueue;
  /**
   * Has `listener` called after everybody's commits, when somebody stops waiting, and now and then: within milliseconds, once for several. Answers how to end it.
   */
  watch(listener: Listener): () => void;
  /** The newest committed checkpoint, undefined before the first commit. */
  read(): Checkpoint | undefined;
  /** Runs `decide` as one step for all users of the store. */
  transact<T>(
    options: TransactOptions,
    decide: (checkpoint: Checkpoint | undefined, commit: Commit) => Promise<T>,
  ): Promise<T>;
  /** Refuses to begin a new state where an earlier one has left traces. */
  checkUnused(): void;
  isOfThisBoot(checkpoint: Checkpoint): boolean;
  /** Keeps a copy of a checkpoint of an earlier boot; answers where. */
  archive(checkpoint: Checkpoint): Promise<string>;
}

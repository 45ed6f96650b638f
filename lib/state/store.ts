// Store: where numalign keeps assignments between admissions. A Ledger is a folder that processes
// share; a MemoryStore belongs to one process. A StateSource can only be read.
import type { Assignments, MachineSettings } from '../account/assignments.js';
import type { TotalOn } from '../account/booked-memory.js';
import type { Registry } from '../base/collections/registry.js';
import type { NumalignError } from '../base/errors.js';
import type { NativeFolder } from '../base/native-files.js';
import type { CpusetHierarchy } from '../cgroups/cpuset-hierarchy.js';
import type { Listener, Listening } from './files/folder-watch.js';
import type { GoodState } from './files/state-files.js';
import type { AgreedRoot, RootRefusal } from './folder/agreed-root.js';
import type { Checkpoint } from './format/checkpoint.js';
import type { OwnerLookup, OwnerRegistry } from './owners/owners.js';
import type { WaitQueue } from './wait-queue.js';

export interface TransactOptions {
  readonly lockTimeoutMs: number;
  /** The memory of a NUMA node by type, in bytes. */
  readonly totalOn: TotalOn;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Writes the next state durably. A step with several states calls it for each. `isLast`: this is
 * the last call, and others may go on as soon as the commit is durable.
 */
export interface Commit {
  (next: Assignments, isLast?: boolean): Promise<void>;
  /** Why every commit fails at present. */
  readonly refusal?: NumalignError | undefined;
}

/** A step under the lock: gets a fresh checkpoint, and what commits the next state. */
export type Decide<T> = (checkpoint: Checkpoint | undefined, commit: Commit) => Promise<T>;

/**
 * A damaged state is recovered, or files that no owner wrote are put aside. `quarantined` names these
 * files, `kept` the grants that are left.
 * @remedy Find the cause: a full disk, a crash.
 */
export interface StateRecovered {
  /** Identifies the kind of warning; literal and stable. */
  readonly code: 'STATE_RECOVERED';
  /** One sentence for people; the wording may change. */
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
  /** Called at the beginning of each transaction. Writes what was removed again. */
  rejoin(): void;
  /** The state is not in use any more. Closes what is open in the folder. */
  close(): void;
}

/** A state that can be read. */
export interface StateSource {
  /**
   * `machine`: valid for the whole machine. `private`: for the processes that share the folder.
   * `memory`: for this object only.
   */
  readonly scope: 'machine' | 'private' | 'memory';
  /** The path for messages. */
  readonly path: string;
  readonly owners: OwnerLookup;
  /** What the rooms cache about the state, for as long as it is in use here. */
  readonly registry: Pick<Registry<StateSource>, 'of'>;
  /**
   * Calls `listener` within milliseconds after a commit or an owner's end, once for several. In a
   * stream of commits it calls once a second, unless the listener hears of each. Returns a function
   * that ends the watch.
   */
  watch(listener: Listener, listening?: Listening): () => void;
  /** The newest committed checkpoint; undefined before the first commit. */
  read(): Checkpoint | undefined;
  /** The last good state read from the file. */
  readonly found?: GoodState | undefined;
  /** The recoveries by this store, the latest last. */
  readonly recoveries: readonly StateRecovered[];
}

/** What a state uses cgroups for. */
export type Claim = Pick<MachineSettings, 'cgroupRoot' | 'managedCPUs'>;

/** Which state uses a cgroup root, and enforces on its CPUs. */
export interface RootClaims {
  /** Why this state may not use its cgroup root now, and what root can do. */
  refusal(claim: Claim): RootRefusal | undefined;
  /**
   * Makes this state the user of its cgroup root, unless another one has grants there or on these
   * CPUs, or may be about to record one. `hierarchy`: with the root. REQUIRES: the lock of this
   * state, until a grant is on record
   */
  claim(state: Assignments, hierarchy: CpusetHierarchy): void;
}

export interface Store extends StateSource {
  readonly owners: OwnerRegistry;
  readonly waiters: WaitQueue;
  readonly registry: Registry<Store>;
  /** What root has chosen about the state; undefined if it is in no folder. */
  readonly agreedRoot?: AgreedRoot | undefined;
  /** Undefined too then. */
  readonly rootUsers?: RootClaims | undefined;
  /**
   * Keeps the state open until the returned function is called. Every watch, transaction and grant
   * of this environment does so too. A later caller opens the state again.
   */
  use(): () => void;
  /**
   * The data of another room in its own folder inside the state folder. Made at the first call;
   * later callers get the same. `make` gets the folder, in which others cannot write this process's
   * files, and its path as this process sees it. Undefined if the state is in no folder.
   */
  part<Part extends StatePart>(
    name: string,
    make: (folder: NativeFolder, path: string) => Part,
  ): Part | undefined;
  /**
   * Calls one listener after the end of an owner with grants. Waits a random short time, so that
   * one of all processes acts first. `onHarm` is called if other programs removed or changed files
   * of the state while this environment held grants. Returns a function that ends the watch. Does
   * not keep the process alive.
   */
  watchOwners(listener: Listener, onHarm?: (error: Error) => void): () => void;
  /**
   * Runs `decide` as one step for all users of the store. Recovers a damaged state first. The
   * checkpoint has a `refusal` if damage or a newer format prevents commits.
   */
  transact<T>(options: TransactOptions, decide: Decide<T>): Promise<T>;
  /**
   * Calls `action` at once with what is on record, if that can be changed, under the lock. False if
   * the lock is not free.
   */
  atOnce?(action: (checkpoint: Checkpoint) => void): boolean;
  isOfThisBoot(checkpoint: Checkpoint): boolean;
  /** Saves a copy of a checkpoint of an earlier boot. Returns its name. */
  archive(checkpoint: Checkpoint): Promise<string>;
}

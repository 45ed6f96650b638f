// The events of a grant's moves, for its owner: before a move, which the owner may delay or refuse,
// and after it.
import { EventEmitter } from 'node:events';
import type { PinResult } from '../machine/affinity.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Store } from '../state/store.js';
import type { MemoryMigration } from '../threads/memory.js';

/** The grant is about to move, see {@link GrantEvents} and docs/grants.md. */
export interface MoveEvent {
  /** The uid of the grant. */
  readonly uid: string;
  /** The CPUs before the move. */
  readonly before: CpuSet;
  /** The CPUs after the move. */
  readonly cpus: CpuSet;
  /** The NUMA nodes of `cpus`. */
  readonly nodes: NodeSet;
  /** The NUMA nodes of its memory after the move. */
  readonly memoryNodes: NodeSet;
  /** The uid of the request that gets the room. */
  readonly for: string;
  /**
   * When all promises of {@link waitUntil} must have settled; otherwise the grant does not move.
   */
  readonly deadline: Date;
  /** Aborts if the grant stays: it refuses, does not answer in time, or the move is called off. */
  readonly signal: AbortSignal;
  /**
   * Delays the move until the promise is fulfilled. If it is rejected, the grant does not move. The
   * promise of an asynchronous listener counts, too. Call it in the listener, or while another
   * promise is pending.
   * @throws ERR_INVALID_ARGUMENT later
   */
  waitUntil(promise: PromiseLike<unknown>): void;
}

/** How a move ended. */
export interface MoveEnd {
  /** The uid of the grant. */
  readonly uid: string;
  /** True if the grant has moved. */
  readonly isMoved: boolean;
  /** The CPUs now. */
  readonly cpus: CpuSet;
  /** The NUMA nodes of `cpus`. */
  readonly nodes: NodeSet;
  /** The NUMA nodes of its memory now. */
  readonly memoryNodes: NodeSet;
  /** What became of the threads of this process; null without a move. */
  readonly threads: PinResult | null;
  /** What became of the pages; null if there were none to move. */
  readonly memory: MemoryMigration | null;
  /** Why the grant did not move; else null. */
  readonly error: Error | null;
}

/** A grant grew or shrank by itself. */
export interface ResizeEvent {
  /** The uid of the grant. */
  readonly uid: string;
  /** The CPUs that it had. */
  readonly before: CpuSet;
  /** The CPUs that it has now. */
  readonly cpus: CpuSet;
  /** The NUMA nodes of `cpus`. */
  readonly nodes: NodeSet;
  /** What became of the threads of this process. */
  readonly threads: PinResult;
  /** The uid of the request that gets the CPUs; null if the grant grew. */
  readonly for: string | null;
}

/**
 * The events of a {@link Grant}, in the process that owns it. What a listener throws is an uncaught
 * exception, except for `move`, where it refuses; all others are called.
 */
export interface GrantEvents {
  /** Before it moves to make room for another request. */
  move: [event: MoveEvent];
  /** After a `move`: it has moved, or stays, or was released meanwhile. */
  moveEnd: [end: MoveEnd];
  /** After it grew or shrank by itself. */
  resize: [event: ResizeEvent];
}

export type GrantListener<Event extends keyof GrantEvents> = (...args: GrantEvents[Event]) => unknown;

export type GrantEmitter = EventEmitter<GrantEvents>;

// By the grant's id: a grant may have several objects.
const emitters = () => new Map<string, GrantEmitter>();

/** The events of a grant. */
export function emitterOf({ registry }: Pick<Store, 'registry'>, uid: string): GrantEmitter {
  const all = registry.of(emitters);
  const present = all.get(uid);
  if (present) return present;
  const emitter: GrantEmitter = new EventEmitter();
  all.set(uid, emitter);
  return emitter;
}

/** The events of a grant, if it ever had a listener. */
export const emitterIfAny = ({ registry }: Pick<Store, 'registry'>, uid: string): GrantEmitter | undefined =>
  registry.of(emitters).get(uid);

/** Drops the listeners of a grant that has ended, or belongs to another process now. */
export function dropListeners({ registry }: Pick<Store, 'registry'>, uid: string): void {
  registry.of(emitters).delete(uid);
}

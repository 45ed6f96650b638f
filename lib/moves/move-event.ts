// What the owner of a grant hears of its moves: before one, which it may put off or refuse, and after.
import { EventEmitter } from 'node:events';
import type { PinResult } from '../machine/affinity.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { Store } from '../state/store.js';
import type { MemoryMigration } from '../threads/memory.js';

/** A grant is about to move; see {@link GrantEvents}. */
export interface MoveEvent {
  readonly uid: string;
  /** What it runs on until then. */
  readonly before: CpuSet;
  /** What it will run on. */
  readonly cpus: CpuSet;
  /** Their NUMA nodes. */
  readonly nodes: NodeSet;
  /** Where its memory will be. */
  readonly memoryNodes: NodeSet;
  /** The uid of the request that gets the room. */
  readonly for: string;
  /** By then what {@link waitUntil} has been given must have settled, or the grant does not move. */
  readonly deadline: Date;
  /** Aborted once the grant does not move: refused, not answered in time, or called off. */
  readonly signal: AbortSignal;
  /**
   * The move waits until the promise is fulfilled; where it is rejected, the grant stays where it is.
   * So it does with the promise of an asynchronous listener. To be called by the listener, or while
   * something is waited for.
   * @throws ERR_INVALID_ARGUMENT later
   */
  waitUntil(promise: PromiseLike<unknown>): void;
}

/** How a move that was told of has ended. */
export interface MoveEnd {
  readonly uid: string;
  /** False: the grant is where it was. */
  readonly isMoved: boolean;
  /** As they are now. */
  readonly cpus: CpuSet;
  readonly nodes: NodeSet;
  readonly memoryNodes: NodeSet;
  /** What became of the threads of this process; null where it has not moved. */
  readonly threads: PinResult | null;
  /** What became of pages; null where there were none to move. */
  readonly memory: MemoryMigration | null;
  /** Why it has not moved; else null. */
  readonly error: Error | null;
}

/** A grant has grown or shrunk by itself. */
export interface ResizeEvent {
  readonly uid: string;
  /** What it ran on until now. */
  readonly before: CpuSet;
  /** As they are now. */
  readonly cpus: CpuSet;
  /** Their NUMA nodes. */
  readonly nodes: NodeSet;
  /** What became of the threads of this process. */
  readonly threads: PinResult;
  /** The uid of the request that gets what it has given up; null: it has grown. */
  readonly for: string | null;
}

/** Events of a {@link Grant}, by name. */
export interface GrantEvents {
  /** Before it moves. Told in the process that owns it. */
  move: [event: MoveEvent];
  /** After a `move`: it has moved, or does not. */
  moveEnd: [end: MoveEnd];
  /** After it has grown or shrunk by itself. Told in the process that owns it. */
  resize: [event: ResizeEvent];
}

export type GrantListener<Event extends keyof GrantEvents> = (...args: GrantEvents[Event]) => unknown;

export type GrantEmitter = EventEmitter<GrantEvents>;

// By the grant's id: whichever object of it is listened to.
const emitters = () => new Map<string, GrantEmitter>();

/** The events of a grant. */
export function emitterOf({ registry }: Pick<Store, 'registry'>, uid: string): GrantEmitter {
  const all = registry.of(emitters);
  const known = all.get(uid);
  if (known) return known;
  const emitter: GrantEmitter = new EventEmitter();
  all.set(uid, emitter);
  return emitter;
}

/** The grant has ended, or is another process's: nothing more is told of it. */
export function dropListeners({ registry }: Pick<Store, 'registry'>, uid: string): void {
  registry.of(emitters).delete(uid);
}

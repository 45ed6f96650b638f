// ClusterEmitter: the events of a cluster whose workers have grants.
import type { Address, ClusterSettings } from 'node:cluster';
import type { Server, Socket } from 'node:net';
import type { GrantedWorker } from './granted-worker.js';

/** The arguments of listeners, by event, like in node:cluster. */
export interface ClusterEvents {
  disconnect: [worker: GrantedWorker];
  exit: [worker: GrantedWorker, code: number, signal: string];
  fork: [worker: GrantedWorker];
  listening: [worker: GrantedWorker, address: Address];
  message: [worker: GrantedWorker, message: unknown, handle: Socket | Server];
  online: [worker: GrantedWorker];
  setup: [settings: ClusterSettings];
}

type Emitter = NodeJS.EventEmitter;
type Event = keyof ClusterEvents;
type Listener<E extends Event> = (...args: ClusterEvents[E]) => void;

export interface ClusterEmitter extends Emitter {
  /**
   * As in `node:cluster`: `disconnect`, `exit`, `fork`, `listening`, `message`, `online`, `setup`.
   */
  on<E extends Event>(event: E, listener: Listener<E>): this;
  on(...args: Parameters<Emitter['on']>): this;
  /** As in `node:cluster`. */
  once<E extends Event>(event: E, listener: Listener<E>): this;
  once(...args: Parameters<Emitter['once']>): this;
  /** As in `node:cluster`. */
  addListener<E extends Event>(event: E, listener: Listener<E>): this;
  addListener(...args: Parameters<Emitter['addListener']>): this;
  /** As in `node:cluster`. */
  prependListener<E extends Event>(event: E, listener: Listener<E>): this;
  prependListener(...args: Parameters<Emitter['prependListener']>): this;
  /** As in `node:cluster`. */
  prependOnceListener<E extends Event>(event: E, listener: Listener<E>): this;
  prependOnceListener(...args: Parameters<Emitter['prependOnceListener']>): this;
}

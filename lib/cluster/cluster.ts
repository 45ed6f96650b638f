// Cluster: node:cluster with a primary that forks workers onto their own CPUs.
import type { Address, ClusterSettings, Cluster as NodeCluster, Worker } from 'node:cluster';
import type { Server, Socket } from 'node:net';
import type { ForkOptions } from './fork-options.js';
import type { GrantedWorker } from './granted-worker.js';
import { Primary, type PrimarySettings } from './primary.js';
import type { Replacement, RestartOptions } from './rolling-restart.js';

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

type Replaced = 'fork' | 'setupPrimary' | 'setupMaster' | 'workers' | keyof NodeJS.EventEmitter;

/**
 * The module `node:cluster` with these members. Every other member is the one of `node:cluster`; in
 * a worker all are. See docs/cluster.md.
 */
export interface Cluster extends Omit<NodeCluster, Replaced>, ClusterEmitter {
  /** The living workers by id. A worker that `node:cluster` itself forked has no `grant`. */
  readonly workers?: NodeJS.Dict<GrantedWorker>;
  /** The class of workers of `node:cluster`. */
  readonly Worker: typeof Worker;
  /**
   * Acquires CPUs and forks a worker that runs on them from its first instruction, with its
   * {@link GrantedWorker.grant}. A worker that dies is forked again on the same CPUs. They are released
   * when it ends for good: after `disconnect()`, `kill()` or exit code 0. In an `exit` listener of
   * a worker that is forked again, it resolves with that next worker.
   * @throws ERR_INVALID_OPTION; as {@link openManager}, {@link Manager.acquire} and
   *   {@link Grant.spawn}; what `node:cluster` throws; the kernel's error if it starts no process;
   *   ERR_WORKER_START in an `exit` listener that no next worker follows. There is no worker and no
   *   grant then
   */
  fork(options?: ForkOptions): Promise<GrantedWorker>;
  /** As in `node:cluster`. `manager` applies to workers that are forked later. */
  setupPrimary(settings?: PrimarySettings): void;
  /** @deprecated Use {@link setupPrimary}. */
  setupMaster(settings?: PrimarySettings): void;
  /**
   * Replaces the workers one by one. If there are CPUs for both, the new worker serves before the
   * old one is told to disconnect; else it starts after the old one has ended, on its CPUs. A
   * listening worker is replaced by a listening one. Calls run one after the other.
   * @throws ERR_WORKER_START if a new worker does not serve in time: it is ended if there were CPUs
   *   for both, and the old one goes on; ERR_INVALID_OPTION; as {@link fork}; the signal's reason
   */
  restart(options?: RestartOptions): Promise<Replacement[]>;
}

/** The cluster of this process. */
export function clusterOf(cluster: NodeCluster): Cluster {
  if (cluster.isWorker) return cluster as unknown as Cluster;
  const { fork, setupPrimary, disconnect, restart } = new Primary(cluster);
  const overrides: Partial<Cluster> = { fork, setupPrimary, setupMaster: setupPrimary, disconnect, restart };
  // All else belongs to node:cluster, including properties that are set and listeners.
  return new Proxy(cluster, {
    get: (target, name) => Reflect.get(Object.hasOwn(overrides, name) ? overrides : target, name),
    has: (target, name) => Object.hasOwn(overrides, name) || Reflect.has(target, name),
  }) as unknown as Cluster;
}

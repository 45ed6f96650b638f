// Cluster: node:cluster with a primary that forks workers onto their own CPUs.
import type { Cluster as NodeCluster, Worker } from 'node:cluster';
import type { ClusterEmitter } from './cluster-emitter.js';
import type { ForkOptions } from './fork-options.js';
import type { GrantedWorker } from './granted-worker.js';
import { Primary, type PrimarySettings } from './primary.js';
import type { Replacement, RestartOptions } from './rolling-restart.js';

type Replaced = 'fork' | 'setupPrimary' | 'setupMaster' | 'workers' | keyof NodeJS.EventEmitter;

/** Like node:cluster, which provides all other members. In a worker it is node:cluster itself. */
export interface Cluster extends Omit<NodeCluster, Replaced>, ClusterEmitter {
  /** The living workers, by id. A worker that node:cluster forked has no `grant`. */
  readonly workers?: NodeJS.Dict<GrantedWorker>;
  readonly Worker: typeof Worker;
  /**
   * Acquires CPUs and forks a worker that runs on them from its first instruction (see
   * {@link Grant.spawn}), and has {@link GrantedWorker.grant}. A worker that dies is forked again
   * on the same CPUs. The CPUs are released when it ends for good: after `disconnect()`, `kill()`
   * or the exit code 0. A listener of `exit` that calls this for a worker to be forked again gets
   * that next worker, not a second one.
   * @throws ERR_INVALID_OPTION; like {@link openManager}, {@link Manager.acquire} and
   *   {@link Grant.spawn}; what node:cluster throws; the kernel's error if it starts no process.
   *   Then there is no worker and no grant.
   */
  fork(options?: ForkOptions): Promise<GrantedWorker>;
  /** Like in node:cluster; `manager` applies to workers that are forked from then on. */
  setupPrimary(settings?: PrimarySettings): void;
  /** @deprecated As in node:cluster: use {@link setupPrimary}. */
  setupMaster(settings?: PrimarySettings): void;
  /**
   * Replaces the workers one by one. If there are CPUs for both, the new worker serves before the
   * old one is told to disconnect; otherwise it gets the CPUs of the old one once that has ended. A
   * worker that listens is replaced by one that listens. Calls run one after the other.
   * @throws ERR_WORKER_START if a new worker does not serve in time: if there were CPUs for both,
   *   it is ended and the old one goes on; ERR_INVALID_OPTION; like {@link fork}; the signal's
   *   reason
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

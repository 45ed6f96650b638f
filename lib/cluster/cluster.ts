// Cluster: node:cluster, whose primary forks workers onto CPUs of their own.
import type { Cluster as NodeCluster, Worker } from 'node:cluster';
import type { ClusterEmitter } from './cluster-emitter.js';
import type { ForkOptions } from './fork-options.js';
import type { GrantedWorker } from './granted-worker.js';
import { Primary, type PrimarySettings } from './primary.js';
import type { Replacement, RestartOptions } from './rolling-restart.js';

type Replaced = 'fork' | 'setupPrimary' | 'setupMaster' | 'workers' | keyof NodeJS.EventEmitter;

/** As node:cluster, of which every other member is. In a worker it is node:cluster itself. */
export interface Cluster extends Omit<NodeCluster, Replaced>, ClusterEmitter {
  /** Those that live, by their ids. A worker that was forked by node:cluster has no `grant`. */
  readonly workers?: NodeJS.Dict<GrantedWorker>;
  readonly Worker: typeof Worker;
  /**
   * Acquires CPUs and forks a worker on them: it is there from its first instruction (see
   * {@link Grant.spawn}), and has {@link GrantedWorker.grant}. Should it die, it is forked again, on
   * the same CPUs. They are given back when it ends for good: after `disconnect()`, `kill()` or the
   * exit code 0. In a listener of `exit` of a worker that is forked again it answers that next
   * worker, and forks no second one.
   * @throws ERR_INVALID_OPTION; as {@link openManager}, {@link Manager.acquire} and
   *   {@link Grant.spawn}; what node:cluster throws; the kernel's error where it starts no process.
   *   No worker is there then, and no grant.
   */
  fork(options?: ForkOptions): Promise<GrantedWorker>;
  /** As of node:cluster; `manager` counts for workers that are forked from then on. */
  setupPrimary(settings?: PrimarySettings): void;
  /** @deprecated As of node:cluster: {@link setupPrimary}. */
  setupMaster(settings?: PrimarySettings): void;
  /**
   * Replaces the workers one by one, each by a new one that serves before the old one is told to
   * disconnect, where there are CPUs for both; else by one that gets its CPUs once it has ended. A
   * worker that listens is replaced by one that listens. Calls run one after the other.
   * @throws ERR_WORKER_START where a new one does not serve in time: where there were CPUs for both
   *   it is ended, and the old one goes on; ERR_INVALID_OPTION; as {@link fork}; the signal's reason
   */
  restart(options?: RestartOptions): Promise<Replacement[]>;
}

/** The cluster of this process. */
export function clusterOf(cluster: NodeCluster): Cluster {
  if (cluster.isWorker) return cluster as unknown as Cluster;
  const { fork, setupPrimary, disconnect, restart } = new Primary(cluster);
  const own: Partial<Cluster> = { fork, setupPrimary, setupMaster: setupPrimary, disconnect, restart };
  // All else, what is set and who listens too, is node:cluster's.
  return new Proxy(cluster, {
    get: (target, name) => Reflect.get(Object.hasOwn(own, name) ? own : target, name),
    has: (target, name) => Object.hasOwn(own, name) || Reflect.has(target, name),
  }) as unknown as Cluster;
}

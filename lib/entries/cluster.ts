// numalign/cluster: `node:cluster` whose primary forks each worker onto CPUs of its own. The default
// export is the whole module; every member that is not described here is the one of `node:cluster`.
import type { Cluster as NodeCluster } from 'node:cluster';
import { clusterOf } from '../cluster/cluster.js';

export type { Cluster } from '../cluster/cluster.js';
export type { ForkOptions, RespawnOptions } from '../cluster/fork-options.js';
export type { GrantedWorker } from '../cluster/granted-worker.js';
export type { PrimarySettings } from '../cluster/primary.js';
export type { Replacement, RestartOptions } from '../cluster/rolling-restart.js';

/** The default export, for `require()`. */
export const cluster = clusterOf(process.getBuiltinModule('node:cluster') as unknown as NodeCluster);

export default cluster;
// The same as those of node:cluster when it was loaded.
export const {
  disconnect,
  fork,
  isMaster,
  isPrimary,
  isWorker,
  restart,
  SCHED_NONE,
  SCHED_RR,
  schedulingPolicy,
  settings,
  setupMaster,
  setupPrimary,
  Worker,
  workers,
} = cluster;

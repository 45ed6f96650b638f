// GrantedWorker: a worker of node:cluster, and the grant that it runs on.
import type { ChildProcess, ForkOptions } from 'node:child_process';
import type { Cluster as NodeCluster, Worker } from 'node:cluster';
import type { NumalignError } from '../base/errors.js';
import { forkStreams, type Inheritance } from '../children/spawn.js';
import type { Grant } from '../grants/grant.js';
import type { Manager } from '../managers/manager.js';
import type { WorkerPlan } from './fork-options.js';

/** A worker with its grant. */
export interface GrantedWorker extends Worker {
  /** The grant of the worker; null in the shared pool. */
  readonly grant: Grant | null;
  /** Why the worker has no grant, such as an {@link AdmissionError}; null with a grant. */
  readonly refusal: NumalignError | null;
}

/** What a worker will run on. */
export type WorkerGrant =
  | { readonly grant: Grant; readonly refusal: null }
  | { readonly grant: null; readonly refusal: NumalignError; readonly manager: Manager | undefined };

type Variables = WorkerPlan['env'];

// A worker without a grant must not take the grant of its primary for its own, and must not acquire
// one by an inherited numalign/preload.
const NO_VARIABLES: Variables = {
  NUMALIGN_GRANT: '',
  NUMALIGN_CPUS: undefined,
  NUMALIGN_NODES: undefined,
  NUMALIGN_DEVICES: undefined,
  NUMALIGN_STATE_DIR: undefined,
  NUMALIGN_PRELOAD_PID: '',
};

/**
 * Forks a worker onto the CPUs of its grant. `forked` is called at once, before any event of the worker.
 * @throws like {@link Grant.startChild}, {@link Manager.startChild}
 */
export async function forkWorker(
  cluster: NodeCluster,
  env: Variables,
  granted: WorkerGrant,
  forked: (worker: GrantedWorker) => void,
): Promise<void> {
  const start = (variables: Variables, ownerFd?: number) => {
    const worker = fork(cluster, { ...env, ...variables }, ownerFd) as GrantedWorker;
    const { grant, refusal } = granted;
    Object.defineProperties(worker, { grant: { value: grant }, refusal: { value: refusal } });
    forked(worker);
    return worker.process;
  };
  if (granted.grant)
    granted.grant.startChild(({ variables, ownerFd }: Inheritance) => start({ ...variables }, ownerFd));
  else await startShared(granted.manager, () => start(NO_VARIABLES));
}

// If it cannot be registered, the worker starts like any child.
async function startShared(manager: Manager | undefined, start: () => ChildProcess): Promise<void> {
  let isStarted = false;
  const startOnce = () => {
    isStarted = true;
    return start();
  };
  try {
    await manager?.startChild(startOnce);
  } catch (error) {
    if (isStarted) throw error;
  }
  if (!isStarted) start();
}

// A worker inherits the lock of the grant's owner, so it keeps its CPUs if the primary is killed.
// Only the settings determine what is inherited. They must stay the caller's, since `setup` is
// emitted later.
function fork(cluster: NodeCluster, env: Variables, ownerFd: number | undefined): Worker {
  if (ownerFd === undefined) return cluster.fork(env);
  const before = cluster.settings;
  const { stdio } = before;
  before.stdio = forkStreams(before as ForkOptions, ownerFd);
  try {
    return cluster.fork(env);
  } finally {
    // The settings may be a copy by now.
    for (const settings of [before, cluster.settings]) {
      if (stdio === undefined) delete settings.stdio;
      else settings.stdio = stdio;
    }
  }
}

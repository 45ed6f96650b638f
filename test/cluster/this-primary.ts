// This process as the primary of a cluster, in a state folder of the test.
import type { Worker } from 'node:cluster';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Cluster, ForkOptions, GrantedWorker } from '../../lib/entries/cluster.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { type Manager, openManager, pin } from '../../lib/index.js';
import { makeStateDir } from '../support/state-dir.js';

// By Node itself: vitest writes what a module exports onto its default.
export const required = createRequire(import.meta.url)('../../dist-test/lib/entries/cluster.js') as object & {
  readonly cluster: Cluster;
};
export const { cluster } = required;

export const EXEC = fileURLToPath(new URL('worker.mjs', import.meta.url));
export const ALL = affinity();

/** A worker's report in its first line. */
export interface FirstLine {
  readonly cpus: string;
  readonly grant?: string;
  readonly granted?: string;
  readonly mark?: string;
}

const isAlive = (worker: Worker | undefined) => worker?.process.pid !== undefined && !worker.isDead();

/** A manager of a folder of its own, which gives the workers their CPUs; they end with the test. */
export async function setUp(): Promise<Manager> {
  const manager = await openManager({ stateDir: makeStateDir() });
  cluster.setupPrimary({ manager, exec: EXEC, args: [], silent: false });
  onTestFinished(async () => {
    const living = Object.values(cluster.workers!).filter(isAlive) as GrantedWorker[];
    // Not once() of node:events: it rejects if a dead worker cannot get its command to end.
    const ends = living.map((worker) => new Promise((resolve) => worker.process.once('exit', resolve)));
    cluster.disconnect();
    for (const worker of living) worker.process.kill('SIGKILL');
    await Promise.all(ends);
    manager.close();
    // Its confinement is not its own choice.
    pin(ALL);
  });
  return manager;
}

/** Forks a worker, and returns it with its first line. */
export async function fork(options: ForkOptions = {}) {
  const worker = await cluster.fork(options);
  return { worker, line: await firstLine(worker) };
}

export async function firstLine(worker: Worker): Promise<FirstLine> {
  const [line] = await once(worker, 'message');
  return line as FirstLine;
}

/** The next worker that is forked. */
export async function nextWorker(): Promise<GrantedWorker> {
  const [worker] = await once(cluster, 'fork');
  return worker as GrantedWorker;
}

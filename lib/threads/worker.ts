// Workers that begin on the CPUs of a grant.
import type { Worker, WorkerOptions } from 'node:worker_threads';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { CpuSet } from '../machine/cpu-set.js';
import { bornOn } from './birth.js';
import { cpusWithin, type GrantedThreads, type ThreadPlace } from './granted-threads.js';
import { parsePlace, SHARED, type ThreadCpus } from './placement.js';
import { realTimeCpus } from './scheduling.js';

/** The options of {@link Grant.worker}. */
export interface GrantWorkerOptions extends WorkerOptions {
  /**
   * The part of the grant that the Worker runs on.
   * @default the CPUs that no part has
   */
  part?: string;
  /**
   * CPUs of the grant, or of its `part`. On isolated CPUs the Worker gets one of them.
   * @default where {@link Grant.placeThreads} puts Workers, else all of them
   */
  cpus?: CpuSet | string;
}

/** Where a Worker will begin. */
export type WorkerStart = ReturnType<typeof workerStartOn>;

/**
 * The CPUs of a place on which the next Worker begins. `target`: the grant, or its part, that it
 * belongs to.
 * @throws ERR_SCHEDULING if it would starve under real-time threads
 */
export function workerStartOn(grant: GrantedThreads, place: ThreadPlace) {
  const target = place.part === grant.part ? grant : grant.onPart(place.part);
  const cpus = place.oneEach ? CpuSet.of(native.leastUsedCpu(place.cpus.words)) : place.cpus;
  const realTime = realTimeCpus();
  if (cpus.isSubsetOf(realTime)) {
    throw new NumalignError(
      'ERR_SCHEDULING',
      `a Worker on CPUs ${cpus} would starve: all of them have a real-time thread (${realTime})`,
      { value: cpus.toString(), valid: `also CPUs other than ${realTime}` },
    );
  }
  target.learnAskedMasks();
  return { target, cpus };
}

/** Records a Worker that began there. `tid`: 0 if unknown. */
export function adoptWorker({ target }: WorkerStart, worker: Worker, tid: number): void {
  native.adopt(tid, target.cpus.words, target.grant, target.part, target.owner);
  if (tid !== 0) worker.once('exit', () => native.forgetThread(tid));
}

/**
 * `cpus`: where Workers were put before. A Worker for the shared pool leaves the grant right
 * after its birth.
 */
export function startWorker(
  grant: GrantedThreads,
  cpus: ThreadCpus | undefined,
  filename: string | URL,
  options: GrantWorkerOptions,
): Worker {
  const { part, cpus: cpuOption, ...workerOptions } = options;
  const target = part === undefined ? grant : grant.onPart(part);
  const isAnywhere = part === undefined && cpuOption === undefined;
  const isShared = isAnywhere && cpus === SHARED;
  const place =
    isAnywhere && !isShared
      ? placeOf(grant, cpus)
      : { part: target.part, cpus: cpusWithin(target, 'cpus', cpuOption), oneEach: target.oneToOne };
  const start = workerStartOn(grant, place);
  const { value: worker, tid } = bornOn(
    start.target,
    start.cpus,
    () => new (process.getBuiltinModule('node:worker_threads').Worker)(filename, workerOptions),
  );
  adoptWorker(start, worker, tid);
  // On the grant it disturbs no other process, so it may stay if it cannot leave.
  if (isShared && tid !== 0) grant.share?.([tid]).catch(() => {});
  return worker;
}

// The grant may have other CPUs by now.
const placeOf = (target: GrantedThreads, cpus: ThreadCpus | undefined): ThreadPlace =>
  unlessRefused(() => parsePlace(target, 'workers', cpus)) ?? parsePlace(target, 'workers', undefined);

// Workers that are born on the CPUs of a grant.
import { Worker, type WorkerOptions } from 'node:worker_threads';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { CpuSet } from '../machine/cpu-set.js';
import { cpusWithin, type GrantedThreads } from './granted-threads.js';
import { preferring } from './memory.js';
import { parsePlace, type ThreadCpus } from './placement.js';
import { realTimeCpus } from './scheduling.js';

export interface GrantWorkerOptions extends WorkerOptions {
  /** Of the grant, for this Worker; default: what no part has. */
  part?: string;
  /**
   * Where it runs: CPUs of the grant, or of its part; default: where {@link Grant.placeThreads} has
   * put the Workers, else all of them. Of isolated CPUs it gets one.
   */
  cpus?: CpuSet | string;
}

/** `placed`: where Workers were put before. */
export function startWorker(
  grant: GrantedThreads,
  placed: ThreadCpus | undefined,
  filename: string | URL,
  options: GrantWorkerOptions,
): Worker {
  const { part, cpus: asked, ...workerOptions } = options;
  const chosen = part === undefined ? grant : grant.onPart(part);
  const place =
    part === undefined && asked === undefined
      ? placeOf(grant, placed)
      : { part: chosen.part, cpus: cpusWithin(chosen, 'cpus', asked), oneEach: chosen.oneToOne };
  const target = place.part === '' ? grant : grant.onPart(place.part);
  const cpus = place.oneEach ? CpuSet.of(native.leastUsedCpu(place.cpus.words)) : place.cpus;
  const taken = realTimeCpus();
  if (cpus.isSubsetOf(taken)) {
    throw new NumalignError(
      'ERR_SCHEDULING',
      `a Worker on CPUs ${cpus} would starve: all of them have a real-time thread (${taken})`,
      { value: cpus.toString(), valid: `also CPUs other than ${taken}` },
    );
  }
  // A thread is born with the mask and the memory policy of the one that starts it.
  target.learnChoices();
  const start = () => native.bornOn(cpus.words, () => new Worker(filename, workerOptions));
  const startHere = () => target.group?.startInside(start) ?? start();
  const { value: worker, tid } = preferring(target.memoryNodes, startHere);
  native.adopt(tid, target.cpus.words, target.grant, target.part, target.owner);
  if (tid !== 0) worker.once('exit', () => native.forgetThread(tid));
  return worker;
}

// The grant may have other CPUs since.
function placeOf(target: GrantedThreads, placed: ThreadCpus | undefined) {
  try {
    return parsePlace(target, 'workers', placed);
  } catch (error) {
    if (error instanceof NumalignError) return parsePlace(target, 'workers', undefined);
    throw error;
  }
}

// Sees every Worker that this thread constructs, in any package: right before its thread is started,
// and right after.
//
// A Worker's constructor clones the environment data of node:worker_threads before it starts the
// thread, and so reads a getter in there. Before it returns, it publishes the Worker on the
// diagnostics channel `worker_threads`. Both are interfaces of Node's, and nothing is replaced.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setEnvironmentData, type Worker } from 'node:worker_threads';
import { isBirthOpen } from '../births/birth.js';

const KEY = 'numalign.birth';
const CHANNEL = 'worker_threads';

/** Gets the births. It must not throw: the error would be that of `new Worker`. */
export interface Witness {
  /** Whether births are none of its business now. Where that is for good, it ends its watch. */
  isOver(): boolean;
  /**
   * A Worker's thread is about to be started. The answer is called once it has been, without a
   * Worker where that has failed.
   */
  expect(): Delivery;
  /** A Worker has been started that was not expected. */
  miss(worker: Worker): void;
}

export type Delivery = (worker: Worker | undefined) => void;

// Of this environment, the one that came last sees the births.
const witnesses: Witness[] = [];
let delivery: Delivery | undefined;

const currentWitness = () => [...witnesses].findLast((witness) => !witness.isOver());

function deliver(worker: Worker | undefined): void {
  const ready = delivery;
  delivery = undefined;
  ready?.(worker);
}

function expectWorker(): null {
  // A birth on a grant, which sees to its own.
  if (isBirthOpen()) return null;
  deliver(undefined);
  const ready = currentWitness()?.expect();
  delivery = ready;
  // A constructor that fails publishes nothing.
  process.nextTick(() => {
    if (delivery === ready) deliver(undefined);
  });
  return null;
}

function publish(message: unknown): void {
  const { worker } = message as { worker: Worker };
  if (isBirthOpen()) return;
  if (delivery) deliver(worker);
  else currentWitness()?.miss(worker);
}

/** From now on until {@link unwatchBirths}. */
export function watchBirths(witness: Witness): void {
  if (witnesses.push(witness) > 1) return;
  setEnvironmentData(KEY, {
    get thread() {
      return expectWorker();
    },
  });
  subscribe(CHANNEL, publish);
}

export const isWatching = (witness: Witness) => witnesses.includes(witness);

/** Does nothing where it does not watch. */
export function unwatchBirths(witness: Witness): void {
  const at = witnesses.indexOf(witness);
  if (at === -1) return;
  witnesses.splice(at, 1);
  if (witnesses.length > 0) return;
  setEnvironmentData(KEY);
  unsubscribe(CHANNEL, publish);
}

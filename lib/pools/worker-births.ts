// Sees every Worker that this thread constructs, in any package: right before its thread starts,
// and right after.
// A Worker's constructor clones the environment data of node:worker_threads before it starts the
// thread, which calls a getter in that data. Before it returns, it publishes the Worker on the
// diagnostics channel `worker_threads`. Both are interfaces of Node; nothing is replaced.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Worker } from 'node:worker_threads';
import { isBirthOpen } from '../threads/birth.js';

const KEY = 'numalign.birth';
const CHANNEL = 'worker_threads';

/** Is notified of births. It must not throw: `new Worker` would throw that error. */
export interface BirthListener {
  /** Whether the listener ignores births now. If this is final, it ends its watch. */
  isOver(): boolean;
  /**
   * A Worker's thread is about to start. The returned function is called after the start, without a
   * Worker if that failed.
   */
  expect(): Delivery;
  /** A Worker has started without {@link BirthListener.expect}. */
  miss(worker: Worker): void;
}

export type Delivery = (worker: Worker | undefined) => void;

// The latest listener of this environment sees the births.
const listeners: BirthListener[] = [];
let delivery: Delivery | undefined;

const currentListener = () => [...listeners].findLast((listener) => !listener.isOver());

function deliver(worker: Worker | undefined): void {
  const ready = delivery;
  delivery = undefined;
  ready?.(worker);
}

function expectWorker(): null {
  // A birth on a grant takes care of itself.
  if (isBirthOpen()) return null;
  deliver(undefined);
  const ready = currentListener()?.expect();
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
  else currentListener()?.miss(worker);
}

/** Watches births until {@link unwatchBirths}. */
export function watchBirths(listener: BirthListener): void {
  if (listeners.push(listener) > 1) return;
  process.getBuiltinModule('node:worker_threads').setEnvironmentData(KEY, {
    get thread() {
      return expectWorker();
    },
  });
  subscribe(CHANNEL, publish);
}

export const isWatching = (listener: BirthListener) => listeners.includes(listener);

/** Does nothing if the listener does not watch. */
export function unwatchBirths(listener: BirthListener): void {
  const at = listeners.indexOf(listener);
  if (at === -1) return;
  listeners.splice(at, 1);
  if (listeners.length > 0) return;
  process.getBuiltinModule('node:worker_threads').setEnvironmentData(KEY);
  unsubscribe(CHANNEL, publish);
}

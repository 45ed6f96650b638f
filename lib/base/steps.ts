// Steps: long work in parts, and many calls in a row, with turns of the event loop in between.
import { setImmediate } from 'node:timers';

/** Work that can pause at each yield, and its result. */
export type Steps<T> = Generator<void, T, void>;

// How long a part may keep the event loop waiting.
const SLICE_MS = 1;
// How long calls in a row may keep it waiting.
const CALLS_S = 0.004;

/** After the next turn of the event loop. That of node:timers/promises takes a module of Node more. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Does the work without a pause. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Does the work with a turn of the event loop about every millisecond. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let begin = process.hrtime.bigint(); ; ) {
    const { done, value } = steps.next();
    if (done) return value;
    if (process.hrtime.bigint() - begin < SLICE_MS * 1e6) continue;
    await nextTurn();
    begin = process.hrtime.bigint();
  }
}

// When the first call after the last turn of the event loop began.
let firstCall: number | undefined;
// How many calls wait for a turn.
let waiting = 0;

/**
 * Call it at the beginning of what a caller may await in a loop. Without a turn of the event loop,
 * calls that wait for no device would keep timers and I/O of the process waiting as long as such a
 * loop runs. The first call of a turn waits only for calls before it.
 */
export function turnIfDue(): Promise<void> | undefined {
  // performance.now() would make Node load another module.
  const now = process.uptime();
  if (firstCall === undefined) {
    firstCall = now;
    setImmediate(() => {
      firstCall = undefined;
    });
  }
  if (waiting === 0 && now - firstCall < CALLS_S) return undefined;
  waiting++;
  const turn = nextTurn();
  // The caller goes on before that. A tick would come after all that follows in microtasks.
  void turn.then(() => {}).then(() => waiting--);
  return turn;
}

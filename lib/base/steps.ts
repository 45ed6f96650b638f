// Steps: long work in parts, for callers that wait for it and callers with other work to do.
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Work that can pause at each yield, and its result. */
export type Steps<T> = Generator<void, T, void>;

// How long a part may keep the event loop waiting.
const SLICE_MS = 1;

/** Does the work without a pause. */
export function inOneGo<T>(steps: Steps<T>): T {
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

// Steps: long work in parts, for those who wait for it and for those who have other things to do.
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Work that may rest wherever it yields, and what comes of it. */
export type Steps<T> = Generator<void, T, void>;

// How long the event loop waits for a part.
const SLICE_MS = 1;

/** Without a rest. */
export function inOneGo<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** With a turn of the event loop every millisecond or so. */
export async function inSlices<T>(steps: Steps<T>): Promise<T> {
  for (let begin = process.hrtime.bigint(); ; ) {
    const { done, value } = steps.next();
    if (done) return value;
    if (process.hrtime.bigint() - begin < SLICE_MS * 1e6) continue;
    await nextTurn();
    begin = process.hrtime.bigint();
  }
}

// until: looks repeatedly at a state that other processes change.
import type { Listener, Listening } from './files/folder-watch.js';

// Some changes go unreported: a process was stopped, a device is healthy again, the last process
// left a v1 cgroup, or the caller's hint provider has room.
const PERIOD_MS = 500;

/** A store, or what stands for it. */
interface Watched {
  watch(listener: Listener, listening?: Listening): () => void;
}

/** Calls `ring` also twice a second, for changes that `watch` does not report. */
export function periodically(watch: (ring: Listener) => () => void, ring: Listener): () => void {
  const stop = watch(ring);
  const timer = setInterval(ring, PERIOD_MS);
  return () => {
    clearInterval(timer);
    stop();
  };
}

/**
 * Calls `look` at once, at each possible change, and twice a second, until it returns a value.
 * @throws what `look` throws, and the signal's reason
 */
export const until = <T>(
  store: Watched,
  signal: AbortSignal | undefined,
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> =>
  untilRung((ring) => periodically((each) => store.watch(each, { atOnce: true }), ring), signal, look);

/** Calls `look` at once, and whenever `watch` calls its listener, until it returns a value. */
export async function untilRung<T>(
  watch: (ring: Listener) => () => void,
  signal: AbortSignal | undefined,
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  let isRung = false;
  let wake = () => {};
  // Kept for a loop that is not waiting yet.
  const ring = () => {
    isRung = true;
    wake();
  };
  // Starts before the first look, so that no change is missed.
  const stop = watch(ring);
  signal?.addEventListener('abort', ring, { once: true });
  try {
    for (;;) {
      signal?.throwIfAborted();
      isRung = false;
      const result = await look();
      if (result !== undefined) return result;
      if (!isRung) await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener('abort', ring);
    stop();
  }
}

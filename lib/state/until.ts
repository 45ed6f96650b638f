// until: looks repeatedly at a state that other processes change.
import type { Store } from './store.js';

// Some changes go unreported: the process before us in the queue was stopped, a device is healthy
// again, the last process left a v1 cgroup, or the caller's hint provider has room.
const PERIOD_MS = 500;

/**
 * Calls `look` at once, at each possible change, and twice a second, until it returns a value.
 * @throws what `look` throws, and the signal's reason
 */
export async function until<T>(
  store: Pick<Store, 'watch'>,
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
  const stop = store.watch(ring, { queue: true });
  const timer = setInterval(ring, PERIOD_MS);
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
    clearInterval(timer);
    stop();
  }
}

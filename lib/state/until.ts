// until: looks again and again at a state that others change.
import type { Store } from './store.js';

// What nothing tells: the process before us in the queue was stopped, a device is healthy again, the
// last process has left a cgroup of v1, a provider of the caller's has room.
const PERIOD_MS = 500;

/**
 * Calls `look` at once, whenever something may have changed, and twice a second, until it answers
 * something.
 * @throws what `look` throws, and the signal's reason
 */
export async function until<T>(
  store: Pick<Store, 'watch'>,
  signal: AbortSignal | undefined,
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  let isRung = false;
  let wake = () => {};
  // Remembered until somebody listens.
  const ring = () => {
    isRung = true;
    wake();
  };
  // Before the first look, so that nothing is missed.
  const stop = store.watch(ring, { queue: true });
  const timer = setInterval(ring, PERIOD_MS);
  signal?.addEventListener('abort', ring, { once: true });
  try {
    for (;;) {
      signal?.throwIfAborted();
      isRung = false;
      const seen = await look();
      if (seen !== undefined) return seen;
      if (!isRung) await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener('abort', ring);
    clearInterval(timer);
    stop();
  }
}

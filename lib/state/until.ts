// until: looks again and again at a state that others change.
import type { Store } from './store.js';

/**
 * Calls `look` at once, and whenever something may have changed, until it answers something.
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
  const stop = store.watch(ring);
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
    stop();
  }
}

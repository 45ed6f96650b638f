// Turns: a request that waits is tried again and again, first come first served across processes,
// until there is room or the caller has had enough.
import type { Store } from './store.js';
import { until } from './until.js';
import type { Ticket } from './wait-queue.js';

/** The caller's place, for an attempt under the lock. */
export interface Turn {
  /** Whether nobody has waited longer. */
  isOurs(): boolean;
  /** Takes the last place, where there is none yet: whether there was none. */
  wait(): boolean;
}

/**
 * Calls `attempt` until it answers something: at first, and whenever it is our turn and something
 * has changed. Whoever answers undefined must have called {@link Turn.wait}.
 * @throws what `attempt` throws, and the signal's reason
 */
export async function inTurn<T>(
  store: Pick<Store, 'waiters' | 'watch' | 'use'>,
  signal: AbortSignal | undefined,
  attempt: (turn: Turn) => Promise<T | undefined>,
): Promise<T> {
  const { waiters } = store;
  let ticket: Ticket | undefined;
  // The place is given up after the last look.
  const end = store.use();
  const turn: Turn = {
    isOurs: () => waiters.isFirst(ticket),
    wait: () => {
      if (ticket) return false;
      ticket = waiters.join();
      return true;
    },
  };
  try {
    // Not worth the lock while others are before us.
    return await until(store, signal, () =>
      ticket === undefined || turn.isOurs() ? attempt(turn) : undefined,
    );
  } finally {
    if (ticket) waiters.leave(ticket);
    end();
  }
}

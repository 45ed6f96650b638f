// Turns: retries a waiting request, first come first served across processes, until there is room
// or the caller gives up.
import type { Store } from './store.js';
import { until, untilRung } from './until.js';
import type { Ticket } from './wait-queue.js';

/** The caller's place in the queue, for an attempt under the lock. */
export interface Turn {
  /** True if the caller has waited longest. */
  isOurs(): boolean;
  /** Takes the last place. Returns false if the caller has a place already. */
  wait(): boolean;
}

/**
 * Calls `attempt` until it returns a value: at first, and at each change once it is the caller's
 * turn. Until then only the end of a request before it wakes it. An attempt that returns undefined
 * must have called {@link Turn.wait}.
 * @throws what `attempt` throws, and the signal's reason
 */
export async function inTurn<T>(
  store: Pick<Store, 'waiters' | 'watch' | 'use'>,
  signal: AbortSignal | undefined,
  attempt: (turn: Turn) => Promise<T | undefined>,
): Promise<T> {
  const { waiters } = store;
  let ticket: Ticket | undefined;
  // Holds the store open until the place is given up.
  const end = store.use();
  const turn: Turn = {
    isOurs: () => waiters.isFirst(ticket),
    wait: () => {
      if (ticket) return false;
      ticket = waiters.join();
      return true;
    },
  };
  const next = () => waiters.predecessorOf(ticket!);
  try {
    signal?.throwIfAborted();
    const result = await attempt(turn);
    if (result !== undefined) return result;
    for (let before = next(); before; before = next()) {
      const { watch, isWaiting } = before;
      await untilRung(watch, signal, () => !isWaiting() || undefined);
    }
    // Taking the lock is pointless while others come first.
    return await until(store, signal, () => (turn.isOurs() ? attempt(turn) : undefined));
  } finally {
    if (ticket) waiters.leave(ticket);
    end();
  }
}

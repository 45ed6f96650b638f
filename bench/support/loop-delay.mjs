// How long the event loop is stopped at a time.

/** The longest time between two turns of the event loop until it is done, in nanoseconds. */
export async function longestTurn(action) {
  let longest = 0;
  let isDone = false;
  let last = performance.now();
  const turn = () => {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  await action();
  isDone = true;
  turn();
  return longest * 1e6;
}

/** The same where as long a time passes with nothing to do. */
export const longestIdleTurn = (ms) => longestTurn(() => new Promise((resolve) => setTimeout(resolve, ms)));

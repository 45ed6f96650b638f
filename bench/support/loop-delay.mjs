// How long the event loop is blocked at a time.

/** The longest time between two turns of the event loop until `action` is done, in nanoseconds. */
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

/** The same during as much time with nothing to do. */
export const longestIdleTurn = (ms) => longestTurn(() => new Promise((resolve) => setTimeout(resolve, ms)));

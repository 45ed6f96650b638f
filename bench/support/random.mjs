// Random numbers that are equal in each run (mulberry32), for inputs that differ from call to call.

/** Returns a function that returns whole numbers from 0 to below its argument. */
export function randomNumbers(seed) {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** Some items of a list, each once. */
export function someOf(list, count, random) {
  const remaining = [...list];
  return Array.from(
    { length: Math.min(count, remaining.length) },
    () => remaining.splice(random(remaining.length), 1)[0],
  );
}

/**
 * A function that returns the items of a list in turn: no call asks the same as the call before.
 */
export function inTurn(items) {
  let at = 0;
  return () => {
    at = at + 1 === items.length ? 0 : at + 1;
    return items[at];
  };
}

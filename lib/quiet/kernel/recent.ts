// What was read a short while ago, of what takes long to read.

/** `read`, whose answer is kept for `ms` milliseconds. `now`: the time, in the same unit. */
export function recent<T>(read: () => T, ms: number, now: () => number = () => performance.now()): () => T {
  let last: { readonly value: T; readonly until: number } | undefined;
  return () => {
    if (!last || last.until <= now()) last = { value: read(), until: now() + ms };
    return last.value;
  };
}

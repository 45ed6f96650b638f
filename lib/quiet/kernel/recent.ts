// Keeps what takes long to read for a short time.

/** `read`, with its result kept for `ms` milliseconds. `now`: the time in milliseconds. */
export function recent<T>(read: () => T, ms: number, now: () => number = () => performance.now()): () => T {
  let last: { readonly value: T; readonly until: number } | undefined;
  return () => {
    if (!last || last.until <= now()) last = { value: read(), until: now() + ms };
    return last.value;
  };
}

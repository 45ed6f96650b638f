// Callbacks of the caller's that hear of something, such as a log, and decide nothing.

/** What the callback throws is an uncaught exception: no step depends on it. */
export function reported<Args extends unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
  return (...args) => {
    try {
      callback(...args);
    } catch (error) {
      process.nextTick(() => {
        throw error;
      });
    }
  };
}

// The pauses after calls of the API server that fail.
import { setTimeout } from 'node:timers/promises';
import { Backoff } from 'numalign/tools';

/** `random` returns 0 to 1, so that not all nodes of a cluster call at once. */
export const newBackoff = (random: () => number = Math.random) =>
  new Backoff({ firstMs: 500, longestMs: 30_000, random });

/** Resolves after `ms`, or when the signal is aborted. Keeps the process alive. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  setTimeout(ms, undefined, { signal }).catch(() => {});

// Measures a function beside its yardstick, in turns, so that both have the same share of whatever else the machine does.
//
// A call of more than 2 µs is timed by itself. Shorter ones are timed 64 at a time, since reading the clock takes as long as some of them: their p99 is of such batches.

import { getHeapStatistics } from 'node:v8';
import { measure } from 'mitata';
import { yardstick } from './yardstick.mjs';

const ROUNDS = 5;
const ROUND_NS = 150e6;
// Until the compiler has done its best, as far as that can be waited for.
const WARM_UP = { ms: 300, calls: 10_000, mostMs: 3000 };
const LONG_NS = 2000;
const BATCH = 64;
const FEWEST = 12;

/** The median and the 99th of a hundred. */
export function quantile(samples, share) {
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

export const medianOf = (samples) => quantile(samples, 0.5);

const collect = () => globalThis.gc({ type: 'minor' });

// Compiled, and with its caches full. Answers how long a call takes then.
async function warmUp(fn, { ms, calls: enough, mostMs }) {
  let calls = 0;
  const begin = performance.now();
  let took = 0;
  while (calls < 3 || (took < mostMs && (took < ms || calls < enough))) {
    await fn();
    calls++;
    took = performance.now() - begin;
  }
  const again = performance.now();
  const some = Math.max(1, Math.min(1000, calls >> 1));
  for (let i = 0; i < some; i++) {
    const result = fn();
    if (result instanceof Promise) await result;
  }
  return ((performance.now() - again) * 1e6) / some;
}

// The times of one round.
async function round(fn, { isLong, roundNs, least }) {
  const { samples } = await measure(fn, {
    gc: collect,
    min_cpu_time: roundNs,
    min_samples: least,
    max_samples: 1e6,
    batch_samples: BATCH,
    batch_threshold: isLong ? -1 : Number.POSITIVE_INFINITY,
    warmup_threshold: Number.POSITIVE_INFINITY,
    samples_threshold: Number.POSITIVE_INFINITY,
  });
  return samples;
}

// Bytes that a call allocates, in the JavaScript heap and beside it for typed arrays.
async function allocated(fn) {
  const heap = () => {
    const { used_heap_size, external_memory } = getHeapStatistics();
    return used_heap_size + external_memory;
  };
  const found = [];
  for (let i = 0; i < 200; i++) {
    const before = heap();
    const result = fn();
    if (result instanceof Promise) await result;
    found.push(heap() - before);
  }
  const alone = [];
  for (let i = 0; i < 200; i++) {
    const before = heap();
    alone.push(heap() - before);
  }
  return Math.max(0, medianOf(found) - medianOf(alone));
}

/**
 * The times of `fn` and of its yardstick; `fn` is called again and again and has to vary its work itself.
 * `yardstickTimes`: makes some times of a yardstick that is no JavaScript function.
 */
export async function beside(fn, { rounds = ROUNDS, roundNs = ROUND_NS, least = FEWEST, yardstickTimes } = {}) {
  const isLong = (await warmUp(fn, WARM_UP)) > LONG_NS;
  if (!yardstickTimes) await warmUp(yardstick.empty, { ...WARM_UP, ms: 20 });
  const samples = [];
  let others = [];
  for (let i = 0; i < rounds; i++) {
    const raw = yardstickTimes
      ? await yardstickTimes()
      : await round(yardstick.empty, { isLong: false, roundNs: roundNs / 5, least });
    if (yardstickTimes) for (const ns of raw) others.push(ns);
    // Of E the best round: what disturbs so short a call would make everything beside it look better.
    else if (i === 0 || medianOf(raw) < medianOf(others)) others = raw;
    for (const ns of await round(fn, { isLong, roundNs, least })) samples.push(ns);
  }
  return { samples, others, bytes: await allocated(fn) };
}

/**
 * A row from times that were measured together. `limit`: the target as a multiple of the yardstick, or, with `limitNs`, as a time.
 */
export function row(name, { samples, others, bytes }, { yardstick: what = 'E', limit, limitNs, ...more } = {}) {
  const medianNs = medianOf(samples);
  const yardstickNs = medianOf(others);
  const ratio = medianNs / yardstickNs;
  const isMet = limit !== undefined ? ratio <= limit : limitNs !== undefined ? medianNs <= limitNs : undefined;
  return {
    name,
    medianNs,
    p99Ns: quantile(samples, 0.99),
    ...(bytes !== undefined && { bytes }),
    yardstick: what,
    yardstickNs,
    ratio,
    ...(limit !== undefined && { target: limit }),
    ...(limitNs !== undefined && { targetNs: limitNs }),
    ...(isMet !== undefined && { met: isMet }),
    ...more,
  };
}

/** Measures and answers the row. */
export async function measured(name, fn, options = {}) {
  const { rounds, roundNs, least, yardstickTimes, ...about } = options;
  return row(name, await beside(fn, { rounds, roundNs, least, yardstickTimes }), about);
}

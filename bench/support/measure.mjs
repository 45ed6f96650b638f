// Measures a function beside its yardstick, in turns, so that other work on the machine affects
// both equally.
// Short calls are timed 64 at a time for the median, since reading the clock takes as long as some
// of them, and one by one for the 99th percentile, since batches would hide single slow calls.

import { getHeapStatistics } from 'node:v8';
import { measure } from 'mitata';
import { yardstick } from './yardstick.mjs';

// Many and short: a CPU that shares its core with another has two speeds, and keeps one for about a
// second. Both sides of a ratio come from the same round.
const ROUNDS = 25;
const ROUND_NS = 30e6;
// Until the compiler has done its best, within a limit.
const WARM_UP = { ms: 300, calls: 10_000, mostMs: 3000 };
const LONG_NS = 2000;
const BATCH = 64;
const FEWEST = 12;

/** The least sample that this share of all samples does not exceed. */
export function quantile(samples, share) {
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export const medianOf = (samples) => quantile(samples, 0.5);

/** The value that other work of the machine has disturbed least: the figure that targets judge. */
export const lowerQuartileOf = (samples) => quantile(samples, 0.25);

/** How samples are spread; nothing without samples. */
export function spread(samples) {
  if (samples.length === 0) return { samples: 0 };
  const [medianNs, p99Ns, p999Ns, maxNs] = [0.5, 0.99, 0.999, 1].map((share) => quantile(samples, share));
  return { samples: samples.length, medianNs, p99Ns, p999Ns, maxNs };
}

const collect = () => globalThis.gc({ type: 'minor' });

// Compiles it and fills its caches. Returns how long a call then takes.
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
async function round(fn, { isBatch, roundNs, least }) {
  const { samples } = await measure(fn, {
    max_samples: 1e6,
    gc: collect,
    min_cpu_time: roundNs,
    min_samples: least,
    batch_samples: BATCH,
    batch_threshold: isBatch ? Number.POSITIVE_INFINITY : -1,
    warmup_threshold: Number.POSITIVE_INFINITY,
    samples_threshold: Number.POSITIVE_INFINITY,
  });
  return samples;
}

const nothing = () => {};
const { empty } = yardstick;

// How long E takes once V8 has compiled the loop around it: the least so far.
let compiledNs = Number.POSITIVE_INFINITY;
// The two speeds of a CPU differ by less than this; a loop before and after its compilation by
// more.
const UNCOMPILED = 2.2;

function emptyLoop(count) {
  const times = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const begin = performance.now();
    for (let call = 0; call < BATCH; call++) empty();
    times[i] = ((performance.now() - begin) * 1e6) / BATCH;
  }
  return times;
}

/**
 * Times of E, in its own loop. V8 calls an addon in 8 ns from a loop where nothing else was ever
 * called, and in 28 ns from a loop that it must still compile, possibly again; then E is timed
 * again.
 */
export function emptyTimes(count = 2000) {
  for (let tries = 0; ; tries++) {
    const times = emptyLoop(count);
    const ns = lowerQuartileOf(times);
    compiledNs = Math.min(compiledNs, ns);
    if (ns < UNCOMPILED * compiledNs || tries === 40) return times;
  }
}

// Compiled before anything else is called.
for (let i = 0; i < 5; i++) emptyTimes();

// The bytes that a call allocates, in the JavaScript heap and outside of it for typed arrays.
async function allocated(fn) {
  const heap = () => {
    const { used_heap_size, external_memory } = getHeapStatistics();
    return used_heap_size + external_memory;
  };
  const found = [];
  const begin = performance.now();
  while (found.length < FEWEST || (found.length < 400 && performance.now() - begin < 200)) {
    const [before, looked] = [heap(), heap()];
    const result = fn();
    if (result instanceof Promise) await result;
    // Measuring allocates too.
    found.push(heap() - looked - (looked - before));
  }
  return Math.max(0, medianOf(found));
}

/** Times of an addon function that takes no longer than a few calls of E, timed like E. */
export async function shortTimes(fn, roundNs = 5e6) {
  return round(fn, { isBatch: true, roundNs, least: FEWEST });
}

/** The number of rounds: fewer if only targets are checked, or if the program itself is tested. */
let rounds = Number(process.env.NUMALIGN_BENCH_ROUNDS ?? ROUNDS);
export function measureLess() {
  rounds = Math.min(rounds, 9);
  WARM_UP.ms = 150;
}

/**
 * The times of `fn` and of its yardstick, and the ratio of their medians in each round. `fn` is
 * called repeatedly and must vary its work itself. `yardstickTimes`: makes times of another
 * yardstick than E.
 */
export async function beside(
  fn,
  { rounds: wanted = rounds, roundNs = ROUND_NS, least = FEWEST, yardstickTimes = emptyTimes } = {},
) {
  const isBatch = (await warmUp(fn, WARM_UP)) <= LONG_NS;
  await yardstickTimes();
  const [samples, singles, others, ratios] = [[], [], [], []];
  for (let i = 0; i < wanted; i++) {
    const raw = await yardstickTimes();
    const times = await round(fn, { isBatch, roundNs, least });
    ratios.push(medianOf(times) / medianOf(raw));
    for (const ns of raw) others.push(ns);
    for (const ns of times) samples.push(ns);
    if (!isBatch) continue;
    for (const ns of await round(fn, { isBatch: false, roundNs: roundNs / 2, least })) singles.push(ns);
  }
  const measured = { samples, others, ratios, bytes: await allocated(fn) };
  if (!isBatch) return measured;
  const clockNs = medianOf(await round(nothing, { isBatch: false, roundNs, least }));
  return { ...measured, singles: singles.map((ns) => Math.max(0, ns - clockNs)) };
}

/**
 * A row from times that were measured together. `singles`: times of single calls, if `samples` are
 * means of batches; `ratios`: of rounds. `limit`: the target as a multiple of the yardstick.
 */
export function row(
  name,
  { samples, singles = samples, others, ratios, bytes },
  { yardstick: what = 'E', limit, ...more } = {},
) {
  const medianNs = medianOf(samples);
  const yardstickNs = medianOf(others);
  const ratio = ratios ? lowerQuartileOf(ratios) : medianNs / yardstickNs;
  const isMet = limit !== undefined ? ratio <= limit : undefined;
  return {
    name,
    medianNs,
    p99Ns: quantile(singles, 0.99),
    samples: singles.length,
    ...(bytes !== undefined && { bytes }),
    yardstick: what,
    yardstickNs,
    ratio,
    ...(limit !== undefined && { target: limit }),
    ...(isMet !== undefined && { met: isMet }),
    ...more,
  };
}

/**
 * Measures and returns the row. `kubelet`: the kubelet's time, from prepared() of inputs.mjs. The
 * row then has the time of the same input here as a part of it. Both are multiples of an empty
 * call, each on its own machine.
 */
export async function measured(name, fn, options = {}) {
  const { rounds: wanted, roundNs, least, yardstickTimes, kubelet, ...about } = options;
  const found = row(name, await beside(fn, { rounds: wanted, roundNs, least, yardstickTimes }), about);
  if (kubelet === undefined) return found;
  const { ratios } = await beside(kubelet.call, { rounds: Math.min(rounds, 5) });
  return { ...found, kubeletPart: medianOf(ratios) / kubelet.cost };
}

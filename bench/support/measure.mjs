// Measures a function beside its yardstick, in turns, so that both have the same share of whatever
// else the machine does.
//
// Short calls are timed 64 at a time for the median, since reading the clock takes as long as some
// of them, and one by one for the 99th percentile, since that of batches would hide single slow
// calls.

import { getHeapStatistics } from 'node:v8';
import { measure } from 'mitata';
import { yardstick } from './yardstick.mjs';

// Many and short: a CPU that shares its core with another has two speeds and keeps one for a second
// or so. Both sides of a ratio are of the same round.
const ROUNDS = 25;
const ROUND_NS = 30e6;
// Until the compiler has done its best, as far as that can be waited for.
const WARM_UP = { ms: 300, calls: 10_000, mostMs: 3000 };
const LONG_NS = 2000;
const BATCH = 64;
const FEWEST = 12;

/** The least sample that this share of all is not above. */
export function quantile(samples, share) {
  const sorted = Float64Array.from(samples).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

export const medianOf = (samples) => quantile(samples, 0.5);

/** What other work of the machine has disturbed the least of: the figure that targets judge. */
export const lowerQuartileOf = (samples) => quantile(samples, 0.25);

/** How samples are spread; nothing where there are none. */
export function spread(samples) {
  if (samples.length === 0) return { samples: 0 };
  const [medianNs, p99Ns, p999Ns, maxNs] = [0.5, 0.99, 0.999, 1].map((share) => quantile(samples, share));
  return { samples: samples.length, medianNs, p99Ns, p999Ns, maxNs };
}

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

// How long E takes where V8 has compiled the loop around it: the least so far.
let compiledNs = Number.POSITIVE_INFINITY;
// The two speeds of a CPU are less than this apart, a loop before and after it is compiled more.
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
 * Times of E. In a loop of its own: V8 calls an addon in 8 ns from where nothing else was ever
 * called, in 28 ns from a loop that it has yet to compile, perhaps once more; then E is timed again.
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

// Bytes that a call allocates, in the JavaScript heap and beside it for typed arrays.
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
    // Looking allocates too.
    found.push(heap() - looked - (looked - before));
  }
  return Math.max(0, medianOf(found));
}

/** Times of a function of the addon that is no longer than a few calls of E, as E is timed. */
export async function shortTimes(fn, roundNs = 5e6) {
  return round(fn, { isBatch: true, roundNs, least: FEWEST });
}

/** How many rounds: fewer where only targets are checked, or what the program does is tested. */
let rounds = Number(process.env.NUMALIGN_BENCH_ROUNDS ?? ROUNDS);
export function measureLess() {
  rounds = Math.min(rounds, 9);
  WARM_UP.ms = 150;
}

/**
 * The times of `fn` and of its yardstick, and the ratio of their medians in each round. `fn` is
 * called again and again and has to vary its work itself. `yardstickTimes`: makes some times of
 * another yardstick than E.
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
 * A row from times that were measured together. `singles`: of calls one by one, where `samples` are
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
 * Measures and answers the row. `kubelet`: what the kubelet took, as prepared() of inputs.mjs gives
 * it: the row has the part of that which the same input takes here. Both are multiples of an empty
 * call, each on its machine.
 */
export async function measured(name, fn, options = {}) {
  const { rounds: wanted, roundNs, least, yardstickTimes, kubelet, ...about } = options;
  const found = row(name, await beside(fn, { rounds: wanted, roundNs, least, yardstickTimes }), about);
  if (kubelet === undefined) return found;
  const { ratios } = await beside(kubelet.call, { rounds: Math.min(rounds, 5) });
  return { ...found, kubeletPart: medianOf(ratios) / kubelet.cost };
}

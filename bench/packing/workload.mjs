// Requests that come and go: sizes of a mix, Poisson arrivals, exponential lifetimes with a mean of
// 1. The same seed gives the same requests.
import { randomNumbers } from '../support/random.mjs';
import { GIB } from './machines.mjs';

/** How often each size is requested, in [CPUs, GiB, GPUs]. */
const MIXES = {
  // The requests of a cluster that trains and serves models: a few sizes make up most of them. A
  // part of a GPU is not a device, so such a request can run anywhere.
  cluster: [
    [9, [4, 6, 0]],
    [9, [4, 16, 0]],
    [4, [6, 12, 0]],
    [16, [8, 30, 0]],
    [10, [12, 47, 0]],
    [1, [13, 60, 0]],
    [6, [32, 48, 0]],
    [15, [4, 6, 1]],
    [2, [4, 24, 1]],
    [3, [8, 24, 1]],
    [2, [10, 41, 1]],
    [19, [12, 32, 1]],
    [8, [16, 40, 1]],
    [4, [19, 64, 1]],
    [1, [25, 91, 1]],
    [1, [32, 129, 4]],
  ],
  // Services of all sizes: all sizes request the same number of CPUs in total.
  services: [
    [32, [1, 4, 0]],
    [16, [2, 8, 0]],
    [8, [4, 16, 0]],
    [4, [8, 32, 0]],
    [2, [16, 64, 0]],
    [1, [32, 128, 0]],
    [4, [4, 16, 1]],
    [2, [8, 32, 1]],
    [1, [16, 64, 1]],
  ],
  // Parts of a NUMA node, smaller ones more often: the number of requests goes with the inverse
  // square root of their CPUs.
  medium: [
    [126, [2, 8, 0]],
    [90, [4, 16, 0]],
    [63, [8, 32, 0]],
    [54, [12, 48, 0]],
    [45, [16, 64, 0]],
    [36, [24, 96, 0]],
    [14, [2, 8, 1]],
    [10, [4, 16, 1]],
    [7, [8, 32, 1]],
    [6, [12, 48, 1]],
    [5, [16, 64, 1]],
    [4, [24, 96, 1]],
  ],
};

export const mixes = Object.entries(MIXES).map(([name, sizes]) => ({
  name,
  sizes: sizes.map(([weight, [cpu, gib, gpu]]) => ({ weight, cpu, memory: gib * GIB, gpu })),
}));

// From 0 to below 1.
function fractions(seed) {
  const random = randomNumbers(seed);
  return () => random(2 ** 32) / 2 ** 32;
}

const exponential = (fraction) => -Math.log(1 - fraction);
const weightOf = ({ weight = 1 }) => weight;
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

function sizeAt(sizes, fraction) {
  let remaining = fraction * sum(sizes.map(weightOf));
  for (const size of sizes) {
    remaining -= weightOf(size);
    if (remaining < 0) return size;
  }
  return sizes.at(-1);
}

/**
 * Arrivals until `span`. `load`: the CPUs that requests would have on average if all were admitted,
 * as a part of the machine's.
 */
export function* arrivals({ sizes, cpus, load, span, seed }) {
  const fraction = fractions(seed);
  const meanCpus = sum(sizes.map((size) => weightOf(size) * size.cpu)) / sum(sizes.map(weightOf));
  const rate = (load * cpus) / meanCpus;
  for (let time = 0; ; ) {
    time += exponential(fraction()) / rate;
    if (time > span) return;
    const { cpu, memory, gpu } = sizeAt(sizes, fraction());
    yield { time, duration: exponential(fraction()), cpu, memory, gpu };
  }
}

/**
 * Requests with their own times, scaled to this load and starting at 0.
 * @throws ERR_TRACE if no time passes
 */
export function atLoad(requests, { cpus, load }) {
  const [first, last] = [requests[0], requests.at(-1)];
  const span = last.time - first.time;
  if (span === 0) {
    const message = `${requests.length} requests of a trace come at ${first.time} s; valid: fewer samples, or later ones`;
    throw Object.assign(new Error(message), { code: 'ERR_TRACE', value: first.time });
  }
  const cpuTime = sum(requests.map(({ cpu, duration }) => cpu * duration));
  const factor = cpuTime / (load * cpus * span);
  return requests.map((request) => ({ ...request, time: (request.time - first.time) * factor }));
}

/** A list in this many parts, none of them empty. */
export function parts(list, count) {
  const most = Math.min(count, list.length);
  const from = (part) => Math.trunc((part * list.length) / most);
  return Array.from({ length: most }, (_, part) => list.slice(from(part), from(part + 1)));
}

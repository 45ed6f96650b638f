// The measured process of the scenario isolation: takes a CPU, then spins, sleeps, and waits in the event loop, each for a third of the time, and prints what it
// felt of the others and the grant's audit.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';
import { openManager } from '../../dist/index.js';
import { quantile } from './measure.mjs';
import { yardstick } from './yardstick.mjs';

// What the clock itself does not take: somebody else ran.
const LEAST_GAP_NS = 20_000;
const MOST_GAPS = 1e6;
const SLEEP_NS = 200_000;

const { manager: options, members, pin, seconds } = JSON.parse(process.argv[2]);
const manager = await openManager(options);
for (const pid of members) await manager.addSharedMember({ pid });
const grant = await manager.acquire({ cpu: 1 });
if (pin) grant.pin();
const part = seconds / 3;

/** p50, p99, p99.9 and the greatest, in microseconds. */
function shape(samples) {
  if (samples.length === 0) return [0, 0, 0, 0];
  return [0.5, 0.99, 0.999, 1].map((share) => Math.round(quantile(samples, share) / 100) / 10);
}

function spin() {
  const gaps = new Float64Array(MOST_GAPS);
  const count = yardstick.spinGaps(gaps, part * 1e9, LEAST_GAP_NS);
  return shape(gaps.subarray(0, Math.min(count, MOST_GAPS)));
}

// A few at a time, since how long it takes depends on the others.
function sleep() {
  const late = [];
  const end = performance.now() + part * 1000;
  while (performance.now() < end) {
    const some = new Float64Array(16);
    yardstick.wakeUps(some, SLEEP_NS);
    late.push(...some);
  }
  return shape(late);
}

// How much later than after 1 ms its timers come, as Node tells it; some work in between.
async function loop() {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const end = performance.now() + part * 1000;
  while (performance.now() < end) await pause(1);
  delay.disable();
  return [50, 99, 99.9, 100].map((share) => Math.round(delay.percentile(share) / 100) / 10);
}

grant.audit({ reset: true });
const felt = { gaps: spin(), wakeUps: sleep(), eventLoop: await loop() };
const audit = grant.audit();
const { cpus } = grant;
await grant.release();
manager.close();
console.log(JSON.stringify({ audit, felt, cpus: cpus.toString() }));

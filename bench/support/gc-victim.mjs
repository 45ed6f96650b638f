// Makes garbage on a CPU of its own for a while, and prints how long collecting it held the program up. `threads`: which threads are pinned; the others, V8's
// helpers among them, are where everybody is.
import { PerformanceObserver } from 'node:perf_hooks';
import { openManager } from '../../dist/index.js';
import { quantile } from './measure.mjs';

const { manager: options, threads, seconds } = JSON.parse(process.argv[2]);
const manager = await openManager(options);
const grant = await manager.acquire({ cpu: 1 });
grant.pin({ threads });
const pauses = [];
const observer = new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) pauses.push(duration);
});
observer.observe({ entryTypes: ['gc'] });

// Some of it lives on for a while, so that collections have something to do.
const kept = new Map();
const end = performance.now() + seconds * 1000;
for (let i = 0; performance.now() < end; i++) {
  kept.set(
    i % 20_000,
    Array.from({ length: 20 }, (_, n) => ({ n, text: `item ${i} ${n}` })),
  );
  if (i % 2000 === 0) await new Promise((resolve) => setImmediate(resolve));
}
await new Promise((resolve) => setTimeout(resolve, 50));
observer.disconnect();
await grant.release();
manager.close();
const ms = (share) => Math.round(quantile(pauses, share) * 100) / 100;
const mean = Math.round((pauses.reduce((sum, pause) => sum + pause, 0) / pauses.length) * 100) / 100;
console.log(JSON.stringify({ count: pauses.length, mean, p99: ms(0.99), max: ms(1) }));

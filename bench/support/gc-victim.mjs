// Makes garbage on its own CPU for a while, and prints how long collections stop the program.
// `threads`: the pinned threads; the others, including V8's helpers, are in the shared pool.
import { PerformanceObserver } from 'node:perf_hooks';
import { openManager } from '../../dist/index.js';
import { spread } from './measure.mjs';

// If the other processes leave fewer samples, it runs longer until there are this many.
const ENOUGH = 100;
const LONGER = 4;

const { manager: options, threads, seconds } = JSON.parse(process.argv[2]);
const manager = await openManager(options);
const grant = await manager.acquire({ cpu: 1 });
grant.pin({ threads });
const pauses = [];
const observer = new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) pauses.push(duration * 1e6);
});
observer.observe({ entryTypes: ['gc'] });

// Some of it lives for a while, so that collections have work to do.
const kept = new Map();
const begin = performance.now();
function goOn() {
  const took = performance.now() - begin;
  return took < seconds * 1000 || (pauses.length < ENOUGH && took < LONGER * seconds * 1000);
}
for (let i = 0; goOn(); i++) {
  kept.set(
    i % 20_000,
    Array.from({ length: 20 }, (_, n) => ({ n, text: `item ${i} ${n}` })),
  );
  if (i % 2000 === 0) await new Promise((resolve) => setImmediate(resolve));
}
await new Promise((resolve) => setTimeout(resolve, 50));
observer.disconnect();
const { cpus } = grant;
await grant.release();
manager.close();
const mean = pauses.reduce((sum, pause) => sum + pause, 0) / pauses.length;
console.log(JSON.stringify({ cpus: cpus.toString(), pauses: spread(pauses), meanNs: mean }));

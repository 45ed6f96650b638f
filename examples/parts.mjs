// A server whose main thread and Worker each have a CPU without other threads of the process. The
// pool, V8's helpers and everything else share the rest of the grant.
//   STATE_DIR=/tmp/numalign node examples/…       a private state folder
import { once } from 'node:events';
import { isMainThread, parentPort } from 'node:worker_threads';
import { openManager } from 'numalign';
import { affinity, threads } from 'numalign/diagnostics';

async function main({ STATE_DIR }) {
  const manager = await openManager(STATE_DIR === undefined ? {} : { stateDir: STATE_DIR });
  // At least one CPU stays shared, and one is left to the other threads. The remaining ones become
  // parts.
  const cpu = Math.max(1, Math.min(4, manager.freeCpus().size - 1));
  const parts = Object.fromEntries(['main', 'io'].slice(0, cpu - 1).map((name) => [name, 1]));
  await manager.use({ name: 'parts', cpu, parts }, async (grant) => {
    grant.pin();
    if (grant.parts.main) grant.part('main').pin();
    const worker = grant.worker(new URL(import.meta.url), grant.parts.io ? { part: 'io' } : {});
    const [cpus] = await once(worker, 'message');
    const others = threads().filter((thread) => thread.role !== 'main' && thread.role !== 'worker');
    console.log(`main thread: CPUs ${affinity()}`);
    console.log(`Worker: CPUs ${cpus}`);
    console.log(
      `${others.length} others: CPUs ${[...new Set(others.map((thread) => `${thread.cpus}`))].join(' and ')}`,
    );
    await worker.terminate();
  });
  manager.close();
}

if (isMainThread) await main(process.env);
else parentPort.postMessage(`${affinity()}`);

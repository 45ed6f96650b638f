// A process whose file calls fail on demand (failing-files.c is preloaded): changes a grant, and
// prints as JSON how the masks of its threads and of a shared member differ after each refusal.
// `every`: each change, with all calls failing from the first, the second, ... on; `ended`: a release,
// during which a Worker ends.
import { pbkdf2 } from 'node:crypto';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { affinity, threads } from '../../../dist/entries/diagnostics.js';
import { openManager } from '../../../dist/index.js';

const [what, stateDir, member] = process.argv.slice(2);
// -1: all calls succeed from now on; else so many.
const succeed = (calls) => {
  try {
    openSync(`/failing-files/${calls}`);
  } catch {}
};
const worker = new Worker('setInterval(() => {}, 100_000)', { eval: true });
await once(worker, 'online');
// Starts libuv's pool.
await Promise.all([0, 1, 2, 3, 4].map(() => stat('.')));
const manager = await openManager({ stateDir, cpuManagerReconcilePeriod: 0, enforcement: 'members' });
await manager.addSharedMember({ pid: Number(member) });

const masks = () =>
  new Map([
    ...threads().map(({ tid, cpus }) => [`thread ${tid}`, `${cpus}`]),
    ['member', `${affinity(Number(member))}`],
  ]);
const differences = (before) => {
  const now = masks();
  return [...before].flatMap(([who, cpus]) =>
    now.has(who) && now.get(who) !== cpus ? `${who}: ${cpus} became ${now.get(who)}` : [],
  );
};

let refusals = 0;
const wrong = [];

async function untilItSucceeds(name, change) {
  const before = masks();
  for (let calls = 0; ; calls++) {
    succeed(calls);
    const outcome = await change().then(
      (value) => ({ value }),
      (error) => ({ error }),
    );
    succeed(-1);
    if (!outcome.error) return outcome.value;
    refusals++;
    if (outcome.error.code === undefined) wrong.push(`${name}, ${calls} calls: ${outcome.error.stack}`);
    for (const each of differences(before)) wrong.push(`${name}, ${calls} calls: ${each}`);
  }
}

const masksOnPool = masks();
if (what === 'every') {
  const grant = await untilItSucceeds('acquire', () => manager.acquire({ cpu: 1 }));
  await untilItSucceeds('pin', async () => grant.pin());
  await untilItSucceeds('unpin', () => grant.unpin());
  grant.pin();
  await untilItSucceeds('release', () => grant.release());
  await manager.reconcile();
} else {
  const grant = await manager.acquire({ cpu: 1 });
  grant.pin();
  const masksOnGrant = masks();
  // The commit waits for libuv's only thread.
  const busy = promisify(pbkdf2)('a', 'b', 300_000, 64, 'sha512');
  const released = grant.release().catch((error) => error.code);
  while (differences(masksOnGrant).length === 0) await turn();
  await worker.terminate();
  succeed(0);
  const code = await released;
  succeed(-1);
  await busy;
  if (!['ERR_SYSCALL', 'ERR_STATE_FOLDER'].includes(code)) wrong.push(`release: ${code}`);
  refusals++;
  wrong.push(...differences(masksOnGrant).map((each) => `refused release: ${each}`));
  await grant.release();
}
wrong.push(...differences(masksOnPool).map((each) => `released: ${each}`));
process.stdout.write(JSON.stringify({ refusals, wrong }));
manager.close();
await worker.terminate();

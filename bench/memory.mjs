// What plans leave behind in memory, and what each allocates.
import { ownInput, prepared } from './support/inputs.mjs';
import { beside, row } from './support/measure.mjs';

export const description =
  'what is retained of a million plans after a forced collection, and what one allocates';
export const options = { plans: { type: 'string', help: 'memory: how many plans (default 1000000)' } };

const WARM_UP = 20_000;

async function settled() {
  // Finalizers of collected objects run in between.
  for (let i = 0; i < 5; i++) {
    globalThis.gc();
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { heapUsed, external } = process.memoryUsage();
  return { heapUsed, external };
}

export async function run({ check, plans = check ? '300000' : '1000000' }) {
  const count = Number(plans);
  if (!(Number.isInteger(count) && count > 0)) throw new Error(`--plans ${plans}: a whole number above 0`);
  const { call, close } = await prepared(ownInput('admit-n2-nockpt'));
  try {
    const measured = await beside(call);
    for (let i = 0; i < WARM_UP; i++) call();
    const before = await settled();
    for (let i = 0; i < count; i++) {
      call();
      if (i % 10_000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const after = await settled();
    const heap = (after.heapUsed - before.heapUsed) / count;
    const external = (after.external - before.external) / count;
    const remark = `retained a plan: ${heap.toFixed(3)} bytes of heap, ${external.toFixed(3)} external, over ${count.toLocaleString('en')}`;
    return [{ ...row('plans, 2 nodes', measured), retainedHeap: heap, retainedExternal: external, remark }];
  } finally {
    close();
  }
}

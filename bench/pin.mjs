// Pinning the calling thread, read back, compared with the system calls that it cannot avoid.

import { affinity } from '../dist/entries/diagnostics.js';
import { CpuSet, pinThread } from '../dist/index.js';
import { beside, row, shortTimes } from './support/measure.mjs';
import { inTurn } from './support/random.mjs';
import { emptyNow } from './support/rounds.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description = 'pinThread: the same mask again, another one, and one that makes the thread move';

async function pin(name, masks) {
  const next = inTurn(masks);
  yardstick.setMasks(masks[0].words, masks[1].words);
  const samples = await beside(() => pinThread(next()), { yardstickTimes: () => shortTimes(yardstick.pin) });
  const found = row(name, samples, { yardstick: 'set + 2 get + 1 E' });
  const moreE = ((found.ratio - 1) * found.yardstickNs) / emptyNow();
  return { ...found, moreE, remark: `${Math.round(moreE)} E more` };
}

export async function run() {
  const all = affinity();
  const [first, second] = all.toArray().map((cpu) => CpuSet.of(cpu));
  try {
    const rows = [await pin('the same mask', [all, all])];
    if (!second) return rows;
    rows.push(await pin('another mask', [all, await placeOf(first, all)]));
    rows.push(await pin('migrating', [first, second]));
    return rows;
  } finally {
    pinThread(all);
  }
}

// A part of the mask that the thread is already in, and stays in since it is not busy elsewhere.
async function placeOf(first, all) {
  pinThread(first);
  pinThread(all);
  return first;
}

// Pinning the calling thread, read back, beside the system calls that it cannot do without.

import { affinity } from '../dist/entries/diagnostics.js';
import { CpuSet, pinThread } from '../dist/index.js';
import { beside, emptyTimes, medianOf, row } from './support/measure.mjs';
import { inTurn } from './support/random.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description = 'pinThread: the same mask again, another one, and one that makes the thread move';

const CALLS = 200;

function times(fill) {
  const samples = new Float64Array(CALLS);
  fill(samples);
  return samples;
}

// One raw call to set a mask, two to read it before and after, and what 15 calls into the addon
// cost.
function raw(masks) {
  const set = times((samples) => yardstick.setAffinity(samples, masks[0].words, masks[1].words));
  const gets = medianOf(times(yardstick.getAffinity));
  const empty = medianOf(emptyTimes());
  return set.map((ns) => ns + 2 * gets + 15 * empty);
}

async function pin(name, masks) {
  const next = inTurn(masks);
  const samples = await beside(() => pinThread(next()), { yardstickTimes: () => raw(masks) });
  return row(name, samples, { yardstick: 'set + 2 get + 15 E', limit: 1 });
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

// A part of the mask that the thread is in already, and stays in as it is not busy elsewhere.
async function placeOf(first, all) {
  pinThread(first);
  pinThread(all);
  return first;
}

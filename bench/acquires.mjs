// A thousand grants of one process, one after the other.
import { growthExponent } from './support/growth-exponent.mjs';
import { MACHINES, newNode } from './support/nodes.mjs';
import { emptyNow, timeOf } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description = '1,000 acquires in a row, and how their time grows with their number';

const ACQUIRES = 1000;
const STEP = 125;

// The exponent is of the whole time by the number of acquires, from the first 125 on.
async function measure({ where, path }) {
  const { manager, close } = await newNode(path, MACHINES.simulated, 0);
  const points = [];
  try {
    const emptyNs = emptyNow();
    let total = 0;
    for (let i = 1; i <= ACQUIRES; i++) {
      total += await timeOf(() => manager.acquire({ cpu: 1 }));
      if (i % STEP === 0) points.push([i, total]);
    }
    return {
      name: `1,000 acquires, ${where}`,
      timeNs: total,
      costE: total / emptyNs,
      exponent: growthExponent(points),
      lastOverFirst: (points.at(-1)[1] - points.at(-2)[1]) / points[0][1],
    };
  } finally {
    close();
  }
}

export async function run({ check }) {
  const rows = [];
  for (const parent of check ? stateParents().slice(-1) : stateParents()) rows.push(await measure(parent));
  return rows;
}

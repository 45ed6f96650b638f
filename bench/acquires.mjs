// A thousand grants of one process, one after the other.
import { growthExponent } from './support/growth-exponent.mjs';
import { MACHINES, newNode } from './support/nodes.mjs';
import { cpuOf, emptyNow, timeOf } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description = '1,000 acquires in a row, and how their time grows with their number';
export const explanation = `
The exponent fits the CPU time to the number of acquires, at every 125 of them. *Last over first*
compares the last 125 with the first.`;

const ACQUIRES = 1000;
const STEP = 125;

// The exponent relates the total CPU time to the number of acquires, from the first 125 on.
async function measure({ where, path }) {
  const { manager, close } = await newNode(path, MACHINES.simulated, 0);
  const points = [];
  try {
    const emptyNs = emptyNow();
    let cpuNs = 0;
    const timeNs = await timeOf(async () => {
      for (let done = STEP; done <= ACQUIRES; done += STEP) {
        cpuNs += await cpuOf(async () => {
          for (let i = 0; i < STEP; i++) await manager.acquire({ cpu: 1 });
        });
        points.push([done, cpuNs]);
      }
    });
    return {
      name: `1,000 acquires, ${where}`,
      timeNs,
      cpuNs,
      cpuE: cpuNs / emptyNs,
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

// What the first calls of a process cost, each by itself.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { openManager } from '../dist/index.js';
import { lowerQuartileOf, medianOf } from './support/measure.mjs';
import { MACHINES } from './support/nodes.mjs';
import { emptyNow } from './support/rounds.mjs';
import { stateParents } from './support/state-parents.mjs';

export const description =
  'CPU time of the first calls of a process: import, open, acquire, pin, release, and the same again once all is hot';
export const explanation = `
CPU time of all threads, the median; \`cpuE\` is the lower quartile. Each process is new; its
state is in memory, in a folder with settings on record. *Hot* is the mean of 200 after 400.`;

const PROGRAM = fileURLToPath(new URL('support/first-calls.mjs', import.meta.url));

async function measure(name, machine, processes) {
  const stateDir = mkdtempSync(join(stateParents().at(-1).path, 'numalign-bench-'));
  const order = JSON.stringify({ stateDir, machine });
  const found = new Map();
  try {
    if (machine === null) (await openManager({ stateDir, reservedSystemCPUs: '0' })).close();
    for (let i = 0; i < processes; i++) {
      const emptyNs = emptyNow();
      const times = JSON.parse(execFileSync(process.execPath, [PROGRAM, order], { encoding: 'utf8' }));
      for (const [call, ns] of Object.entries(times)) {
        found.set(call, [...(found.get(call) ?? []), { ns, e: ns / emptyNs }]);
      }
    }
  } finally {
    rmSync(stateDir, { recursive: true });
  }
  return [...found].map(([call, times]) => ({
    name: `${call}, ${name}`,
    cpuNs: medianOf(times.map(({ ns }) => ns)),
    cpuE: lowerQuartileOf(times.map(({ e }) => e)),
  }));
}

export async function run({ check }) {
  const rows = [];
  for (const [name, machine] of Object.entries(MACHINES))
    rows.push(...(await measure(name, machine, check ? 5 : 11)));
  return rows;
}

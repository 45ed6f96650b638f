// Admitting and releasing, durably, beside a raw durable write of as many bytes in the same folder,
// with the link to the generation before.
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { discover } from '../dist/entries/topology.js';
import { openManager } from '../dist/index.js';
import { podOf } from './support/inputs.mjs';
import { medianOf, row } from './support/measure.mjs';
import { stateParents } from './support/state-parents.mjs';
import { yardstick } from './support/yardstick.mjs';

export const description = 'Manager.admit and release, durable: on disk, and on tmpfs';

const ROUNDS = 8;
const CALLS = 40;
const GIB = 2 ** 30;
const MACHINE = 'package:2 numa:1(memory=64GB) core:32 pu:2';

function rawWrites(folder, bytes) {
  const times = new Float64Array(CALLS);
  yardstick.durableWrite(times, folder, bytes);
  return times;
}

const TARGETS = { disk: { limit: 1.3 }, tmpfs: { limitNs: 200e3 } };

// The times of all rounds, and the ratio to the yardstick in each.
const timesBeside = (rounds, others) => ({
  samples: rounds.flat(),
  others: others.flat(),
  ratios: rounds.map((times, i) => medianOf(times) / medianOf(others[i])),
});

// Other grants are there, so that the state is of the size of a node in use.
async function measure({ where, path, fileSystem }) {
  const stateDir = mkdtempSync(join(path, 'numalign-bench-'));
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }), stateDir });
  try {
    for (let i = 0; i < 10; i++) await manager.acquire({ cpu: 2, memory: '1Gi', name: `service-${i}` });
    const [admits, releases, others] = [[], [], []];
    let bytes = readFileSync(join(stateDir, 'state.json'));
    for (let round = -1; round < ROUNDS; round++) {
      const raw = rawWrites(stateDir, bytes);
      const [admitted, released] = [[], []];
      for (let call = 0; call < CALLS; call++) {
        const pod = podOf({ cpu: 1 + (call % 4), memory: (1 + (call % 3)) * GIB });
        const begin = performance.now();
        const { uid } = await manager.admit(pod);
        admitted.push((performance.now() - begin) * 1e6);
        bytes = readFileSync(join(stateDir, 'state.json'));
        const between = performance.now();
        await manager.release(uid);
        released.push((performance.now() - between) * 1e6);
      }
      // The first is to get warm.
      if (round < 0) continue;
      admits.push(admitted);
      releases.push(released);
      others.push([...raw]);
    }
    const remark = `${statSync(join(stateDir, 'state.json')).size.toLocaleString('en')} bytes on ${fileSystem}`;
    const about = { yardstick: 'raw write', ...TARGETS[where], remark };
    return [
      row(`admit, ${where}`, timesBeside(admits, others), about),
      row(`release, ${where}`, timesBeside(releases, others), about),
    ];
  } finally {
    manager.close();
    rmSync(stateDir, { recursive: true });
  }
}

export async function run() {
  const rows = [];
  for (const parent of stateParents()) rows.push(...(await measure(parent)));
  return rows;
}

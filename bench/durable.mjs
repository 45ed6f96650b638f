// Admitting and releasing, durably, beside a raw durable write of as many bytes in the same folder, with the link to the generation before.
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { discover, openManager } from '../dist/index.js';
import { podOf } from './support/inputs.mjs';
import { row } from './support/measure.mjs';
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

// Other grants are there, so that the state is of the size of a node in use.
async function measure(where, parent, target) {
  const stateDir = mkdtempSync(join(parent, 'numalign-bench-'));
  const manager = await openManager({ topology: await discover({ synthetic: MACHINE }), stateDir });
  try {
    for (let i = 0; i < 10; i++) await manager.acquire({ cpu: 2, memory: '1Gi', name: `service-${i}` });
    const [admits, releases, others] = [[], [], []];
    let bytes = readFileSync(join(stateDir, 'state.json'));
    for (let round = -1; round < ROUNDS; round++) {
      for (const ns of rawWrites(stateDir, bytes)) if (round >= 0) others.push(ns);
      for (let call = 0; call < CALLS; call++) {
        const pod = podOf({ cpu: 1 + (call % 4), memory: (1 + (call % 3)) * GIB });
        const begin = performance.now();
        const { uid } = await manager.admit(pod);
        const admitted = performance.now();
        bytes = readFileSync(join(stateDir, 'state.json'));
        const between = performance.now();
        await manager.release(uid);
        const released = performance.now();
        if (round < 0) continue;
        admits.push((admitted - begin) * 1e6);
        releases.push((released - between) * 1e6);
      }
    }
    const remark = `${statSync(join(stateDir, 'state.json')).size} bytes`;
    const about = { yardstick: 'raw write', ...target, remark };
    return [
      row(`admit, ${where}`, { samples: admits, others }, about),
      row(`release, ${where}`, { samples: releases, others }, about),
    ];
  } finally {
    manager.close();
    rmSync(stateDir, { recursive: true });
  }
}

export const run = async () => [
  ...(await measure('disk', tmpdir(), { limit: 1.3 })),
  ...(await measure('tmpfs', '/dev/shm', { limitNs: 200e3 })),
];

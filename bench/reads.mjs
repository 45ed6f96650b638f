// What a program reads repeatedly: the shared pool, its own CPUs, and sets as texts.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { affinity, threads } from '../dist/entries/diagnostics.js';
import { discover } from '../dist/entries/topology.js';
import { CpuSet, openManager } from '../dist/index.js';
import { measured } from './support/measure.mjs';
import { inTurn, randomNumbers, someOf } from './support/random.mjs';

export const description = 'sharedPool and grants of a manager, affinity, threads, and sets of 512 CPUs';

const GRANTS = 16;

function sets() {
  const random = randomNumbers(1);
  const all = CpuSet.parse('0-511');
  return Array.from({ length: 64 }, () => CpuSet.from(someOf(all, 256, random)));
}

async function ofManager() {
  const stateDir = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
  const topology = await discover({ synthetic: 'package:2 numa:2 core:32 pu:2' });
  const manager = await openManager({ topology, stateDir });
  try {
    for (let i = 0; i < GRANTS; i++) await manager.acquire({ cpu: 2, name: `service-${i}` });
    return [
      await measured(`manager.sharedPool(), ${GRANTS} grants`, () => manager.sharedPool()),
      await measured(`manager.grants(), ${GRANTS} grants`, () => manager.grants()),
    ];
  } finally {
    for (const { uid } of manager.grants()) await manager.release(uid);
    manager.close();
    rmSync(stateDir, { recursive: true });
  }
}

export async function run() {
  const all = sets();
  const [set, other] = [inTurn(all), inTurn([...all].reverse())];
  const text = inTurn(all.map(String));
  return [
    ...(await ofManager()),
    await measured('affinity()', () => affinity()),
    await measured('threads()', () => threads()),
    await measured('CpuSet.parse, 256 of 512', () => CpuSet.parse(text())),
    await measured('CpuSet.toString, 256 of 512', () => set().toString()),
    await measured('CpuSet.union', () => set().union(other())),
  ];
}

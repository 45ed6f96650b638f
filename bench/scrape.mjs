// What a scrape of the metrics costs, by the number of grants.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { discover } from '../dist/entries/topology.js';
import { openManager } from '../dist/index.js';
import { collectMetrics } from '../packages/metrics/dist/index.js';
import { measured } from './support/measure.mjs';

export const description = 'a scrape of @numalign/metrics, with 1, 64 and 512 grants';
export const explanation = `
On this machine the first grant has a CPU with the process on it, the others use the shared pool;
*audit* and *memory* are options of \`collectMetrics\`. The simulated machine has nothing to audit;
100 grants are shown by name, unless the row says *all by name*.`;

const COUNTS = [1, 64, 512];
const MACHINE = 'package:2 numa:4 core:80 pu:2';

/** The first grant has a CPU with threads on it, the others are in the shared pool. */
async function grantsOfThisMachine(manager, count) {
  const grant = await manager.acquire({ cpu: 1, name: 'gateway' });
  grant.pin();
  for (let i = 1; i < count; i++) await manager.admit({ name: `pod-${i}`, containers: [{ name: 'main' }] });
}

async function grantsOfASimulatedMachine(manager, count) {
  for (let i = 0; i < count; i++) await manager.acquire({ cpu: 1, name: `gateway-${i}` });
}

async function withManager(options, use) {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-bench-'));
  const manager = await openManager({ ...options, stateDir: join(folder, 'state') });
  try {
    return await use(manager);
  } finally {
    for (const { uid } of manager.grants()) await manager.release(uid);
    manager.close();
    rmSync(folder, { recursive: true });
  }
}

async function scraped(name, manager, options) {
  const { register, stop } = collectMetrics(manager, {
    register: new Registry(),
    requests: false,
    ...options,
  });
  try {
    const page = await register.metrics();
    return await measured(name, () => register.metrics(), {
      rounds: 9,
      least: 4,
      series: page.match(/^[^#\n]/gm).length,
    });
  } finally {
    stop();
  }
}

export async function run() {
  const topology = await discover({ synthetic: MACHINE });
  const rows = [];
  for (const count of COUNTS) {
    const grants = `${count} grant${count === 1 ? '' : 's'}`;
    await withManager({}, async (manager) => {
      await grantsOfThisMachine(manager, count);
      rows.push(await scraped(`this machine, ${grants}`, manager, {}));
      rows.push(await scraped(`this machine, ${grants}, audit`, manager, { audit: true }));
      // The others have no process.
      if (count > 1) return;
      const options = { audit: true, grants: { memory: true } };
      rows.push(await scraped(`this machine, ${grants}, audit and memory`, manager, options));
    });
    await withManager({ topology }, async (manager) => {
      await grantsOfASimulatedMachine(manager, count);
      const name = `1,280 CPUs, ${grants} of a CPU each`;
      rows.push(await scraped(name, manager, { audit: true }));
      const options = { audit: true, grants: { max: count } };
      if (count > 100) rows.push(await scraped(`${name}, all by name`, manager, options));
    });
  }
  return rows;
}

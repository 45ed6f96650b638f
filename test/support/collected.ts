// Managers whose metrics are collected, each in a registry of its own.
import { Registry } from 'prom-client';
import { onTestFinished } from 'vitest';
import { type Manager, type ManagerOptions, type ManagerView, openManager } from '../../lib/index.js';
import { collectMetrics, type MetricsOptions } from '../../packages/metrics/lib/index.js';
import { Scrape } from './scrape.js';
import { simulate } from './simulated.js';
import { makeStateDir } from './state-dir.js';

export const MACHINE = 'package:2 [numa(memory=8GiB)] core:4 pu:2';

export function collect(manager: ManagerView, options: MetricsOptions = {}) {
  const collection = collectMetrics(manager, { register: new Registry(), ...options });
  onTestFinished(() => collection.stop());
  const scrape = async () => new Scrape(await collection.register.metrics());
  return { ...collection, scrape };
}

export async function collected(options: ManagerOptions = {}, metricsOptions: MetricsOptions = {}) {
  const manager = await simulate(MACHINE, options);
  return { manager, ...collect(manager, metricsOptions) };
}

/** A manager of this machine, in a folder of its own. */
export async function openReal(): Promise<Manager> {
  const manager = await openManager({ stateDir: makeStateDir() });
  onTestFinished(() => manager.close());
  return manager;
}

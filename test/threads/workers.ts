// Workers that tell where they were born, and a grant for them.
import { once } from 'node:events';
import type { Worker } from 'node:worker_threads';
import { onTestFinished } from 'vitest';
import { type Grant, openManager } from '../../lib/index.js';
import { makeStateDir } from '../support/state-dir.js';

/**
 * Code that does not load numalign: sends its thread id, and the CPUs that it was born on, by what the
 * kernel says.
 */
export const PLAIN = `
  const { readFileSync, readlinkSync } = require('node:fs');
  const { parentPort, workerData } = require('node:worker_threads');
  const tid = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
  const mask = /Cpus_allowed_list:\\s*(.*)/.exec(readFileSync('/proc/thread-self/status', 'utf8'))[1];
  parentPort.postMessage({ tid, mask, workerData });
  setInterval(() => {}, 1000);`;

/** The first message of a Worker. */
export async function firstMessage(
  worker: Worker,
): Promise<{ tid: number; mask: string; workerData: unknown }> {
  return (await once(worker, 'message'))[0];
}

/** A grant of one CPU, until the test ends. */
export async function acquireCpu(stateDir = makeStateDir()): Promise<Grant> {
  const manager = await openManager({ stateDir });
  const grant = await manager.acquire({ cpu: 1 });
  onTestFinished(async () => {
    await grant.release();
    manager.close();
  });
  return grant;
}

// needs: process
// Workers: each has its own environment, and its grants end with it.
import { readdirSync, readlinkSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { affinity, threads } from '../../lib/entries/diagnostics.js';
import { discover } from '../../lib/entries/topology.js';
import { CpuSet, openManager, pin } from '../../lib/index.js';
import { budget } from '../support/budget.mjs';
import { makeStateDir } from '../support/state-dir.js';

const ENTRIES = ['index', 'entries/topology', 'entries/diagnostics'].map(
  (name) => new URL(`../../dist/${name}.js`, import.meta.url).href,
);
const ALL = affinity();

function startWorker(body: string, workerData: object = {}): Worker {
  const code = `
    const { parentPort, workerData, threadId } = require('node:worker_threads');
    Promise.all(${JSON.stringify(ENTRIES)}.map((url) => import(url)))
      .then((modules) => Object.assign({}, ...modules))
      .then(async (numalign) => { ${body} })
      .catch((error) => parentPort.postMessage({ error: String(error.code ?? error) + ' ' + error.message }));`;
  return new Worker(code, { eval: true, workerData });
}

const message = (worker: Worker): Promise<any> =>
  new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
  });

// Tests end without a release: the confinement of the process is not its own choice.
beforeEach(() => void pin(ALL));

describe('a Worker', () => {
  it('discovers, acquires, pins itself and releases, and has its role', async () => {
    const worker = startWorker(
      `const manager = await numalign.openManager({ stateDir: workerData.stateDir });
       await manager.use({ cpu: 1 }, (grant) => {
         grant.pin({ threads: 'current' });
         parentPort.postMessage({ cpus: String(grant.cpus), mask: String(numalign.affinity()), tid: numalign.threadId() });
       });
       await new Promise(() => setInterval(() => {}, 1000));`,
      { stateDir: makeStateDir() },
    );
    const { cpus, mask, tid, error } = await message(worker);
    expect(error).toBeUndefined();
    expect(mask).toBe(cpus);
    expect(threads().find((thread) => thread.tid === tid)?.role).toBe('worker');
    expect(affinity().equals(ALL.difference(CpuSet.parse(cpus)))).toBe(true);
    await worker.terminate();
    expect(threads().some((thread) => thread.tid === tid)).toBe(false);
  });

  it('loses its grants when it is terminated', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir });
    const worker = startWorker(
      `const manager = await numalign.openManager({ stateDir: workerData.stateDir });
       const grant = await manager.acquire({ cpu: 1 });
       grant.pin({ threads: 'current' });
       parentPort.postMessage(String(grant.cpus));
       await new Promise(() => setInterval(() => {}, 1000));`,
      { stateDir },
    );
    const cpus = await message(worker);
    expect(manager.grants()).toMatchObject([{ alive: true }]);
    await worker.terminate();
    expect(manager.grants().filter(({ alive }) => alive)).toEqual([]);
    const grant = await manager.acquire({ cpu: 1 });
    expect(String(grant.cpus)).toBe(cpus);
    await grant.release();
  });

  it('keeps a grant beyond its end only until the process has moved off its CPUs', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({ stateDir });
    const worker = startWorker(
      `const manager = await numalign.openManager({ stateDir: workerData.stateDir });
       const grant = await manager.acquire({ cpu: 1 });
       grant.pin({ threads: 'process' });
       parentPort.postMessage({ uid: grant.uid, cpus: String(grant.cpus) });`,
      { stateDir },
    );
    const { cpus } = await message(worker);
    expect(String(affinity())).toBe(cpus);
    await worker.terminate();
    // Without any transaction: the manager of the main thread handles it.
    await expect.poll(() => manager.grants()).toEqual([]);
    // They may go there once the commit is done.
    await expect
      .poll(() => new Set(threads().map(({ cpus }) => String(cpus))))
      .toEqual(new Set([String(ALL)]));
  });

  it('may be terminated at any moment, twenty at a time, in several rounds, without a leak', async () => {
    const stateDir = makeStateDir();
    const manager = await openManager({
      stateDir,
      topology: await discover({ synthetic: 'numa:2 core:32 pu:2' }),
    });
    const body = `
      const topology = await numalign.discover({ synthetic: 'numa:2 core:32 pu:2' });
      const manager = await numalign.openManager({ stateDir: workerData.stateDir, topology });
      parentPort.postMessage('open');
      for (;;) {
        const grant = await manager.acquire({ cpu: 1 + Math.floor(Math.random() * 2) });
        await numalign.discover();
        numalign.threads();
        if (Math.random() < 0.7) await grant.release();
      }`;
    // Descriptors by their targets, so that a failure names the leak.
    const fds = () =>
      readdirSync('/proc/self/fd')
        .flatMap((fd) => {
          try {
            return [readlinkSync(`/proc/self/fd/${fd}`)].filter((path) => path.includes(stateDir));
          } catch {
            return []; // the one that was reading the folder
          }
        })
        .sort();
    const tasks = () => readdirSync('/proc/self/task').length;
    await (await manager.acquire({ cpu: 1 })).release();
    const before = { fds: fds(), tasks: tasks() };
    for (let round = 0; round < budget({ all: 5, usual: 2 }); round++) {
      const workers = Array.from({ length: 20 }, () => startWorker(body, { stateDir }));
      const first = await Promise.all(workers.map(message));
      for (const answer of first) expect(answer).toBe('open');
      await Promise.all(
        workers.map(async (worker, i) => {
          await new Promise((resolve) => setTimeout(resolve, i * 3));
          await worker.terminate();
        }),
      );
      await (await manager.acquire({ cpu: 1 })).release();
      expect(manager.grants()).toEqual([]);
    }
    // A thread that waits for the lock on behalf of an ended Worker ends when its turn comes.
    await vi.waitFor(
      () => {
        expect(fds()).toEqual(before.fds);
        expect(tasks()).toBeLessThanOrEqual(before.tasks + 1);
      },
      { timeout: 10_000 },
    );
  });
});

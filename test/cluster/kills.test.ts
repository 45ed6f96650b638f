// needs: process
// Primaries and workers that are killed: no CPU is lost, and none is granted twice.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ForkOptions } from '../../lib/entries/cluster.js';
import { openManager } from '../../lib/index.js';
import { hasEnded } from '../../lib/processes/process-identity.js';
import { budget } from '../support/budget.mjs';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { ALL, fork, nextWorker, setUp } from './this-primary.js';

const PRIMARY = fileURLToPath(new URL('primary.mjs', import.meta.url));
const TIMES = budget({ all: 100, usual: 2 });
const MOST = ALL.size - 1;

interface Started {
  readonly pid: number;
  readonly cpus: string;
  readonly isGranted: boolean;
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** Another process as the primary of such workers, once they run. */
async function startPrimary(stateDir: string, forks: readonly ForkOptions[]) {
  const env = { ...process.env, STATE_DIR: stateDir, FORKS: JSON.stringify(forks) };
  const primary = spawn(process.execPath, [PRIMARY], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => kill(primary.pid!));
  const [line] = (await once(createInterface({ input: primary.stdout }), 'line')) as [string];
  const workers = JSON.parse(line) as Started[];
  onTestFinished(() => {
    for (const { pid } of workers) if (existsSync(`/proc/${pid}`)) kill(pid);
  });
  return { pid: primary.pid!, workers, ended: once(primary, 'exit') };
}

async function openFolder() {
  const stateDir = makeStateDir();
  const manager = await openManager({ stateDir, sharedMember: false });
  onTestFinished(() => manager.close());
  return { stateDir, manager };
}

describe('a primary that is killed', () => {
  it(`takes its workers with it, ${TIMES} times, and all CPUs are free again`, async () => {
    const { stateDir, manager } = await openFolder();
    const all = `${manager.freeCpus()}`;
    for (let i = 0; i < TIMES; i++) {
      const { pid, workers, ended } = await startPrimary(stateDir, [{ cpu: MOST }, { optional: true }]);
      expect(workers.map(({ isGranted }) => isGranted)).toEqual([true, false]);
      expect(manager.grants().map(({ cpus }) => `${cpus}`)).toEqual([workers[0]!.cpus]);
      // Perhaps one of them first, which is being forked again then.
      if (i % 3 > 0) kill(workers[(i % 3) - 1]!.pid);
      kill(pid);
      await ended;
      await expect.poll(() => workers.every((worker) => hasEnded(worker.pid))).toBe(true);
      await expect.poll(() => manager.grants()).toEqual([]);
      expect(`${manager.freeCpus()}`).toBe(all);
    }
  });

  it('leaves its CPUs to a worker that lives on, until that ends', async () => {
    const { stateDir, manager } = await openFolder();
    const mark = join(dirname(stateDir), 'mark');
    writeFileSync(mark, '');
    const deaf = { cpu: MOST, env: { TASK: 'deaf', MARK: mark } };
    const { pid, workers, ended } = await startPrimary(stateDir, [deaf]);
    const [worker] = workers as [Started];
    const { uid } = manager.grants()[0]!;
    kill(pid);
    await ended;
    await expect
      .poll(() => manager.status().grants[0]?.survivors)
      .toEqual([{ pid: worker.pid, command: 'node worker.mjs' }]);
    expect(await errorOf(() => manager.acquire({ cpu: 1 }))).toMatchObject({
      details: { reason: expect.any(String) },
    });
    expect(await errorOf(() => manager.release(uid))).toMatchObject({ code: 'ERR_OWNER_ALIVE' });
    expect(readFileSync(`/proc/${worker.pid}/status`, 'utf8')).toContain(
      `Cpus_allowed_list:\t${worker.cpus}\n`,
    );

    rmSync(mark);
    await expect.poll(() => manager.grants()).toEqual([]);
    await (await manager.acquire({ cpu: MOST })).release();
  });
});

describe('workers that are killed', () => {
  it(`have successors on their CPUs, ${TIMES} times, which stay theirs meanwhile`, async () => {
    const manager = await setUp();
    const all = `${manager.freeCpus()}`;
    for (let i = 0; i < TIMES; i++) {
      const { worker } = await fork({ cpu: MOST });
      const { cpus } = worker.grant!;
      const next = nextWorker();
      kill(worker.process.pid!);
      expect(await errorOf(() => manager.acquire({ cpu: 1 }))).toMatchObject({
        code: 'ERR_INSUFFICIENT_CPUS',
      });
      const again = await next;
      expect(again.grant!.cpus).toBe(cpus);
      expect(manager.grants()).toHaveLength(1);
      again.kill();
      await expect.poll(() => manager.grants()).toEqual([]);
      expect(`${manager.freeCpus()}`).toBe(all);
    }
  });
});

// needs: machine
// Workers that are born on a grant's CPUs.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity, threads } from '../../lib/entries/diagnostics.js';
import { CpuSet } from '../../lib/index.js';
import { startWorker } from '../../lib/threads/worker.js';
import { thrownBy } from '../support/error-of.js';
import { ALL, EVERYTHING, giveEverythingBack } from './everything.js';
import { acquireCpu, firstMessage, PLAIN } from './workers.js';

const mineName = () => readFileSync('/proc/thread-self/comm', 'utf8');

async function reportOf(worker: Worker): Promise<{ tid: number; mask: string; workerData: unknown }> {
  onTestFinished(async () => void (await worker.terminate()));
  return firstMessage(worker);
}

const threadOf = (tid: number) => threads().find((thread) => thread.tid === tid);

describe.runIf(ALL.size > 1)('grant.worker', () => {
  it('starts a Worker that is on the grant’s CPUs from its first instruction, and leaves this thread as it was', async () => {
    const grant = await acquireCpu();
    const name = mineName();
    const worker = grant.worker(PLAIN, { eval: true, workerData: 'for it' });
    expect(worker).toBeInstanceOf(Worker);
    // A shared member, which has left the CPUs of the grant.
    const shared = String(ALL.difference(grant.cpus));
    expect(String(affinity())).toBe(shared);
    expect(mineName()).toBe(name);
    const { tid, mask, workerData } = await reportOf(worker);
    expect([mask, workerData]).toEqual([String(grant.cpus), 'for it']);
    expect(threadOf(tid)?.role).toBe('worker');
    for (const thread of threads()) if (thread.tid !== tid) expect(String(thread.cpus)).toBe(shared);
  });

  it('has it leave when the grant is released, though nothing else was pinned', async () => {
    const grant = await acquireCpu();
    const { tid } = await reportOf(grant.worker(PLAIN, { eval: true }));
    const { moved } = await grant.release();
    expect(moved.map((thread) => thread.tid)).toEqual([tid]);
    expect(String(affinity(tid))).toBe(String(ALL));
  });

  it('knows it among threads that others start meanwhile', async () => {
    const grant = await acquireCpu();
    // A Worker that starts and ends Workers all the time.
    const breeder = new Worker(
      `const { Worker } = require('node:worker_threads');
       const breed = () => new Worker('0', { eval: true }).once('exit', breed);
       for (let i = 0; i < 3; i++) breed();`,
      { eval: true },
    );
    onTestFinished(async () => void (await breeder.terminate()));
    await once(breeder, 'online');
    for (let i = 0; i < 10; i++) {
      const { tid } = await reportOf(grant.worker(PLAIN, { eval: true }));
      // Where threads name themselves it may be unknown, but never mistaken.
      const known = threads().filter(({ role }) => role === 'worker');
      if (process.versions.node.startsWith('20.')) expect(known.map((thread) => thread.tid)).toContain(tid);
      expect(String(affinity(tid))).toBe(String(grant.cpus));
    }
  });

  it('forgets it when it has ended', async () => {
    const grant = await acquireCpu();
    const worker = grant.worker(PLAIN, { eval: true });
    const { tid } = await reportOf(worker);
    await worker.terminate();
    expect(threadOf(tid)).toBeUndefined();
    expect((await grant.release()).moved).toEqual([]);
  });

  it('refuses CPUs that are not the grant’s, and has this thread as it was where the Worker cannot be made', async () => {
    const grant = await acquireCpu();
    const name = mineName();
    const others = ALL.difference(grant.cpus);
    expect(thrownBy(() => grant.worker(PLAIN, { eval: true, cpus: others }))).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      details: { option: 'cpus' },
    });
    expect(thrownBy(() => grant.worker('neither absolute nor relative'))).toMatchObject({
      code: 'ERR_WORKER_PATH',
    });
    expect([String(affinity()), mineName()]).toEqual([String(others), name]);
    await grant.release();
    expect(thrownBy(() => grant.worker(PLAIN, { eval: true }))).toMatchObject({ code: 'ERR_GRANT_RELEASED' });
  });

  it('puts it where the Workers were placed', async () => {
    const grant = await acquireCpu();
    await grant.placeThreads({ workers: 'one-to-one' });
    const { mask } = await reportOf(grant.worker(PLAIN, { eval: true }));
    expect(mask).toBe(String(grant.cpus));
  });
});

describe.runIf(ALL.size > 1)('Workers on several CPUs', () => {
  giveEverythingBack();
  const start = (oneToOne: boolean, placed?: string) =>
    reportOf(startWorker({ ...EVERYTHING, oneToOne }, placed, PLAIN, { eval: true }));

  it('get all of them, or those that were placed, or one each of isolated ones', async () => {
    expect((await start(false)).mask).toBe(String(ALL));
    expect((await start(false, String(ALL.first))).mask).toBe(String(ALL.first));
    const masks = [];
    for (let i = 0; i < ALL.size; i++) masks.push((await start(false, 'one-to-one')).mask);
    expect(masks.map(Number).sort((a, b) => a - b)).toEqual(ALL.toArray());
    expect(CpuSet.parse((await start(true)).mask).size).toBe(1);
  });

  it('get all of them where the grant has lost those that were placed', async () => {
    const last = CpuSet.of(ALL.toArray().at(-1)!);
    const left = { ...EVERYTHING, cpus: ALL.difference(last) };
    const { mask } = await reportOf(startWorker(left, String(last), PLAIN, { eval: true }));
    expect(mask).toBe(String(left.cpus));
  });
});

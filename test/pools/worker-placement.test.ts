// needs: machine
// Workers of any package, placed at their birth.
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { getEventListeners, once } from 'node:events';
import { readFileSync } from 'node:fs';
import { getEnvironmentData, setEnvironmentData, Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { affinity, threads } from '../../lib/entries/diagnostics.js';
import { CpuSet, type Grant, type PlaceWorkersOptions } from '../../lib/index.js';
import { WorkerPlacement } from '../../lib/pools/worker-placement.js';
import { startWorker } from '../../lib/threads/worker.js';
import { errorOf } from '../support/error-of.js';
import { breakCommits } from '../support/full-disk.js';
import { makeStateDir } from '../support/state-dir.js';
import { ALL, EVERYTHING, giveEverythingBack } from '../threads/everything.js';
import { acquireCpu, firstMessage, PLAIN } from '../threads/workers.js';

function start(code = PLAIN): Worker {
  const worker = new Worker(code, { eval: true });
  onTestFinished(async () => void (await worker.terminate()));
  return worker;
}

const mine = () => [readFileSync('/proc/thread-self/comm', 'utf8'), String(affinity())];
const KEY = 'numalign.birth';

function stopAtEnd(placement: WorkerPlacement): WorkerPlacement {
  onTestFinished(() => placement.stop());
  return placement;
}

const place = async (grant: Grant, options?: PlaceWorkersOptions) =>
  stopAtEnd(await grant.placeWorkers(options));
const placeOnAll = (options: PlaceWorkersOptions = { oneToOne: true }) =>
  stopAtEnd(
    new WorkerPlacement(
      () => EVERYTHING,
      options,
      () => {},
    ),
  );

describe.runIf(ALL.size > 1)('grant.placeWorkers', () => {
  it('runs a plain Worker on the grant’s CPU from its first instruction, and restores this thread', async () => {
    const grant = await acquireCpu();
    const placement = await place(grant);
    const before = mine();
    const worker = start();
    expect(mine()).toEqual(before);
    const birth = placement.of(worker)!;
    expect(birth).toMatchObject({ worker, when: 'atBirth', reason: null });
    expect(String(birth.cpus)).toBe(String(grant.cpus));
    const { tid, mask } = await firstMessage(worker);
    expect([mask, String(affinity(tid))]).toEqual([String(grant.cpus), String(grant.cpus)]);
    expect(birth.tid).toBe(tid);
    expect(placement.workers).toEqual([birth]);
  });

  it('moves it away at the end of the grant, and places none from then on', async () => {
    const grant = await acquireCpu();
    const placement = await place(grant);
    const { tid } = await firstMessage(start());
    const { moved } = await grant.release();
    expect(moved.map((thread) => thread.tid)).toEqual([tid]);
    expect(placement.isActive).toBe(false);
    const late = start();
    expect((await firstMessage(late)).mask).toBe(String(affinity()));
    expect(placement.of(late)).toBeUndefined();
    expect(getEnvironmentData(KEY)).toBeUndefined();
  });

  it('places none that is born during a release, but places again after a failed one', async () => {
    const stateDir = makeStateDir();
    const grant = await acquireCpu(stateDir);
    const placement = await place(grant);
    const mend = breakCommits(stateDir);
    onTestFinished(mend);
    const release = errorOf(() => grant.release());
    const during = start();
    expect(placement.of(during)).toBeUndefined();
    expect(await release).toMatchObject({ code: 'ERR_SYSCALL', errnoName: 'EFBIG' });
    mend();
    expect(placement.isActive).toBe(true);
    const after = start();
    expect(placement.of(after)).toMatchObject({ when: 'atBirth' });
    expect((await firstMessage(after)).mask).toBe(String(grant.cpus));
  });

  it('does not move an unexpected one after the end of the grant', async () => {
    const grant = await acquireCpu();
    const placement = await place(grant);
    setEnvironmentData(KEY);
    await grant.release();
    const late = start();
    expect((await firstMessage(late)).mask).toBe(String(affinity()));
    expect(placement.of(late)).toBeUndefined();
  });

  it('places none that is born while unpin has yet to record that threads have left', async () => {
    const grant = await acquireCpu();
    const placement = await place(grant);
    const { tid } = await firstMessage(start());
    const cpus = String(grant.cpus);
    const unpinned = grant.unpin();
    while (String(affinity(tid)) === cpus) await new Promise(setImmediate);
    const late = start();
    const { mask } = await firstMessage(late);
    await unpinned;
    expect([mask, placement.of(late)]).toEqual([String(affinity()), undefined]);
  });

  it('leaves no listener at its signal when it ends, by itself or with the grant', async () => {
    const grant = await acquireCpu();
    const { signal } = new AbortController();
    const first = await place(grant, { signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    first.stop();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    await place(grant, { signal });
    await grant.release();
    await firstMessage(start());
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it('distinguishes its Workers from those of grant.worker and of another thread', async () => {
    const grant = await acquireCpu();
    const placement = await place(grant);
    const granted = grant.worker(PLAIN, { eval: true });
    onTestFinished(async () => void (await granted.terminate()));
    expect(placement.of(granted)).toBeUndefined();
    expect((await firstMessage(granted)).mask).toBe(String(grant.cpus));
    expect(placement.workers).toEqual([]);
  });

  it('ends by stop, by its signal, and by unpin', async () => {
    const grant = await acquireCpu();
    const here = String(affinity());
    const abort = new AbortController();
    const first = await place(grant, { signal: abort.signal });
    abort.abort();
    expect(first.isActive).toBe(false);
    const second = await place(grant);
    second[Symbol.dispose]();
    second.stop();
    const third = await place(grant);
    await grant.unpin();
    expect([second.isActive, third.isActive]).toEqual([false, false]);
    expect(getEnvironmentData(KEY)).toBeUndefined();
    const worker = start();
    expect((await firstMessage(worker)).mask).toBe(here);
    expect(third.of(worker)).toBeUndefined();
  });

  it('refuses invalid options, and places no Worker then', async () => {
    const grant = await acquireCpu();
    const options: [PlaceWorkersOptions, object][] = [
      [{ cpus: ALL.difference(grant.cpus) }, { code: 'ERR_INVALID_OPTION' }],
      [{ part: 'none' }, { code: 'ERR_UNKNOWN_PART' }],
      [{ oneToOn: true } as PlaceWorkersOptions, { details: { nearest: 'oneToOne' } }],
      [{ oneToOne: 1 } as unknown as PlaceWorkersOptions, { code: 'ERR_INVALID_OPTION' }],
      [{ signal: true } as unknown as PlaceWorkersOptions, { code: 'ERR_INVALID_OPTION' }],
      [{ signal: AbortSignal.abort() }, { name: 'AbortError' }],
    ];
    for (const [each, expected] of options)
      expect(await errorOf(() => grant.placeWorkers(each))).toMatchObject(expected);
    expect(getEnvironmentData(KEY)).toBeUndefined();
    await grant.release();
    expect(await errorOf(() => grant.placeWorkers())).toMatchObject({ code: 'ERR_GRANT_RELEASED' });
  });
});

describe.runIf(ALL.size > 1)('Workers with a CPU each', () => {
  giveEverythingBack();
  const cpuOf = (placement: WorkerPlacement, worker: Worker) => placement.of(worker)!.cpus.first!;
  const sorted = (numbers: number[]) => [...numbers].sort((a, b) => a - b);

  it('are spread evenly and identified, however many are born at once', async () => {
    const breeder = start(
      `const { Worker } = require('node:worker_threads');
       const breed = () => new Worker('0', { eval: true }).once('exit', breed);
       for (let i = 0; i < 2; i++) breed();
       require('node:worker_threads').parentPort.postMessage(0);`,
    );
    await once(breeder, 'message');
    const placement = placeOnAll();
    const before = mine();
    // libuv's pool and files of its own, in between.
    const workers = Array.from({ length: 2 * ALL.size }, () => {
      readFileSync(import.meta.filename);
      return start();
    });
    expect(mine()).toEqual(before);
    const births = workers.map((worker) => placement.of(worker)!);
    const words = await Promise.all(workers.map(firstMessage));
    expect(sorted(words.map(({ mask }) => Number(mask)))).toEqual(
      sorted([...ALL.toArray(), ...ALL.toArray()]),
    );
    expect(births.map(({ cpus }) => String(cpus))).toEqual(words.map(({ mask }) => mask));
    expect(new Set(births.map(({ when }) => when))).toEqual(new Set(['atBirth']));
    // Where threads name themselves it may be unknown, but never mistaken.
    const isNamed = !process.versions.node.startsWith('20.');
    for (const [i, { tid }] of words.entries())
      expect([tid, ...(isNamed ? [null] : [])]).toContain(births[i]!.tid);
  });

  it('give their CPU back, which the next one gets', async () => {
    const placement = placeOnAll();
    const workers = ALL.toArray().map(() => start());
    await Promise.all(workers.map(firstMessage));
    for (const worker of workers) {
      const cpu = cpuOf(placement, worker);
      await worker.terminate();
      const next = start();
      expect((await firstMessage(next)).mask).toBe(String(cpu));
    }
    expect(placement.workers).toHaveLength(ALL.size);
  });

  it('do not share one while another is free, though the next is born before the last has ended', async () => {
    const placement = placeOnAll({ cpus: CpuSet.from(ALL.toArray().slice(0, 2)), oneToOne: true });
    const [low, high] = ALL.toArray() as [number, number];
    const [kept, ending] = [start(), start()];
    await Promise.all([kept, ending].map(firstMessage));
    expect([cpuOf(placement, kept), cpuOf(placement, ending)]).toEqual([low, high]);
    const heir = start();
    const { tid } = await firstMessage(heir);
    expect(cpuOf(placement, heir)).toBe(low);
    await ending.terminate();
    expect(String(affinity(tid))).toBe(String(high));
    expect(placement.workers.map(({ cpus }) => cpus.first)).toEqual([low, high]);
  });

  it('are placed by the last placement', async () => {
    const [low, high] = ALL.toArray() as [number, number];
    const first = placeOnAll({ cpus: String(low) });
    const second = placeOnAll({ cpus: String(high) });
    expect((await firstMessage(start())).mask).toBe(String(high));
    second.stop();
    expect((await firstMessage(start())).mask).toBe(String(low));
    expect([first.workers.length, second.workers.length]).toEqual([1, 1]);
  });

  it('are placed by the one before where the grant of the last has ended', async () => {
    const [low, high] = ALL.toArray() as [number, number];
    const grant = await acquireCpu();
    const free = grant.cpus.first === low ? high : low;
    const first = placeOnAll({ cpus: String(free) });
    const second = await place(grant);
    expect((await firstMessage(start())).mask).toBe(String(grant.cpus));
    await grant.release();
    expect((await firstMessage(start())).mask).toBe(String(free));
    expect([first.isActive, second.isActive]).toEqual([true, false]);
  });

  it('are distinguished from those of a grant that start right after a failed constructor', async () => {
    const [low, high] = ALL.toArray() as [number, number];
    const placement = placeOnAll({ cpus: String(low) });
    const before = mine();
    setEnvironmentData('numalign.test', (() => {}) as unknown as string);
    expect(() => start()).toThrow('could not be cloned');
    setEnvironmentData('numalign.test');
    const granted = startWorker(EVERYTHING, String(high), PLAIN, { eval: true });
    onTestFinished(async () => void (await granted.terminate()));
    expect(mine()).toEqual(before);
    expect(placement.of(granted)).toBeUndefined();
    expect((await firstMessage(granted)).mask).toBe(String(high));
  });

  it('are identified by their threads even if another subscriber of their births starts one', async () => {
    const placement = placeOnAll({ cpus: String(ALL.first) });
    const inner: Worker[] = [];
    const startAnother = () => {
      unsubscribe('worker_threads', startAnother);
      inner.push(startWorker(EVERYTHING, String(ALL.toArray().at(-1)), PLAIN, { eval: true }));
    };
    // Before the placement's own.
    placement.stop();
    subscribe('worker_threads', startAnother);
    const second = placeOnAll({ cpus: String(ALL.first) });
    const outer = start();
    onTestFinished(async () => void (await inner[0]!.terminate()));
    const birth = second.of(outer)!;
    const [own, other] = await Promise.all([outer, inner[0]!].map(firstMessage));
    expect([birth.tid, birth.when, own!.mask]).toEqual([own!.tid, 'atBirth', String(ALL.first)]);
    expect([other!.mask, second.of(inner[0]!)]).toEqual([String(ALL.toArray().at(-1)), undefined]);
  });

  it('restore this thread if their constructor fails after its place was made', async () => {
    const placement = placeOnAll({ cpus: String(ALL.first) });
    const before = mine();
    setEnvironmentData('numalign.test', (() => {}) as unknown as string);
    try {
      expect(() => start()).toThrow('could not be cloned');
    } finally {
      setEnvironmentData('numalign.test');
    }
    // Nothing tells but the next turn, or the next Worker.
    const next = start();
    expect(mine()).toEqual(before);
    expect(placement.of(next)).toMatchObject({ when: 'atBirth', tid: (await firstMessage(next)).tid });
    setEnvironmentData('numalign.test', (() => {}) as unknown as string);
    expect(() => start()).toThrow('could not be cloned');
    setEnvironmentData('numalign.test');
    await new Promise((resolve) => process.nextTick(resolve));
    expect(mine()).toEqual(before);
  });

  it('are found in the kernel’s list if nothing announced their birth', async () => {
    const placement = placeOnAll({ cpus: String(ALL.first) });
    setEnvironmentData(KEY);
    const worker = start();
    expect(placement.of(worker)).toMatchObject({ when: 'afterBirth', reason: null });
    const { tid } = await firstMessage(worker);
    expect(placement.of(worker)!.tid).toBe(tid);
    expect(String(affinity(tid))).toBe(String(ALL.first));
    const second = start();
    expect(placement.of(second)).toMatchObject({ when: 'afterBirth', tid: (await firstMessage(second)).tid });
  });

  it('are not moved if the kernel’s list shows other new threads', async () => {
    const breeder = start(
      `const { parentPort, Worker } = require('node:worker_threads');
       parentPort.once('message', () =>
         new Worker('setInterval(() => {}, 1000)', { eval: true }).once('online', () => parentPort.postMessage(0)));
       parentPort.postMessage(1);`,
    );
    await once(breeder, 'message');
    const placement = placeOnAll({ cpus: String(ALL.first) });
    setEnvironmentData(KEY);
    breeder.postMessage('breed');
    await once(breeder, 'message');
    const masks = () => new Map(threads().map(({ tid, cpus }) => [tid, String(cpus)]));
    const before = masks();
    const worker = start();
    expect(placement.of(worker)).toMatchObject({
      when: 'never',
      tid: null,
      reason: expect.stringContaining('2 threads'),
    });
    const { tid, mask } = await firstMessage(worker);
    expect(mask).toBe(String(ALL));
    for (const [each, cpus] of masks()) if (each !== tid) expect(cpus).toBe(before.get(each));
  });
});

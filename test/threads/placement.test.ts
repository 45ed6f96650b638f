// needs: machine
// Which kind of thread runs where: by the masks within this process, and by the kernel for a busy
// program.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { threads } from '../../lib/entries/diagnostics.js';
import { CpuSet, openManager, type PlaceThreadsOptions, type PlaceThreadsResult } from '../../lib/index.js';
import { needsOneToOne } from '../../lib/threads/granted-threads.js';
import { placeThreads } from '../../lib/threads/placement.js';
import { startWorker } from '../../lib/threads/worker.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { ALL, EVERYTHING, giveEverythingBack, ofWholePool } from './everything.js';
import { runProgram } from './placed-program.mjs';

const FIRST = CpuSet.of(ALL.first!);
const REST = ALL.difference(FIRST);
// Two, so that the pool has threads for each of them, however many CPUs there are.
const ISOLATED = { ...EVERYTHING, cpus: CpuSet.from(ALL.toArray().slice(0, 2)), oneToOne: true };
const hasPool = ({ pool }: PlaceThreadsResult) => pool.guaranteed;
const areNamed = threads().some(({ role }) => role === 'v8');

const masksOf = (role: string) =>
  threads()
    .filter((thread) => thread.role === role)
    .map(({ cpus }) => String(cpus));
const allMasks = () => threads().map(({ tid, cpus }) => [tid, String(cpus)]);

function sleeper(target = EVERYTHING): Worker {
  const worker = startWorker(target, undefined, 'setInterval(() => {}, 1000)', { eval: true });
  onTestFinished(async () => void (await worker.terminate()));
  return worker;
}

describe.runIf(ALL.size > 1)('placing threads', () => {
  giveEverythingBack();

  it('puts every kind in its place, and reports the moves', async () => {
    sleeper();
    sleeper();
    const placement = { main: FIRST, workers: REST, pool: 'one-to-one', others: String(REST) };
    const result = await ofWholePool(() => placeThreads(() => EVERYTHING, placement), hasPool);
    expect(masksOf('main')).toEqual([String(FIRST)]);
    expect(masksOf('worker')).toEqual([String(REST), String(REST)]);
    expect(masksOf('other').every((mask) => mask === String(REST))).toBe(true);
    expect(masksOf('v8').every((mask) => mask === String(areNamed ? ALL : REST))).toBe(true);
    for (const mask of masksOf('pool')) expect(CpuSet.parse(mask).size).toBe(1);
    expect(result.main).toMatchObject({ moved: [{ tid: process.pid, cpus: FIRST }], guaranteed: true });
    expect(result.pool).toMatchObject({ unmovable: [], guaranteed: true });
    expect(result.pool.moved.length).toBe(masksOf('pool').length);
    expect([result.workers.moved.length, result.workers.guaranteed]).toEqual([2, false]);
    expect([result.others.guaranteed, result.guaranteed]).toEqual([false, false]);
  });

  it('leaves every thread on all CPUs of the grant by default', async () => {
    await placeThreads(() => EVERYTHING, { main: FIRST });
    await placeThreads(() => EVERYTHING, {});
    for (const { cpus } of threads()) expect(String(cpus)).toBe(String(ALL));
  });

  it('puts each thread on one CPU if the CPUs are isolated, and separates those that run JavaScript', async () => {
    sleeper(ISOLATED);
    const result = await ofWholePool(() => placeThreads(() => ISOLATED, {}), hasPool);
    for (const { cpus } of threads()) expect(cpus.size).toBe(1);
    expect(masksOf('main')).not.toEqual(masksOf('worker'));
    expect(result.pool.guaranteed).toBe(true);
    expect(new Set(masksOf('pool')).size).toBe(2);
    const refused = await errorOf(() =>
      placeThreads(() => ISOLATED, { main: { cpus: ISOLATED.cpus, oneToOne: false } }),
    );
    expect(refused).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option: 'main.oneToOne' } });
  });

  it('does not separate V8’s helpers from others if they have no names', async () => {
    const before = allMasks();
    const placement = { main: FIRST, v8: FIRST, others: REST };
    if (areNamed) {
      await placeThreads(() => EVERYTHING, placement);
      for (const mask of masksOf('v8')) expect(mask).toBe(String(FIRST));
      return;
    }
    const error = await errorOf(() => placeThreads(() => EVERYTHING, placement));
    expect(error).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option: 'v8' } });
    expect(error.message).toContain(process.versions.node);
    expect(allMasks()).toEqual(before);
  });

  it('refuses invalid placements, and moves nothing', async () => {
    const beyond = CpuSet.of(ALL.toArray().at(-1)! + 1);
    const before = allMasks();
    for (const options of [
      { main: beyond },
      { main: '' },
      { main: 3 as never },
      { workers: { cpu: '0' } as never },
      { pool: { cpus: String(beyond), oneToOne: true } },
      { pool: { oneToOne: 'yes' as never } },
      { worker: FIRST } as PlaceThreadsOptions,
      { replace: 1 as never },
    ]) {
      expect(await errorOf(() => placeThreads(() => EVERYTHING, options))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      });
    }
    expect(await errorOf(() => placeThreads(() => EVERYTHING, { main: '1-' }))).toMatchObject({
      code: 'ERR_INVALID_LIST',
    });
    expect(allMasks()).toEqual(before);
  });

  it('does not take threads that are pinned for another grant, except with replace', async () => {
    const worker = sleeper();
    const tid = threads().find(({ role }) => role === 'worker')!.tid;
    native.undoPin(EVERYTHING.grant, ALL.words);
    native.pin({
      tid: tid,
      cpus: FIRST.words,
      grant: 'another',
      part: '',
      owner: 'this test',
      replace: false,
    });
    const before = allMasks();
    const error = await errorOf(() => placeThreads(() => EVERYTHING, { main: REST }));
    expect(error).toMatchObject({ code: 'ERR_ALREADY_PINNED', details: { tid, grant: 'another' } });
    expect(allMasks()).toEqual(before);
    await placeThreads(() => EVERYTHING, { workers: REST, replace: true });
    expect(masksOf('worker')).toEqual([String(REST)]);
    native.undoPin('another', ALL.words);
    expect(masksOf('worker')).toEqual([String(REST)]);
    expect(worker.threadId).toBeGreaterThan(0);
  });

  it('is needed one to one for several isolated CPUs, however they are isolated', () => {
    const cpus = CpuSet.parse('2-3');
    expect(needsOneToOne({ cpus, enforcement: 'isolated' }, CpuSet.EMPTY)).toBe(true);
    expect(needsOneToOne({ cpus, enforcement: 'recorded' }, CpuSet.parse('3-7'))).toBe(true);
    expect(needsOneToOne({ cpus, enforcement: 'partition' }, CpuSet.parse('4-7'))).toBe(false);
    expect(needsOneToOne({ cpus: FIRST, enforcement: 'isolated' }, ALL)).toBe(false);
  });
});

describe.runIf(ALL.size > 1)('a grant', () => {
  it('places its threads, reports how many can run at a time, and gets none back after its end', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    expect(grant.availableParallelism).toBe(1);
    await grant.placeThreads();
    for (const { cpus } of threads()) expect(String(cpus)).toBe(String(grant.cpus));
    // The pool is asked first: by the time it has answered the grant is released.
    const late = errorOf(() => grant.placeThreads({ main: grant.cpus }));
    await grant.release();
    expect(await late).toMatchObject({ code: 'ERR_GRANT_RELEASED' });
    for (const { cpus } of threads()) expect(String(cpus)).toBe(String(ALL));
  });

  it('of a simulated machine places nothing', async () => {
    const { simulate } = await import('../support/simulated.js');
    const grant = await (await simulate('core:4 pu:1')).acquire({ cpu: 2 });
    for (const action of [
      () => grant.placeThreads(),
      () => grant.prewarmPool(),
      () => grant.worker('./x.js'),
    ]) {
      expect(await errorOf(action)).toMatchObject({ code: 'ERR_SIMULATED_MACHINE' });
    }
    expect(grant.availableParallelism).toBe(2);
  });
});

describe.runIf(ALL.size > 1)('under thread churn', () => {
  it('a placement never promises completeness, only for the main thread and the pool', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const breeder = new Worker(
      `const { Worker } = require('node:worker_threads');
       const breed = () => new Worker('0', { eval: true }).once('exit', breed);
       for (let i = 0; i < 4; i++) breed();`,
      { eval: true },
    );
    await once(breeder, 'online');
    const born = new Set<number>();
    const wasChurn = () => born.size > threads().length + 15;
    for (let round = 0; round < 15 || !wasChurn(); round++) {
      const grant = await manager.acquire({ cpu: 1 });
      const result = await ofWholePool(() => grant.placeThreads(), hasPool);
      expect([result.guaranteed, result.others.guaranteed, result.workers.guaranteed]).toEqual([
        false,
        false,
        false,
      ]);
      expect(grant.pin().guaranteed).toBe(false);
      expect([result.main.guaranteed, result.pool.guaranteed]).toEqual([true, true]);
      for (const { tid, role, cpus } of threads()) {
        born.add(tid);
        if (role === 'main' || role === 'pool')
          expect([role, String(cpus)]).toEqual([role, String(grant.cpus)]);
      }
      await grant.release();
    }
    await breeder.terminate();
    for (const { cpus } of threads()) expect(String(cpus)).toBe(String(ALL));
  });
});

describe.runIf(ALL.size > 1)('a busy program', () => {
  it('runs every thread only in its place: main thread, pool, Workers, and garbage collection', async () => {
    const { pid, placed, seen, ended } = await runProgram({ stateDir: makeStateDir(), cpu: 1 });
    const { kinds, grant } = placed;
    expect(placed.guaranteed).toEqual({ all: false, main: true, pool: true, workers: false });
    expect(kinds.main).toEqual([pid]);
    expect([...kinds.workers].sort()).toEqual([...placed.workerTids].sort());
    expect(kinds.pool.length).toBe(Number(process.env.UV_THREADPOOL_SIZE ?? 4));
    // All of them have worked since: the kernel has put them on a CPU again.
    for (const tid of [...kinds.main, ...kinds.workers, ...kinds.pool]) expect(seen.has(tid)).toBe(true);
    expect([...kinds.v8, ...kinds.others].some((tid) => seen.has(tid))).toBe(true);
    for (const [tid, cpus] of seen) expect([tid, [...cpus].join()]).toEqual([tid, grant]);
    expect(ended).toMatchObject({ left: [] });
    expect(ended.jobs).toBeGreaterThan(0);
  });
});

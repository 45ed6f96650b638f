// needs: machine
// Pools of the packages that programs use, on the CPUs of a grant.
import { fileURLToPath } from 'node:url';
import { Piscina } from 'piscina';
import { Tinypool } from 'tinypool';
import { describe, expect, it, onTestFinished } from 'vitest';
import workerpool from 'workerpool';
import { affinity } from '../../lib/entries/diagnostics.js';
import { openManager } from '../../lib/index.js';
import { WorkerPlacement } from '../../lib/pools/worker-placement.js';
import { thrownBy } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { ALL, EVERYTHING, giveEverythingBack } from '../threads/everything.js';

const JOBS = fileURLToPath(new URL('jobs.cjs', import.meta.url));

interface Where {
  tid: number;
  born: string;
  now: string;
}

/** A pool, by what the tests do with it. */
interface Pool {
  run(job?: 'end'): Promise<Where>;
}

const atEnd = <T>(pool: T, end: (pool: T) => unknown): T => {
  onTestFinished(async () => void (await end(pool)));
  return pool;
};

const POOLS: Record<string, (size: number) => Pool> = {
  piscina: (size) => {
    const options = { filename: JOBS, minThreads: size, maxThreads: size };
    const pool = atEnd(new Piscina(options), (each) => each.destroy());
    return { run: (job) => pool.run(job ?? 'where') };
  },
  tinypool: (size) => {
    const options = { filename: JOBS, minThreads: size, maxThreads: size };
    const pool = atEnd(new Tinypool(options), (each) => each.destroy());
    return { run: (job) => pool.run(job ?? 'where') };
  },
  workerpool: (size) => {
    const pool = atEnd(
      workerpool.pool(JOBS, {
        minWorkers: size,
        maxWorkers: size,
        workerType: 'thread',
        workerThreadOpts: { env: { ...process.env, NUMALIGN_TEST_POOL: 'workerpool' } },
      }),
      (each) => each.terminate(true),
    );
    return { run: async () => (await pool.exec('where', [])) as Where };
  },
};

/** So many of its Workers as have run a job by the time that `count` have. */
async function whereAll(pool: Pool, count: number): Promise<Map<number, Where>> {
  const seen = new Map<number, Where>();
  while (seen.size < count)
    for (const each of await Promise.all(Array.from({ length: 4 * count }, () => pool.run())))
      seen.set(each.tid, each);
  return seen;
}

describe.runIf(ALL.size > 1).each(Object.keys(POOLS))('a pool of %s', (name) => {
  giveEverythingBack();

  it('runs each Worker on its own CPU from its first line of code', async () => {
    using placement = new WorkerPlacement(
      () => EVERYTHING,
      { oneToOne: true },
      () => {},
    );
    const pool = POOLS[name]!(ALL.size);
    const seen = await whereAll(pool, ALL.size);
    const births = [...placement.workers];
    expect(births.map(({ when }) => when)).toEqual(births.map(() => 'atBirth'));
    expect(births.map(({ cpus }) => cpus.first).sort()).toEqual(ALL.toArray());
    expect(births.map(({ tid }) => tid).sort()).toEqual([...seen.keys()].sort());
    for (const { tid, cpus } of births) {
      expect(seen.get(tid!)).toEqual({ tid, born: String(cpus), now: String(cpus) });
      expect(String(affinity(tid!))).toBe(String(cpus));
    }
  });
});

describe.runIf(ALL.size > 1)('the successor of a Worker', () => {
  giveEverythingBack();
  const cpus = (placement: WorkerPlacement) => placement.workers.map((each) => each.cpus.first).sort();

  it('has the CPU of the ended one', async () => {
    using placement = new WorkerPlacement(
      () => EVERYTHING,
      { oneToOne: true },
      () => {},
    );
    const pool = POOLS.piscina!(ALL.size);
    const before = await whereAll(pool, ALL.size);
    await pool.run('end').catch(() => {});
    const after = await whereAll(pool, ALL.size);
    await expect.poll(() => placement.workers.length).toBe(ALL.size);
    expect(cpus(placement)).toEqual(ALL.toArray());
    expect([...after.keys()].filter((tid) => !before.has(tid))).toHaveLength(1);
  });

  it('has its own CPU, job by job', async () => {
    using placement = new WorkerPlacement(
      () => EVERYTHING,
      { oneToOne: true },
      () => {},
    );
    const options = { minThreads: ALL.size, maxThreads: ALL.size, isolateWorkers: true };
    const pool = atEnd(new Tinypool({ filename: JOBS, ...options }), (each) => each.destroy());
    const tids = new Set<number>();
    for (let job = 0; job < 3 * ALL.size; job++) {
      const { tid, born } = await pool.run('where');
      expect(ALL.toArray().map(String)).toContain(born);
      tids.add(tid);
    }
    expect(tids.size).toBe(3 * ALL.size);
    await expect.poll(() => placement.workers.length).toBe(ALL.size);
    expect(cpus(placement)).toEqual(ALL.toArray());
  });
});

describe.runIf(ALL.size > 1)('grant.poolOptions', () => {
  it('asks for a Worker per CPU of the grant, in the options of each package', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    const grant = await manager.acquire({ cpu: 1 });
    onTestFinished(async () => {
      await grant.release();
      manager.close();
    });
    expect(grant.poolOptions('piscina')).toEqual({ minThreads: 1, maxThreads: 1 });
    expect(grant.poolOptions('tinypool')).toEqual({ minThreads: 1, maxThreads: 1 });
    expect(grant.poolOptions('workerpool', { cpus: grant.cpus })).toEqual({
      minWorkers: 1,
      maxWorkers: 1,
      workerType: 'thread',
    });
    for (const name of ['toString', 'poolifier'])
      expect(thrownBy(() => grant.poolOptions(name as 'piscina'))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
        details: { value: name, valid: 'one of piscina, tinypool, workerpool' },
      });
    expect(thrownBy(() => grant.poolOptions('piscina', { part: 'io' }))).toMatchObject({
      code: 'ERR_UNKNOWN_PART',
    });
  });
});

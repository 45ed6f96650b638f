// needs: nothing
// The size of a pool, in the words of the packages.
import { expect, it } from 'vitest';
import { poolOfSize } from '../../lib/pools/pool-options.js';

it('is fixed: as many Workers at least as at most', () => {
  const threads = { minThreads: 3, maxThreads: 3 };
  expect([poolOfSize('piscina', 3), poolOfSize('tinypool', 3)]).toEqual([threads, threads]);
  expect(poolOfSize('workerpool', 3)).toEqual({ minWorkers: 3, maxWorkers: 3, workerType: 'thread' });
});

// needs: nothing
// The numbers of threads for a child.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { threadCounts } from '../../lib/children/thread-counts.js';

const ALL = Object.keys(threadCounts(1, {}));

describe('threadCounts', () => {
  it('are the number of CPUs, except that libuv keeps its four', () => {
    const { UV_THREADPOOL_SIZE, ...computing } = threadCounts(2, {});
    expect(new Set(Object.values(computing))).toEqual(new Set(['2']));
    expect(UV_THREADPOOL_SIZE).toBe('4');
    expect(threadCounts(6, {}).UV_THREADPOOL_SIZE).toBe('6');
  });

  it('keep variables of the environment, even empty ones, and set all others', () => {
    fc.assert(
      fc.property(
        fc.subarray(ALL),
        fc.constantFrom('', '3'),
        fc.integer({ min: 1, max: 999 }),
        (set, text, cpus) => {
          const environment = { ...Object.fromEntries(set.map((name) => [name, text])), OTHER: '1' };
          const missing = Object.keys(threadCounts(cpus, environment));
          expect([...missing, ...set].sort()).toEqual([...ALL].sort());
        },
      ),
    );
  });
});

// needs: nothing
// The pauses after failures, and attempts that go on by themselves.
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Backoff, type Pauses, retry } from '../../lib/base/notices/backoff.js';

const pauses = (options: Pauses, failures: number) => {
  const backoff = new Backoff(options);
  return Array.from({ length: failures }, () => backoff.next());
};

describe('a backoff', () => {
  it('makes each pause twice as long as the one before, up to the longest', () => {
    expect(pauses({ firstMs: 100, longestMs: 1000 }, 6)).toEqual([100, 200, 400, 800, 1000, 1000]);
  });

  it('makes no pause after the failures that are free', () => {
    expect(pauses({ firstMs: 100, longestMs: 1000, free: 2 }, 4)).toEqual([0, 0, 100, 200]);
  });

  it('makes half of a pause random', () => {
    const random = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(random, (share) => {
        const [first, second] = pauses({ firstMs: 500, longestMs: 30_000, random: () => share }, 2);
        expect([first, second]).toEqual([250 + 250 * share, 500 + 500 * share].map(Math.round));
      }),
    );
  });

  it('pauses at least as long as it is told', () => {
    const backoff = new Backoff({ firstMs: 100, longestMs: 1000, free: 1 });
    expect([backoff.next(70), backoff.next(70), backoff.next(700)]).toEqual([70, 120, 800]);
  });

  it('begins again after a success', () => {
    const backoff = new Backoff({ firstMs: 100, longestMs: 1000 });
    for (let i = 0; i < 5; i++) backoff.next();
    expect(backoff.failures).toBe(5);
    backoff.reset();
    expect([backoff.failures, backoff.next()]).toEqual([0, 100]);
  });
});

describe('what is tried again', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  const failing = (times: number) => {
    const at: number[] = [];
    const start = Date.now();
    return {
      at,
      attempt: () => {
        at.push(Date.now() - start);
        if (at.length <= times) throw new Error(`failure ${at.length}`);
      },
    };
  };

  it('is tried after each pause until it succeeds', async () => {
    const { at, attempt } = failing(3);
    await retry(attempt);
    await vi.runAllTimersAsync();
    expect(at).toEqual([0, 50, 150, 350]);
  });

  it('is tried for the first time before the call returns', () => {
    const { at, attempt } = failing(0);
    void retry(attempt);
    expect(at).toEqual([0]);
  });

  it('resolves after the first attempt', async () => {
    const { at, attempt } = failing(1);
    await retry(attempt);
    expect(at).toEqual([0]);
  });

  it('is tried again if it returns false, which is no error', async () => {
    const attempt = vi.fn(() => attempt.mock.calls.length > 1);
    const onError = vi.fn();
    await retry(attempt, { onError });
    await vi.runAllTimersAsync();
    expect([attempt.mock.calls.length, onError.mock.calls.length]).toEqual([2, 0]);
  });

  it('reports each error, and which is the last', async () => {
    const { at, attempt } = failing(Number.POSITIVE_INFINITY);
    const onError = vi.fn();
    await retry(attempt, { firstMs: 20, longestMs: 20, mostAttempts: 3, onError });
    await vi.runAllTimersAsync();
    expect(at).toEqual([0, 20, 40]);
    expect(onError.mock.calls.map(([error, isLast]) => [error.message, isLast])).toEqual([
      ['failure 1', false],
      ['failure 2', false],
      ['failure 3', true],
    ]);
  });

  it('does not keep the process alive meanwhile', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    await retry(failing(1).attempt);
    const timer = timers.mock.results[0]!.value as NodeJS.Timeout;
    expect(timer.hasRef()).toBe(false);
  });
});

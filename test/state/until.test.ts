// needs: nothing
// Looks at what others change, until there is a value, and the queue of a state in memory.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { periodically, until, untilRung } from '../../lib/state/until.js';
import { MemoryQueue } from '../../lib/state/wait-queue.js';
import { errorOf } from '../support/error-of.js';

/** Something that rings, and whether anyone still hears it. */
function bell() {
  const rings = new Set<() => void>();
  const watch = (ring: () => void) => {
    rings.add(ring);
    return () => void rings.delete(ring);
  };
  const ring = () => {
    for (const each of rings) each();
  };
  return { rings, watch, ring };
}

const turn = () => new Promise(setImmediate);

describe('a look that is repeated', () => {
  it('ends with the first value, at once if there is one', async () => {
    const { watch, rings, ring } = bell();
    expect(await untilRung(watch, undefined, () => 'there')).toBe('there');
    expect(rings.size).toBe(0);
    const looks = vi.fn<() => number | undefined>(() => undefined);
    const waiting = untilRung(watch, undefined, looks);
    await turn();
    expect([looks.mock.calls.length, rings.size]).toEqual([1, 1]);
    ring();
    await turn();
    expect(looks).toHaveBeenCalledTimes(2);
    looks.mockReturnValue(0);
    ring();
    expect(await waiting).toBe(0);
    expect([looks.mock.calls.length, rings.size]).toEqual([3, 0]);
  });

  it('misses no change while it looks', async () => {
    const { watch, ring } = bell();
    let looks = 0;
    const look = async () => {
      looks++;
      if (looks === 1) ring();
      await turn();
      return looks === 2 ? looks : undefined;
    };
    expect(await untilRung(watch, undefined, look)).toBe(2);
  });

  it('ends with the error of a look, and with the signal’s reason, before and while it waits', async () => {
    const { watch, rings } = bell();
    const fail = () => {
      throw new Error('no look');
    };
    expect((await errorOf(() => untilRung(watch, undefined, fail))).message).toBe('no look');
    const looks = vi.fn(() => undefined);
    const aborted = AbortSignal.abort(new Error('enough'));
    expect((await errorOf(() => untilRung(watch, aborted, looks))).message).toBe('enough');
    expect(looks).not.toHaveBeenCalled();
    const controller = new AbortController();
    const waiting = errorOf(() => untilRung(watch, controller.signal, looks));
    await turn();
    controller.abort(new Error('later'));
    expect((await waiting).message).toBe('later');
    expect([looks.mock.calls.length, rings.size]).toEqual([1, 0]);
  });

  it('leaves no listener at its signal', async () => {
    const { watch } = bell();
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, 'removeEventListener');
    await untilRung(watch, signal, () => true);
    expect(remove).toHaveBeenCalledTimes(1);
  });
});

describe('twice a second', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('it rings besides what is watched, until it is stopped', () => {
    const { watch, ring, rings } = bell();
    const heard = vi.fn();
    const stop = periodically(watch, heard);
    ring();
    expect(heard).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(1000);
    expect(heard).toHaveBeenCalledTimes(3);
    stop();
    vi.advanceTimersByTime(1000);
    expect([heard.mock.calls.length, rings.size, vi.getTimerCount()]).toEqual([3, 0, 0]);
  });

  it('a store is looked at, and at each commit', async () => {
    const { watch, ring } = bell();
    const store = { watch: vi.fn(watch) };
    let looks = 0;
    const waiting = until(store, undefined, () => (++looks === 4 ? 'there' : undefined));
    expect(store.watch).toHaveBeenCalledWith(expect.any(Function), { atOnce: true });
    await vi.advanceTimersByTimeAsync(1000);
    expect(looks).toBe(3);
    ring();
    expect(await waiting).toBe('there');
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('a queue in memory', () => {
  it('has an order, in which the end of the first wakes the next alone', () => {
    const queue = new MemoryQueue();
    expect(queue.isFirst(undefined)).toBe(true);
    const [first, second, third] = [queue.join(), queue.join(), queue.join()];
    expect([first, second, third].map(({ number }) => number)).toEqual([1, 2, 3]);
    expect([undefined, first, second].map((ticket) => queue.isFirst(ticket))).toEqual([false, true, false]);
    expect(queue.predecessorOf(first)).toBeUndefined();
    const woken: string[] = [];
    const [before, beforeThird] = [queue.predecessorOf(second)!, queue.predecessorOf(third)!];
    before.watch(() => woken.push('second'));
    const end = beforeThird.watch(() => woken.push('third'));
    expect([before.isWaiting(), beforeThird.isWaiting()]).toEqual([true, true]);
    queue.leave(first);
    expect([woken, before.isWaiting(), beforeThird.isWaiting()]).toEqual([['second'], false, true]);
    end();
    queue.leave(second);
    expect([woken, queue.isFirst(third)]).toEqual([['second'], true]);
    queue.leave(third);
    expect(queue.isFirst(undefined)).toBe(true);
    expect(queue.join(7).number).toBe(7);
    expect(queue.join().number).toBe(8);
  });
});

// needs: process
// Requests of one process that wait for the state's lock, which the kernel gives or does not.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NumalignError } from '../../lib/base/errors.js';
import type { NativeFolder, NativeLock } from '../../lib/base/native-files.js';
import { StateLock } from '../../lib/state/state-lock.js';
import { errorOf, thrownBy } from '../support/error-of.js';

const PATH = '/tmp/some/state';
const OPTIONS = { lockTimeoutMs: 1000, totalOn: () => 0 };

type Give = (error: Error | undefined, lock?: NativeLock) => void;

/** A lock that is free or not, and the requests that wait for it in the kernel. */
function lockOf() {
  const world = {
    isFree: false,
    refuses: undefined as Error | undefined,
    commits: 0,
    text: '0000000000000003\n17 other\n',
  };
  const tries: (boolean | undefined)[] = [];
  const gives: Give[] = [];
  const nexts: (() => void)[] = [];
  const prepare = vi.fn();
  const givenUp: number[] = [];
  const released: string[] = [];
  const lockBy = (name: string) => ({ release: () => void released.push(name) }) as unknown as NativeLock;
  const folder = {
    tryLock: (_: string, __: string, pastWaiting?: boolean) => {
      tries.push(pastWaiting);
      if (world.refuses) throw world.refuses;
      return world.isFree ? lockBy('tried') : undefined;
    },
    waitLock: (_: string, __: string, give: Give, next: () => void) => {
      nexts.push(next);
      return gives.push(give) - 1;
    },
    giveUp: (request: number) => void givenUp.push(request),
    read: () => Buffer.from(world.text),
    version: () => `1:${world.commits}:1`,
  } as unknown as NativeFolder;
  const lock = new StateLock(PATH, folder, prepare);
  return { world, tries, gives, nexts, prepare, givenUp, released, lockBy, lock };
}

beforeEach(
  () => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }),
);
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

const turn = () => new Promise(setImmediate);
const refusal = (errno: number) => new NumalignError('ERR_SYSCALL', 'no', { errno, syscall: 'fcntl' });

describe('the lock of a state', () => {
  it('is taken at once if it is free, but not past a request that waits', async () => {
    const { lock, world, tries, gives, lockBy } = lockOf();
    world.isFree = true;
    expect(lock.take(OPTIONS)).not.toBeInstanceOf(Promise);
    world.isFree = false;
    const waiting = lock.take(OPTIONS);
    world.isFree = true;
    const second = lock.take(OPTIONS);
    expect([waiting, second].every((each) => each instanceof Promise)).toBe(true);
    expect(tries).toEqual([undefined, undefined]);
    const [first, next] = [lockBy('first'), lockBy('second')];
    gives[0]!(undefined, first);
    expect(await waiting).toBe(first);
    gives[1]!(undefined, next);
    expect(await second).toBe(next);
    expect(lock.take(OPTIONS)).not.toBeInstanceOf(Promise);
  });

  it('is tried past the turnstile now and then, by the first request alone', async () => {
    const { lock, world, tries, givenUp } = lockOf();
    const options = { ...OPTIONS, lockTimeoutMs: 9000 };
    const [waiting, second] = [lock.take(options), lock.take(options)];
    vi.advanceTimersByTime(510);
    expect(tries).toEqual([undefined, true, true]);
    world.isFree = true;
    vi.advanceTimersByTime(250);
    expect([givenUp, tries.length]).toEqual([[0], 4]);
    await waiting;
    vi.advanceTimersByTime(250);
    expect([givenUp, tries.length]).toEqual([[0, 1], 5]);
    await second;
  });

  it('is prepared for once only its holder is before a request that still waits', async () => {
    const { lock, gives, nexts, prepare, lockBy } = lockOf();
    const waiting = lock.take(OPTIONS);
    expect(prepare).not.toHaveBeenCalled();
    nexts[0]!();
    expect(prepare).toHaveBeenCalledTimes(1);
    gives[0]!(undefined, lockBy('first'));
    await waiting;
    nexts[0]!();
    expect(prepare).toHaveBeenCalledTimes(1);
  });

  it('is not tried past the turnstile while others commit, whose lines are read meanwhile', async () => {
    const { lock, world, tries, prepare } = lockOf();
    const waiting = lock.take({ ...OPTIONS, lockTimeoutMs: 9000 });
    world.isFree = true;
    for (const [looks, wait] of [250, 240, 240].entries()) {
      vi.advanceTimersByTime(wait);
      world.commits++;
      vi.advanceTimersByTime(10);
      expect([tries.length, prepare.mock.calls.length]).toEqual([1, looks + 1]);
    }
    vi.advanceTimersByTime(250);
    await waiting;
    expect(tries).toEqual([undefined, true]);
  });

  it('goes back if it comes after the request was given up', async () => {
    const { lock, gives, givenUp, released, lockBy, tries } = lockOf();
    const controller = new AbortController();
    const waiting = errorOf(() => lock.take({ ...OPTIONS, signal: controller.signal }));
    controller.abort(new Error('enough'));
    expect(await waiting).toMatchObject({ message: 'enough' });
    expect(givenUp).toEqual([0]);
    gives[0]!(undefined, lockBy('late'));
    gives[0]!(new Error('gone'));
    expect(released).toEqual(['late']);
    vi.advanceTimersByTime(5000);
    expect(tries).toEqual([undefined]);
  });

  it('is given up after a time, with the name of its holder, unless it is free then', async () => {
    const { lock, world, tries } = lockOf();
    const waiting = errorOf(() => lock.take({ ...OPTIONS, lockTimeoutMs: 100 }));
    vi.advanceTimersByTime(99);
    await turn();
    expect(tries).toEqual([undefined]);
    vi.advanceTimersByTime(1);
    expect(await waiting).toMatchObject({
      code: 'ERR_LOCK_TIMEOUT',
      message: `the state in ${PATH} is locked by process 17 other; gave up after 100 ms`,
      details: { holder: '17 other', pid: 17, stopped: false, lockTimeoutMs: 100 },
    });
    expect(tries).toEqual([undefined, true]);
    const again = lock.take({ ...OPTIONS, lockTimeoutMs: 100 });
    world.isFree = true;
    vi.advanceTimersByTime(100);
    expect(await again).toHaveProperty('release');
    world.text = '';
    world.isFree = false;
    const unknown = errorOf(() => lock.take({ ...OPTIONS, lockTimeoutMs: 100 }));
    vi.advanceTimersByTime(100);
    expect(await unknown).toMatchObject({ details: { holder: 'an unknown process', pid: null } });
  });

  it('is not waited for if the kernel refuses it, which is explained', async () => {
    const { lock, world, gives } = lockOf();
    const [waiting, second] = [errorOf(() => lock.take(OPTIONS)), errorOf(() => lock.take(OPTIONS))];
    const explained = { code: 'ERR_STATE_FOLDER', details: { value: PATH } };
    gives[1]!(refusal(37));
    expect(await second).toMatchObject(explained);
    world.refuses = refusal(37);
    vi.advanceTimersByTime(260);
    expect(await waiting).toMatchObject(explained);
    expect(thrownBy(() => lock.take(OPTIONS))).toMatchObject(explained);
  });
});

// needs: nothing
// The start and the end of a worker, in any order of its events.
import type { Worker } from 'node:cluster';
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { WorkerLife } from '../../lib/cluster/worker-life.js';
import { errorOf } from '../support/error-of.js';

/** A worker of node:cluster, whose events come from the test. */
function newLife() {
  const child = Object.assign(new EventEmitter(), {
    pid: 17,
    exitCode: null as number | null,
    signalCode: null as string | null,
    kill: vi.fn(() => true),
  });
  const state = { isDead: false, isConnected: true };
  const worker = Object.assign(new EventEmitter(), {
    id: 3,
    process: child,
    exitedAfterDisconnect: undefined as boolean | undefined,
    isDead: () => state.isDead,
    isConnected: () => state.isConnected,
    disconnect: vi.fn(),
    destroy: vi.fn(),
  });
  const { destroy } = worker;
  const steps: string[] = [];
  const life = new WorkerLife(
    worker as unknown as Worker,
    () => steps.push('ending'),
    () => steps.push('ended'),
  );
  const exit = (code: number | null, signal: string | null = null) => {
    state.isDead = true;
    Object.assign(child, { exitCode: code, signalCode: signal });
    child.emit('exit', code, signal);
    worker.emit('exit', code, signal);
  };
  return { life, worker, child, state, steps, destroy, exit };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
afterEach(() => {
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('a worker serves', () => {
  it('once it is online, or listens if it must, also if that was before', async () => {
    const { life, worker } = newLife();
    const online = life.untilReady(false, 1000);
    worker.emit('online');
    await online;
    await life.untilReady(false, 1000);
    expect(life.listens).toBe(false);
    const listening = life.untilReady(true, 1000);
    worker.emit('listening');
    await listening;
    await life.untilReady(true, 1000);
    expect(life.listens).toBe(true);
    expect([worker.listenerCount('exit'), worker.listenerCount('online')]).toEqual([0, 0]);
  });

  it('not, if it ends before, or is dead already', async () => {
    const { life, exit } = newLife();
    const failing = errorOf(() => life.untilReady(true, 1000));
    exit(7);
    expect(await failing).toMatchObject({
      code: 'ERR_WORKER_START',
      details: { value: 3, pid: 17, exitCode: 7, signal: null },
      message: expect.stringContaining(
        'worker 3 (process 17) has ended (exit code 7) before it was listening',
      ),
    });
    const dead = newLife();
    dead.exit(null, 'SIGKILL');
    expect(await errorOf(() => dead.life.untilReady(false, 1000))).toMatchObject({
      details: { exitCode: null, signal: 'SIGKILL' },
      message: expect.stringContaining('has ended (SIGKILL) before it was online'),
    });
  });

  it('not, if it takes too long', async () => {
    const { life, worker } = newLife();
    const failing = errorOf(() => life.untilReady(false, 1000));
    vi.advanceTimersByTime(999);
    expect(worker.listenerCount('exit')).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await failing).toMatchObject({ code: 'ERR_WORKER_START', details: { startDeadlineMs: 1000 } });
    expect(worker.listenerCount('exit')).toBe(0);
  });
});

describe('the end of a worker', () => {
  it('is told before its listeners hear it, and after them', async () => {
    const { child, exit, steps, life } = newLife();
    child.on('exit', () => steps.push('listener'));
    vi.advanceTimersByTime(50);
    expect(life.ageMs).toBe(50);
    exit(1);
    expect(steps).toEqual(['ending', 'listener']);
    await new Promise(process.nextTick);
    expect(steps).toEqual(['ending', 'listener', 'ended']);
  });

  it('is by choice after disconnect(), kill() or exit code 0, and no other', () => {
    const choice = (act: (made: ReturnType<typeof newLife>) => void) => {
      const made = newLife();
      act(made);
      return made.life.hasEndedByChoice;
    };
    expect([
      choice(({ exit }) => exit(0)),
      choice(({ worker, exit }) => {
        worker.exitedAfterDisconnect = true;
        exit(1);
      }),
      choice(({ worker, destroy, exit }) => {
        (worker.destroy as (signal: string) => void)('SIGTERM');
        expect(destroy).toHaveBeenCalledWith('SIGTERM');
        exit(null, 'SIGTERM');
      }),
    ]).toEqual([true, true, true]);
    expect(choice(({ exit }) => exit(1))).toBe(false);
    expect(choice(({ exit }) => exit(null, 'SIGKILL'))).toBe(false);
  });

  it('comes after disconnect(), or by SIGKILL after the deadline', async () => {
    const { life, worker, child, exit } = newLife();
    const ending = life.end(1000);
    expect(worker.disconnect).toHaveBeenCalledTimes(1);
    expect(() => worker.emit('error', new Error('nothing can be sent'))).not.toThrow();
    vi.advanceTimersByTime(999);
    expect(child.kill).not.toHaveBeenCalled();
    exit(0);
    expect(await ending).toBe(false);
    const lingering = newLife();
    const killing = lingering.life.end(1000);
    vi.advanceTimersByTime(1000);
    expect(lingering.child.kill.mock.calls).toEqual([['SIGKILL']]);
    lingering.exit(null, 'SIGKILL');
    expect(await killing).toBe(true);
  });

  it('needs nothing if it is dead, and no command if it is disconnected', async () => {
    const dead = newLife();
    dead.exit(1);
    expect(await dead.life.end(0)).toBe(false);
    expect(dead.worker.disconnect).not.toHaveBeenCalled();
    const disconnected = newLife();
    disconnected.state.isConnected = false;
    const ending = disconnected.life.end(1000);
    expect(disconnected.worker.disconnect).not.toHaveBeenCalled();
    disconnected.exit(0);
    expect(await ending).toBe(false);
  });
});

describe('a worker that the kernel does not start', () => {
  it('has the error, and neither an end nor a need for one', async () => {
    expect(newLife().life.failure).toBeUndefined();
    const ends: string[] = [];
    const none = Object.assign(new EventEmitter(), { pid: undefined, exitCode: null });
    const unstarted = Object.assign(new EventEmitter(), { id: 4, process: none, destroy: () => {} });
    const failed = new WorkerLife(
      unstarted as unknown as Worker,
      () => ends.push('ending'),
      () => ends.push('ended'),
    );
    const error = new Error('ENOENT');
    unstarted.emit('error', error);
    expect(await failed.failure).toBe(error);
    none.emit('exit', 1, null);
    expect(await failed.end(1000)).toBe(false);
    expect(ends).toEqual([]);
  });
});

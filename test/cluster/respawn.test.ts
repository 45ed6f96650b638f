// needs: process
// The end of a worker, and its CPUs afterwards.
import { once } from 'node:events';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { ForkOptions, GrantedWorker } from '../../lib/entries/cluster.js';
import { errorOf } from '../support/error-of.js';
import { uncaught } from '../support/uncaught.js';
import { ALL, cluster, firstLine, fork, nextWorker, setUp } from './this-primary.js';

/** Warnings during a test. */
function warnings(): string[] {
  const seen: string[] = [];
  const note = ({ message }: Error) => void seen.push(message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return seen;
}

describe('a worker that dies', () => {
  it('is forked again on the same grant, which was never free', async () => {
    const manager = await setUp();
    const { worker } = await fork({ env: { MARK: 'kept' } });
    const free: string[] = [];
    const note = () => void free.push(`${manager.freeCpus()}`);
    cluster.once('exit', note);
    const next = nextWorker();
    process.kill(worker.process.pid!, 'SIGTERM');
    const again = await next;
    expect(again.id).not.toBe(worker.id);
    expect(again.grant).toBe(worker.grant);
    const { uid, cpus } = worker.grant!;
    expect(await firstLine(again)).toEqual({ cpus: `${cpus}`, grant: uid, granted: `${cpus}`, mark: 'kept' });
    expect(free).toEqual([`${manager.freeCpus()}`]);
    expect(manager.grants()).toMatchObject([{ uid }]);
  });

  it('is not forked again after the limit of short lives, with a warning', async () => {
    const manager = await setUp();
    const seen = warnings();
    let forks = 0;
    const count = () => void forks++;
    cluster.on('fork', count);
    onTestFinished(() => void cluster.off('fork', count));
    await fork({ respawn: { limit: 2 }, env: { TASK: 'exit', MARK: '1' } });
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(forks).toBe(2);
    await expect.poll(() => seen).toEqual([expect.stringMatching(/^worker \d+ is not forked again/)]);
  });

  it('is not forked again if it has no CPUs and the manager was closed, with a warning', async () => {
    const manager = await setUp();
    const seen = warnings();
    const { worker } = await fork({ cpu: 4096, optional: true });
    manager.close();
    process.kill(worker.process.pid!, 'SIGTERM');
    const message = `worker ${worker.id} is not forked again: the manager has been closed: open another`;
    await expect.poll(() => seen).toEqual([message]);
    // It has lost its place.
    expect(await cluster.restart()).toEqual([]);
  });

  it('is forked again whatever the limit if it has lived for ten seconds', async () => {
    await setUp();
    const { worker } = await fork({ respawn: { limit: 1 } });
    const now = performance.now.bind(performance);
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 10_000);
    onTestFinished(() => clock.mockRestore());
    const next = nextWorker();
    process.kill(worker.process.pid!, 'SIGKILL');
    expect((await next).grant).toBe(worker.grant);
  });

  it('takes CPUs again if they were released meanwhile', async () => {
    const manager = await setUp();
    const seen = warnings();
    const { worker } = await fork({ env: { TASK: 'exit', MARK: '1' } });
    // The third comes after a while.
    await nextWorker();
    const [second] = await once(cluster, 'exit');
    const next = nextWorker();
    await worker.grant!.release();
    const third = await next;
    expect(third.id).toBeGreaterThan(second.id);
    expect(third.grant!.uid).not.toBe(worker.grant!.uid);
    expect(manager.grants()).toMatchObject([{ uid: third.grant!.uid }]);
    await firstLine(third);
    expect(seen).toEqual([]);
  });

  it('gets CPUs if it had none and there are some now', async () => {
    const manager = await setUp();
    const other = await manager.acquire({ cpu: ALL.size - 1 });
    const { worker } = await fork({ optional: true });
    await other.release();
    const next = nextWorker();
    process.kill(worker.process.pid!, 'SIGKILL');
    const again = await next;
    expect([worker.grant, again.grant!.cpus.size]).toEqual([null, 1]);
  });

  it.each<[what: string, settings: object, before: object]>([
    ['node:cluster refuses', { stdio: ['ignore', 'ignore', 'ignore'] }, { stdio: undefined }],
    ['the kernel refuses', { cwd: '/no/such/folder' }, { cwd: undefined }],
  ])('is tried again if %s to fork it, with a warning', async (_, settings, before) => {
    await setUp();
    const seen = warnings();
    const { worker } = await fork();
    cluster.setupPrimary(settings);
    onTestFinished(() => cluster.setupPrimary(before));
    process.kill(worker.process.pid!, 'SIGKILL');
    await expect.poll(() => seen).toContainEqual(expect.stringMatching(/cannot be forked again/));
    const serving = once(cluster, 'online');
    cluster.setupPrimary(before);
    const [again] = await serving;
    expect(again.grant).toBe(worker.grant);
  });

  it('is forked again although a listener of its end throws', async () => {
    await setUp();
    const seen = uncaught();
    const { worker } = await fork();
    const next = nextWorker();
    cluster.once('exit', () => {
      throw new Error('bug in exit');
    });
    process.kill(worker.process.pid!, 'SIGKILL');
    expect((await next).grant).toBe(worker.grant);
    expect(seen).toEqual(['bug in exit']);
  });

  it('is not forked again if the cluster is disconnected while its successor acquires CPUs', async () => {
    const manager = await setUp();
    const other = await manager.acquire({ cpu: ALL.size - 1 });
    const { worker } = await fork({ optional: true });
    await other.release();
    const { acquire } = manager;
    const acquired = new Promise((resolve) => {
      const disconnectFirst: typeof acquire = (options: never) => {
        cluster.disconnect();
        const grant = acquire.call(manager, options);
        resolve(grant);
        return grant;
      };
      Object.assign(manager, { acquire: disconnectFirst });
    });
    let forks = 0;
    const count = () => void forks++;
    cluster.on('fork', count);
    onTestFinished(() => void cluster.off('fork', count));
    process.kill(worker.process.pid!, 'SIGKILL');
    await acquired;
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(forks).toBe(0);
  });

  it('is not the worker of a later fork', async () => {
    const manager = await setUp();
    const { worker } = await fork({ optional: true });
    const next = nextWorker();
    process.kill(worker.process.pid!, 'SIGKILL');
    const again = await next;
    const { worker: later } = await fork({ optional: true });
    expect(Object.values(cluster.workers!)).toEqual([again, later]);
    expect([manager.grants().length, later.grant]).toEqual([1, null]);
  });
});

describe('a listener of exit that forks', () => {
  /** The result of the listener's fork, and the number of workers that are forked. */
  function forkAtExit(options?: ForkOptions) {
    let forks = 0;
    const count = () => void forks++;
    cluster.on('fork', count);
    onTestFinished(() => void cluster.off('fork', count));
    const forked = new Promise<GrantedWorker>((resolve, reject) => {
      cluster.once('exit', () => void cluster.fork(options).then(resolve, reject));
    });
    return { forked, forks: () => forks };
  }

  it('gets the successor of the dead worker, with the environment that it requests', async () => {
    const manager = await setUp();
    const { worker } = await fork({ env: { MARK: 'old' } });
    const { forked, forks } = forkAtExit({ env: { MARK: 'new' } });
    process.kill(worker.process.pid!, 'SIGKILL');
    const again = await forked;
    expect([again.grant, await firstLine(again)]).toMatchObject([worker.grant, { mark: 'new' }]);
    expect([forks(), Object.values(cluster.workers!)]).toEqual([1, [again]]);
    expect(manager.grants()).toHaveLength(1);
  });

  it('gets its own request in place of the worker’s', async () => {
    const manager = await setUp();
    const { worker } = await fork();
    const { forked, forks } = forkAtExit({ name: 'other' });
    process.kill(worker.process.pid!, 'SIGKILL');
    const again = await forked;
    await firstLine(again);
    expect(manager.grants()).toMatchObject([{ uid: again.grant!.uid, name: 'other' }]);
    expect([forks(), Object.values(cluster.workers!)]).toEqual([1, [again]]);
  });

  it('forks another if the worker is not forked again', async () => {
    await setUp();
    const { worker } = await fork({ optional: true });
    const { forked } = forkAtExit({ optional: true });
    worker.kill();
    expect((await forked).id).toBe(worker.id + 1);
  });

  it('forks a single worker that is not forked again', async () => {
    const manager = await setUp();
    const { worker } = await fork({ optional: true });
    const { forked, forks } = forkAtExit({ optional: true, respawn: false });
    process.kill(worker.process.pid!, 'SIGKILL');
    const again = await forked;
    await firstLine(again);
    expect([forks(), Object.values(cluster.workers!)]).toEqual([1, [again]]);
    const its = again.grant ? [again.grant.uid] : [];
    await expect.poll(() => manager.grants().map(({ uid }) => uid)).toEqual(its);
  });

  it('forks another beside the successor if it forks twice', async () => {
    await setUp();
    const { worker } = await fork({ optional: true });
    const both = new Promise<GrantedWorker[]>((resolve, reject) => {
      const two = () => Promise.all([1, 2].map(() => cluster.fork({ optional: true })));
      cluster.once('exit', () => void two().then(resolve, reject));
    });
    process.kill(worker.process.pid!, 'SIGKILL');
    const [next, other] = await both;
    expect(next).not.toBe(other);
    expect([next!.grant, other!.grant]).toEqual([worker.grant, null]);
  });

  it('is refused if no worker comes, without an unhandled error', async () => {
    await setUp();
    const options = { env: { TASK: 'exit', MARK: '1' }, respawn: { limit: 1 } };
    await cluster.fork(options);
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    const [answer] = await new Promise<[Promise<GrantedWorker>]>((resolve) => {
      cluster.once('exit', () => resolve([cluster.fork(options)]));
    });
    await new Promise(setImmediate);
    expect(unhandled).toEqual([]);
    expect(await errorOf(() => answer)).toMatchObject({ code: 'ERR_WORKER_START' });
  });
});

describe('a worker that ends by choice', () => {
  const ends: [why: string, options: ForkOptions, end: (worker: GrantedWorker) => unknown][] = [
    ['is disconnected', {}, (worker) => worker.disconnect()],
    ['is killed by cluster', {}, (worker) => worker.kill()],
    ['exits with 0', { env: { TASK: 'exit', MARK: '0' } }, () => {}],
    [
      'is not to be forked again',
      { respawn: false },
      (worker) => process.kill(worker.process.pid!, 'SIGKILL'),
    ],
  ];
  it.each(ends)('because it %s is not forked again, and its CPUs are given back', async (_, options, end) => {
    const manager = await setUp();
    const seen = warnings();
    const { worker } = await fork(options);
    const ended = worker.isDead() ? undefined : once(worker, 'exit');
    end(worker);
    await ended;
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(Object.values(cluster.workers!)).toEqual([]);
    expect(seen).toEqual([]);
  });

  it('has its CPUs given back though the first try fails', async () => {
    const manager = await setUp();
    const { worker } = await fork();
    const grant = worker.grant!;
    const { release } = grant;
    let tries = 0;
    grant.release = () => (tries++ === 0 ? Promise.reject(new Error('locked')) : release.call(grant));
    worker.kill();
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(tries).toBe(2);
  });

  it('does not end its primary by the error of a message that it cannot get', async () => {
    const manager = await setUp();
    const { worker } = await fork();
    const disconnected = new Promise<void>((resolve) => cluster.disconnect(resolve));
    worker.emit('error', Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
    await disconnected;
    await expect.poll(() => manager.grants()).toEqual([]);
  });

  it('has no delayed successor once the cluster is disconnected', async () => {
    const manager = await setUp();
    await fork({ env: { TASK: 'exit', MARK: '1' } });
    await nextWorker();
    // The third comes after a while.
    await once(cluster, 'exit');
    expect(manager.grants()).toHaveLength(1);
    await new Promise<void>((resolve) => cluster.disconnect(resolve));
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(Object.values(cluster.workers!)).toEqual([]);
  });
});

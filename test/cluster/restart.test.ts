// needs: process
// Rolling restarts, on a machine where not every worker can have CPUs besides another.
import { once } from 'node:events';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { GrantedWorker, Replacement } from '../../lib/entries/cluster.js';
import { errorOf } from '../support/error-of.js';
import { uncaught } from '../support/uncaught.js';
import { ALL, cluster, EXEC, fork, nextWorker, setUp } from './this-primary.js';

const shown = ({ before, worker, overlapped, killed }: Replacement) => ({
  before: before.id,
  worker: worker.id,
  overlapped,
  killed,
});

/** A free port. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function serve(port: number, options: object = {}): Promise<GrantedWorker> {
  const worker = await cluster.fork({ ...options, env: { TASK: 'serve', MARK: `${port}` } });
  await once(worker, 'listening');
  return worker;
}

/** The workers that answer, each time over a new connection. */
const ask = (port: number) =>
  new Promise<number>((resolve, reject) => {
    get({ port, host: '127.0.0.1', agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => {
        text += part;
      });
      response.on('end', () => resolve(Number(text)));
    }).on('error', reject);
  });

describe('a rolling restart', () => {
  it('replaces every worker, at once if there are CPUs for both, and refuses no connection', async () => {
    const manager = await setUp();
    const port = await freePort();
    const whole = { cpu: ALL.size - 1 };
    const workers = [await serve(port, whole), await serve(port, { ...whole, optional: true })];
    const [grant] = workers.map((worker) => worker.grant);
    let isOver = false;
    const answers = new Set<number>();
    const asking = (async () => {
      while (!isOver) answers.add(await ask(port));
    })();
    const replaced = await cluster.restart();
    isOver = true;
    await asking;
    const next = replaced.map(({ worker }) => worker);
    expect(replaced.map(shown)).toEqual([
      { before: workers[0]!.id, worker: next[0]!.id, overlapped: false, killed: false },
      { before: workers[1]!.id, worker: next[1]!.id, overlapped: true, killed: false },
    ]);
    expect(Object.values(cluster.workers!)).toEqual(next);
    expect(next.map((worker) => worker.grant)).toEqual([grant, null]);
    expect(manager.grants()).toMatchObject([{ uid: grant!.uid }]);
    // Old and new ones.
    expect(answers.size).toBeGreaterThan(1);
    for (const worker of next) answers.add(worker.process.pid!);
    const known = [...workers, ...next].map((worker) => worker.process.pid);
    expect([...answers].filter((pid) => !known.includes(pid))).toEqual([]);
  });

  it('kills a worker that does not end in time, and says so', async () => {
    await setUp();
    const { worker } = await fork({ env: { TASK: 'linger' } });
    const [replaced] = await cluster.restart({ deadlineMs: 200 });
    expect(replaced).toMatchObject({ before: worker, overlapped: false, killed: true });
    expect(worker.process.signalCode).toBe('SIGKILL');
    expect([replaced!.worker.grant, replaced!.worker.isDead()]).toEqual([worker.grant, false]);
  });

  it('keeps a worker in the shared pool whose successor does not serve, and ends the successor', async () => {
    const manager = await setUp();
    const all = await manager.acquire({ cpu: ALL.size - 1 });
    const port = await freePort();
    const worker = await serve(port, { optional: true });
    cluster.setupPrimary({ exec: '/no/such/file.mjs', silent: true });
    const error = await errorOf(() => cluster.restart());
    expect(error).toMatchObject({
      code: 'ERR_WORKER_START',
      details: { exitCode: 1, value: worker.id + 1 },
    });
    expect(await ask(port)).toBe(worker.process.pid);
    expect(Object.values(cluster.workers!)).toEqual([worker]);
    await all.release();
  });

  it('reports a successor that does not serve after its predecessor has ended, and keeps forking it', async () => {
    await setUp();
    const port = await freePort();
    const worker = await serve(port);
    cluster.setupPrimary({ exec: '/no/such/file.mjs', silent: true });
    const error = await errorOf(() => cluster.restart());
    expect(error).toMatchObject({ code: 'ERR_WORKER_START', details: { exitCode: 1 } });
    const serving = once(cluster, 'listening');
    cluster.setupPrimary({ exec: EXEC, silent: false });
    const [again] = await serving;
    expect(again.grant).toBe(worker.grant);
    expect(await ask(port)).toBe(again.process.pid);
  });

  it('gives up a worker that does not serve in time', async () => {
    const manager = await setUp();
    const all = await manager.acquire({ cpu: ALL.size - 1 });
    const { worker } = await fork({ optional: true });
    const error = await errorOf(() => cluster.restart({ startDeadlineMs: 0 }));
    expect(error).toMatchObject({ code: 'ERR_WORKER_START', details: { startDeadlineMs: 0 } });
    expect(Object.values(cluster.workers!)).toEqual([worker]);
    await all.release();
  });

  it.each(['acquire', 'startChild'] as const)(
    'ends if the cluster is disconnected at %s, and leaves no worker',
    async (method) => {
      const manager = await setUp();
      await manager.acquire({ cpu: ALL.size - 1 });
      const { worker } = await fork({ optional: true });
      const ended = once(worker.process, 'exit');
      const { [method]: original } = manager;
      Object.assign(manager, {
        [method]: (...args: never[]) => {
          cluster.disconnect();
          return Reflect.apply(original, manager, args);
        },
      });
      expect(await cluster.restart()).toEqual([]);
      await ended;
      await expect.poll(() => Object.values(cluster.workers!)).toEqual([]);
    },
  );

  it('gives a worker with CPUs no successor without, nor waits for more CPUs', async () => {
    const manager = await setUp();
    const whole = { cpu: ALL.size - 1, wait: true, optional: true };
    const { worker } = await fork(whole);
    const [replaced] = await cluster.restart();
    expect(replaced).toMatchObject({ before: worker, overlapped: false });
    expect(replaced!.worker.grant).toBe(worker.grant);
    expect(manager.grants()).toHaveLength(1);
  });

  it('waits until the successor of a listening worker listens', async () => {
    await setUp();
    const worker = await serve(await freePort());
    const listening: GrantedWorker[] = [];
    const note = (next: GrantedWorker) => void listening.push(next);
    cluster.on('listening', note);
    onTestFinished(() => void cluster.off('listening', note));
    const [replaced] = await cluster.restart();
    expect(replaced).toMatchObject({ before: worker, overlapped: false });
    expect(listening).toEqual([replaced!.worker]);
  });

  it('forks one worker in place of a delayed one', async () => {
    await setUp();
    const workers: GrantedWorker[] = [];
    const note = (worker: GrantedWorker) => void workers.push(worker);
    cluster.on('fork', note);
    onTestFinished(() => void cluster.off('fork', note));
    await cluster.fork({ env: { TASK: 'exit', MARK: '1' } });
    // The fourth comes 200 ms after the third has ended.
    while (workers.length < 3) await once(cluster, 'fork');
    await once(cluster, 'exit');
    const [replaced] = await cluster.restart();
    expect(workers.slice(3)).toEqual([replaced!.worker]);
    const ended = once(cluster, 'exit');
    const [last] = await ended;
    expect(last).toBe(replaced!.worker);
    expect(workers).toHaveLength(4);
  });

  it.each([true, false])(
    'returns the new worker to a listener of exit that forks, with respawn: %s',
    async (respawn) => {
      await setUp();
      const { worker } = await fork({ optional: true });
      const forked = new Promise<GrantedWorker>((resolve, reject) => {
        cluster.once('exit', () => void cluster.fork({ optional: true, respawn }).then(resolve, reject));
      });
      const [replaced] = await cluster.restart();
      expect(replaced!.before).toBe(worker);
      expect(await forked).toBe(replaced!.worker);
      expect(Object.values(cluster.workers!)).toEqual([replaced!.worker]);
    },
  );

  it('passes over a worker that still waits for its CPUs', async () => {
    const manager = await setUp();
    const all = await manager.acquire({ cpu: ALL.size - 1 });
    const waiting = cluster.fork({ wait: true });
    expect(await cluster.restart()).toEqual([]);
    await all.release();
    expect((await waiting).isDead()).toBe(false);
  });

  it('passes over a worker that is killed meanwhile', async () => {
    const manager = await setUp();
    await manager.acquire({ cpu: ALL.size - 1 });
    const [first, second] = [await fork({ optional: true }), await fork({ optional: true })];
    const { acquire } = manager;
    Object.assign(manager, {
      acquire: async (...args: Parameters<typeof acquire>) => {
        Object.assign(manager, { acquire });
        const ended = once(second.worker.process, 'exit');
        second.worker.kill();
        await ended;
        return Reflect.apply(acquire, manager, args);
      },
    });
    const replaced = await cluster.restart();
    expect(replaced).toMatchObject([{ before: first.worker }]);
    expect(Object.values(cluster.workers!)).toEqual([replaced[0]!.worker]);
  });

  it('kills no worker that a disconnected cluster has told to end', async () => {
    const manager = await setUp();
    const all = await manager.acquire({ cpu: ALL.size - 1 });
    const { worker: first } = await fork({ optional: true });
    await all.release();
    const { worker: last } = await fork({ cpu: ALL.size - 1, env: { TASK: 'linger' } });
    // A worker that is told to end is none of the cluster any more.
    onTestFinished(() => void last.process.kill('SIGKILL'));
    first.once('exit', () => cluster.disconnect());
    await cluster.restart({ deadlineMs: 0 });
    expect([first.isDead(), last.isDead()]).toEqual([true, false]);
  });

  it('ends if the cluster is disconnected while the next worker starts on the CPUs of its predecessor', async () => {
    const manager = await setUp();
    await fork({ cpu: ALL.size - 1 });
    cluster.once('fork', () => cluster.disconnect());
    expect(await cluster.restart()).toEqual([]);
    await expect.poll(() => manager.grants()).toEqual([]);
  });

  it('gives CPUs back if the cluster is disconnected before the next worker is forked', async () => {
    const manager = await setUp();
    await fork();
    cluster.once('exit', () => cluster.disconnect());
    expect(await cluster.restart()).toEqual([]);
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(Object.values(cluster.workers!)).toEqual([]);
  });

  it('is refused if the next worker cannot be forked, which is tried again, and allows later restarts', async () => {
    await setUp();
    const { worker } = await fork();
    cluster.setupPrimary({ stdio: ['ignore', 'ignore', 'ignore'] });
    onTestFinished(() => cluster.setupPrimary({ stdio: undefined }));
    for (let times = 0; times < 2; times++) {
      const error = await errorOf(() => cluster.restart());
      expect(error).toMatchObject({ code: 'ERR_CHILD_PROCESS_IPC_REQUIRED' });
    }
    const next = nextWorker();
    cluster.setupPrimary({ stdio: undefined });
    const again = await next;
    expect(again.grant).toBe(worker.grant);
    expect(await cluster.restart()).toMatchObject([{ before: again }]);
  });

  it('goes on although listeners of the old and of the new worker throw', async () => {
    await setUp();
    const seen = uncaught();
    const { worker } = await fork();
    const bug = (event: string) => () => {
      throw new Error(`bug in ${event}`);
    };
    worker.process.once('exit', bug('exit'));
    cluster.once('fork', (next) => next.once('online', bug('online')));
    expect(await cluster.restart()).toMatchObject([{ before: worker, killed: false }]);
    await expect.poll(() => seen).toEqual(['bug in exit', 'bug in online']);
  });

  it('forks no worker if the cluster is disconnected while the next one cannot be forked', async () => {
    const manager = await setUp();
    const { worker } = await fork();
    const grant = worker.grant!;
    const { startChild } = grant;
    Object.assign(grant, {
      startChild: () => {
        Object.assign(grant, { startChild });
        cluster.disconnect();
        throw new Error('not now');
      },
    });
    let forks = 0;
    const count = () => void forks++;
    cluster.on('fork', count);
    onTestFinished(() => void cluster.off('fork', count));
    expect(await errorOf(() => cluster.restart())).toMatchObject({ message: 'not now' });
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(forks).toBe(0);
  });

  it('waits for another restart that is under way', async () => {
    await setUp();
    const { worker } = await fork();
    const [first, second] = await Promise.all([cluster.restart(), cluster.restart()]);
    expect([first, second].map(([replaced]) => replaced!.before.id)).toEqual([
      worker.id,
      first[0]!.worker.id,
    ]);
  });

  it('ends between two workers at its signal, and has nothing to do without workers', async () => {
    await setUp();
    expect(await cluster.restart()).toEqual([]);
    const { worker } = await fork();
    const signal = AbortSignal.abort(new Error('enough'));
    expect(await errorOf(() => cluster.restart({ signal }))).toMatchObject({ message: 'enough' });
    expect(Object.values(cluster.workers!)).toEqual([worker]);
  });

  it('refuses invalid options', async () => {
    for (const options of [
      { deadlineMs: -1 },
      { startDeadlineMs: 'soon' },
      { deadline: 1 },
      { signal: true },
    ])
      expect(await errorOf(() => cluster.restart(options as object))).toMatchObject({
        code: 'ERR_INVALID_OPTION',
      });
  });
});

// What becomes of a worker that ends, and of its CPUs.
import { once } from 'node:events';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { ForkOptions, GrantedWorker } from '../../lib/entries/cluster.js';
import { ALL, cluster, firstLine, fork, nextWorker, setUp } from './this-primary.js';

/** What is warned of while a test runs. */
function warnings(): string[] {
  const seen: string[] = [];
  const note = ({ message }: Error) => void seen.push(message);
  process.on('warning', note);
  onTestFinished(() => void process.off('warning', note));
  return seen;
}

describe('a worker that dies', () => {
  it.each([
    ['is killed', 'SIGKILL'],
    ['is ended from outside', 'SIGTERM'],
  ] as const)('because it %s is forked again on the same grant, which was never free', async (_, signal) => {
    const manager = await setUp();
    const { worker } = await fork({ env: { MARK: 'kept' } });
    const free: string[] = [];
    const note = () => void free.push(`${manager.freeCpus()}`);
    cluster.once('exit', note);
    const next = nextWorker();
    process.kill(worker.process.pid!, signal);
    const again = await next;
    expect(again.id).not.toBe(worker.id);
    expect(again.grant).toBe(worker.grant);
    const { uid, cpus } = worker.grant!;
    expect(await firstLine(again)).toEqual({ cpus: `${cpus}`, grant: uid, granted: `${cpus}`, mark: 'kept' });
    expect(free).toEqual([`${manager.freeCpus()}`]);
    expect(manager.grants()).toMatchObject([{ uid }]);
  });

  it('because it fails is forked again', async () => {
    await setUp();
    const { worker } = await fork({ respawn: { limit: 2 }, env: { TASK: 'exit', MARK: '3' } });
    const again = await nextWorker();
    expect([again.grant, worker.process.exitCode]).toEqual([worker.grant, 3]);
    await once(again, 'exit');
  });

  it('is not forked again after as many short lives as the limit says, which is told', async () => {
    const manager = await setUp();
    const seen = warnings();
    let forks = 0;
    const count = () => void forks++;
    cluster.on('fork', count);
    onTestFinished(() => void cluster.off('fork', count));
    await fork({ respawn: { limit: 3 }, env: { TASK: 'exit', MARK: '1' } });
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(forks).toBe(3);
    await expect.poll(() => seen).toEqual([expect.stringMatching(/^worker \d+ is not forked again/)]);
  });

  it('has its CPUs taken anew where they were released meanwhile', async () => {
    const manager = await setUp();
    const { worker } = await fork({ env: { TASK: 'exit', MARK: '1' } });
    // The third comes after a while.
    await nextWorker();
    const [second] = await once(cluster as unknown as NodeJS.EventEmitter, 'exit');
    const next = nextWorker();
    await worker.grant!.release();
    const third = await next;
    expect(third.id).toBeGreaterThan(second.id);
    expect(third.grant!.uid).not.toBe(worker.grant!.uid);
    expect(manager.grants()).toMatchObject([{ uid: third.grant!.uid }]);
  });

  it('gets CPUs where it had none and there are some by now', async () => {
    const manager = await setUp();
    const other = await manager.acquire({ cpu: ALL.size - 1 });
    const { worker } = await fork({ optional: true });
    await other.release();
    const next = nextWorker();
    process.kill(worker.process.pid!, 'SIGKILL');
    const again = await next;
    expect([worker.grant, again.grant!.cpus.size]).toEqual([null, 1]);
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

  it('has none come after it that was waited for when the cluster is disconnected', async () => {
    const manager = await setUp();
    await fork({ env: { TASK: 'exit', MARK: '1' } });
    await nextWorker();
    // The third comes after a while.
    await once(cluster as unknown as NodeJS.EventEmitter, 'exit');
    expect(manager.grants()).toHaveLength(1);
    await new Promise<void>((resolve) => cluster.disconnect(resolve));
    await expect.poll(() => manager.grants()).toEqual([]);
    expect(Object.values(cluster.workers!)).toEqual([]);
  });
});

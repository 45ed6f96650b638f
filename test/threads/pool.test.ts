// needs: machine
// The threads of libuv's pool, found by jobs that wait for each other.
import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, open, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type PoolProbe, probePool, threads } from '../../lib/entries/diagnostics.js';
import { openManager, type PinResult } from '../../lib/index.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
import { ALL, ofWholePool } from './everything.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const size = Number(process.env.UV_THREADPOOL_SIZE ?? 4);
const isComplete = ({ complete }: PoolProbe) => complete;

/** What a program of its own prints, as JSON. */
function run(code: string, env: Record<string, string> = {}) {
  const { stdout, stderr } = spawnSync(
    process.execPath,
    ['--input-type=module', '-e', `import { probePool } from './dist/entries/diagnostics.js'; ${code}`],
    { cwd: ROOT, encoding: 'utf8', env: { ...process.env, ...env } },
  );
  expect(stderr).toBe('');
  return JSON.parse(stdout);
}

// A thread of the pool is busy until the function that this returns is called.
function blockOne(): () => Promise<void> {
  const fifo = join(makeFolder(), 'fifo');
  execFileSync('mkfifo', [fifo]);
  const opened = new Promise<number>((resolve) => open(fifo, 'r', (_error, fd) => resolve(fd)));
  // It waits for a writer.
  return async () => {
    closeSync(openSync(fifo, 'w'));
    closeSync(await opened);
  };
}

function makeFolder(): string {
  const stateDir = makeStateDir();
  mkdirSync(stateDir);
  return stateDir;
}

describe('probePool', () => {
  it('finds all threads of the pool, and they are known from then on', async () => {
    const { tids, complete } = await ofWholePool(probePool, isComplete);
    expect(complete).toBe(true);
    expect(tids.length).toBe(size);
    const known = threads().filter(({ role }) => role === 'pool');
    // The kernel's order is that of their birth, in which numbers may wrap around.
    expect(known.map(({ tid }) => tid).sort((a, b) => a - b)).toEqual(tids);
    expect(await ofWholePool(probePool, isComplete)).toEqual({ tids, complete });
  });

  it('says that it is incomplete if a thread is busy, and does not wait for that one', async () => {
    const unblock = blockOne();
    const busy = await ofWholePool(probePool, ({ tids }) => tids.length === size - 1);
    expect([busy.tids.length, busy.complete]).toEqual([size - 1, false]);
    await unblock();
    const idle = await ofWholePool(probePool, isComplete);
    expect([idle.tids.length, idle.complete]).toEqual([size, true]);
  });

  it('reads UV_THREADPOOL_SIZE like libuv', async () => {
    const probe = 'process.stdout.write(JSON.stringify(await probePool()))';
    for (const [text, threads] of [
      ['1', 1],
      ['9', 9],
      ['0', 1],
      ['six', 1],
    ] as const) {
      const { tids, complete } = await ofWholePool(
        () => run(probe, { UV_THREADPOOL_SIZE: text }),
        isComplete,
      );
      expect([text, tids.length, complete]).toEqual([text, threads, true]);
    }
  });

  it('does not claim to be complete if the variable was changed after the pool had started', async () => {
    const started = 'await probePool(); process.env.UV_THREADPOOL_SIZE';
    const probe = 'process.stdout.write(JSON.stringify(await probePool()))';
    const probeAfter = (value: string) =>
      run(`${started} = '${value}'; ${probe}`, { UV_THREADPOOL_SIZE: '3' });
    const more = await ofWholePool<PoolProbe>(
      () => probeAfter('6'),
      ({ tids }) => tids.length === 3,
    );
    expect([more.tids.length, more.complete]).toEqual([3, false]);
    const fewer = await ofWholePool(() => probeAfter('2'), isComplete);
    expect([fewer.tids.length, fewer.complete]).toEqual([3, true]);
  });

  it('may be called by several threads and several times at once', async () => {
    const program = `
      import { Worker } from 'node:worker_threads';
      const code = "import('./dist/entries/diagnostics.js').then(async ({ probePool }) => (await import('node:worker_threads')).parentPort.postMessage(await probePool()))";
      const workers = Array.from({ length: 3 }, () => new Worker(code, { eval: true }));
      const all = [...workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))), probePool(), probePool()];
      process.stdout.write(JSON.stringify(await Promise.all(all)));`;
    const answers = await ofWholePool<PoolProbe[]>(
      () => run(program),
      (all) => all.every(isComplete),
    );
    for (const answer of answers) expect(answer).toEqual(answers[0]);
    expect([answers[0]!.tids.length, answers[0]!.complete]).toEqual([size, true]);
  });
});

describe.runIf(ALL.size > 1)('grant.prewarmPool', () => {
  const isGuaranteed = ({ guaranteed }: PinResult) => guaranteed;

  it('moves only the pool, and promises completeness if all have answered', async () => {
    const manager = await openManager({ stateDir: makeStateDir() });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    const { moved, unmovable, guaranteed } = await ofWholePool(() => grant.prewarmPool(), isGuaranteed);
    expect([moved.length, unmovable, guaranteed]).toEqual([size, [], true]);
    // The others are where shared members are.
    const shared = ALL.difference(grant.cpus);
    for (const { role, cpus } of threads()) {
      expect([role, String(cpus)]).toEqual([role, String(role === 'pool' ? grant.cpus : shared)]);
    }
    const unblock = blockOne();
    expect((await grant.prewarmPool({ cpus: grant.cpus })).guaranteed).toBe(false);
    await unblock();
    const outside = await errorOf(() => grant.prewarmPool({ cpus: ALL }));
    expect(outside).toMatchObject({ code: 'ERR_INVALID_OPTION', details: { option: 'cpus' } });
    await grant.release();
    for (const { cpus } of threads()) expect(String(cpus)).toBe(String(ALL));
  });

  it('takes no thread from another grant', async () => {
    // A member of neither: two folders do not know each other.
    const manager = await openManager({ stateDir: makeStateDir(), sharedMember: false });
    onTestFinished(() => manager.close());
    const grant = await manager.acquire({ cpu: 1 });
    await grant.prewarmPool();
    const other = await openManager({ stateDir: makeStateDir(), sharedMember: false });
    onTestFinished(() => other.close());
    const second = await other.acquire({ cpu: 1 });
    expect(await errorOf(() => second.prewarmPool())).toMatchObject({ code: 'ERR_ALREADY_PINNED' });
    const taken = await ofWholePool(() => second.prewarmPool({ replace: true }), isGuaranteed);
    expect(taken.guaranteed).toBe(true);
    await grant.release();
    await second.release();
  });
});

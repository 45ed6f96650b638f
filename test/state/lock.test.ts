// The lock of the state between processes: who gets it, and what is said of one that does not give it back.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openManager } from '../../lib/index.js';
import { native } from '../../lib/native.js';
import { lockHolder, lockNote } from '../../lib/state/lock-holder.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';

const DIST = fileURLToPath(new URL('../../dist', import.meta.url));
const PRELUDE = `
  import { native } from '${DIST}/native.js';
  import { lockNote } from '${DIST}/state/lock-holder.js';
  const folder = native.Folder.open(process.argv[1], false, 0o700, -1);`;

/** A process that does something with the lock of a folder, and says so line by line. */
function start(stateDir: string, script: string): { child: ChildProcess; lines: AsyncIterator<string> } {
  const child = spawn(process.execPath, ['--input-type=module', '-e', PRELUDE + script, stateDir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, lines: createInterface({ input: child.stdout! })[Symbol.asyncIterator]() };
}

async function stop(child: ChildProcess): Promise<void> {
  child.kill('SIGSTOP');
  // The thread that waits for the lock too: until then it may still get it.
  const threads = () => readdirSync(`/proc/${child.pid}/task`).map((tid) => `/proc/${child.pid}/task/${tid}/stat`);
  const isStopped = (path: string) => readFileSync(path, 'latin1').replace(/^.*\) /s, '')[0] === 'T';
  while (!threads().every(isStopped)) await new Promise((resolve) => setTimeout(resolve, 1));
}

async function open(lockTimeoutMs: number) {
  const manager = await openManager({ stateDir: makeStateDir(), lockTimeoutMs });
  onTestFinished(() => manager.close());
  return manager;
}

describe('the lock of the state', () => {
  // One takes the lock again whenever it gives it back: in every other tenth of a second although somebody waits, which is how it would be without the turnstile.
  it('does not stay with one that takes it again at once while another waits', { retry: 2 }, async () => {
    const { stateDir } = await open(10_000);
    const phase = () => Math.floor(Date.now() / 100) % 2;
    const { child, lines } = start(
      stateDir,
      `console.log('begun');
       const phase = ${phase};
       const got = [0, 0];
       let lock;
       process.on('SIGTERM', () => { console.log(JSON.stringify(got)); process.exit(); });
       setInterval(() => {
         lock?.release();
         lock = folder.tryLock('lock', 'greedy', phase() === 1);
         if (lock) got[phase()]++;
       }, 1);`,
    );
    expect((await lines.next()).value).toBe('begun');
    const folder = native.Folder.open(stateDir, false, 0o700, -1);
    const patient: [number, number] = [0, 0];
    for (const end = Date.now() + 4000; Date.now() < end; ) {
      const lock = await new Promise<{ release(): void }>((resolve, reject) => {
        folder.waitLock('lock', 'patient', (error, taken) => (taken ? resolve(taken) : reject(error)));
      });
      lock.release();
      patient[phase()]!++;
    }
    child.kill('SIGTERM');
    const greedy = JSON.parse((await lines.next()).value) as [number, number];
    expect(greedy[0] / patient[0]).toBeLessThan(greedy[1] / patient[1] / 1.5);
  });

  it('is not taken from a stopped process, which the error names and calls stopped', async () => {
    const manager = await open(2_000);
    const { child, lines } = start(
      manager.stateDir,
      `globalThis.lock = folder.tryLock('lock', lockNote()); console.log('taken'); setInterval(() => {}, 1000);`,
    );
    await lines.next();
    expect((await errorOf(() => manager.acquire({ cpu: 1 }))).details).toMatchObject({
      pid: child.pid,
      stopped: false,
    });
    await stop(child);
    const error = await errorOf(() => manager.acquire({ cpu: 1 }));
    expect(error).toMatchObject({
      code: 'ERR_LOCK_TIMEOUT',
      message: expect.stringContaining(`is stopped: continue it (kill -CONT ${child.pid})`),
      details: { pid: child.pid, stopped: true, holder: expect.stringContaining(String(child.pid)) },
    });
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    await (await manager.acquire({ cpu: 1 })).release();
  });

  it('is not kept from everybody by a stopped process that only waits', async () => {
    const manager = await open(5000);
    const folder = native.Folder.open(manager.stateDir, false, 0o700, -1);
    const lock = folder.tryLock('lock', lockNote())!;
    const { child, lines } = start(
      manager.stateDir,
      `folder.waitLock('lock', lockNote(), () => {}); setTimeout(() => console.log('waiting'), 100);`,
    );
    await lines.next();
    await stop(child);
    lock.release();
    expect(folder.tryLock('lock', lockNote())).toBeUndefined();
    await (await manager.acquire({ cpu: 1 })).release();
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    await (await manager.acquire({ cpu: 1 })).release();
  });

  it('says of a holder only what can be known of it from here', () => {
    const note = lockNote();
    expect(lockHolder(note)).toMatchObject({ pid: process.pid, isStopped: false });
    expect(lockHolder('')).toEqual({ holder: 'an unknown process', pid: null, isStopped: false });
    expect(lockHolder('4711 somebody else\n')).toMatchObject({
      holder: '4711 somebody else',
      pid: 4711,
      isStopped: false,
    });
    const sleeper = spawn('sleep', ['60']);
    onTestFinished(() => void sleeper.kill('SIGKILL'));
    const start = readFileSync(`/proc/${sleeper.pid}/stat`, 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ')[19];
    const namespace = note.trim().split(' in ').at(-1);
    return stop(sleeper).then(() => {
      const of = (from: string | undefined, where: string | undefined) =>
        lockHolder(`${sleeper.pid} sleep\nstarted ${from} in ${where}\n`).isStopped;
      expect(of(start, namespace)).toBe(true);
      // Another process has its number now, or it is another's number.
      expect(of(`${start}1`, namespace)).toBe(false);
      expect(of(start, 'pid:[1]')).toBe(false);
    });
  });

  it('can be an empty or foreign file', async () => {
    const manager = await open(1000);
    writeFileSync(join(manager.stateDir, 'lock'), '\0nonsense');
    await (await manager.acquire({ cpu: 1 })).release();
  });
});

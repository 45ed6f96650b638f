// needs: agents
// The lock of the state between processes: which process gets it, and the error about one that does
// not release it.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { openManager } from '../../lib/index.js';
import { Ledger } from '../../lib/state/ledger.js';
import { lockHolder, lockNote } from '../../lib/state/owners/lock-holder.js';
import { errorOf } from '../support/error-of.js';
import { makeStateDir } from '../support/state-dir.js';
// @ts-expect-error without declarations
import { standsStill } from '../torture/processes.mjs';

const DIST = fileURLToPath(new URL('../../dist-test/lib', import.meta.url));
const PRELUDE = `
  import { native } from '${DIST}/base/native.js';
  import { lockNote } from '${DIST}/state/owners/lock-holder.js';
  const folder = native.Folder.open(process.argv[1], false, 0o700, -1);`;

/** A process that uses the lock of a folder, and reports its steps line by line. */
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
  while (!standsStill(child.pid)) await new Promise((resolve) => setTimeout(resolve, 1));
}

// The first waiting process has the turnstile, which is the second byte of the file, and the turn, the third.
async function somebodyWaits(stateDir: string): Promise<void> {
  const { ino } = statSync(join(stateDir, 'lock'));
  const turnstile = new RegExp(`OFDLCK .*:${ino} 1 [12]$`, 'm');
  while (!turnstile.test(readFileSync('/proc/locks', 'latin1')))
    await new Promise((resolve) => setTimeout(resolve, 1));
}

async function open(lockTimeoutMs: number) {
  const manager = await openManager({ stateDir: makeStateDir(), lockTimeoutMs });
  onTestFinished(() => manager.close());
  return manager;
}

describe('the lock of the state', () => {
  it.skipIf(spawnSync('strace', ['true']).status !== 0)(
    'is free once all that comes with a last line has happened, also what shows its generation',
    () => {
      const stateDir = makeStateDir('/dev/shm');
      mkdirSync(stateDir);
      writeFileSync(join(stateDir, 'state.json'), '');
      const script = `${PRELUDE}
        const journal = folder.openJournal('state.json');
        journal.append(0, 'line', folder, folder.tryLock('lock', lockNote()), true, 'copy', 7);
        process.exit();`;
      const node = [process.execPath, '--input-type=module', '-e', script, stateDir];
      const { stderr } = spawnSync('strace', ['-e', 'trace=fcntl', ...node], { encoding: 'utf8' });
      const locks = [...stderr.matchAll(/F_OFD_SETLK, \{l_type=F_(\w+), l_whence=\w+, (.*)\}\) = 0/g)];
      expect(locks.map(([, type, bytes]) => `${type} ${bytes}`).slice(-2)).toEqual([
        'RDLCK l_start=0, l_len=8',
        'UNLCK l_start=0, l_len=1',
      ]);
    },
  );

  it('does not stay with a process that takes it again at once while another waits', async () => {
    const { stateDir } = await open(10_000);
    const openFolder = () => native.Folder.open(stateDir, false, 0o700, -1);
    const [greedy, patient] = [openFolder(), openFolder()];
    // Releases the lock while another waits, and tries at once to take it again. The other has it
    // until this function ends.
    const takeAgain = async (pastTurnstile: boolean, attempts: number) => {
      const lock = greedy.tryLock('lock', 'greedy')!;
      const waiting = new Promise<{ release(): void }>((resolve, reject) => {
        const answer = (error?: Error, taken?: { release(): void }) =>
          taken ? resolve(taken) : reject(error);
        patient.waitLock('lock', 'patient', answer, () => {});
      });
      await somebodyWaits(stateDir);
      lock.release();
      const taken = Array.from({ length: attempts }, () => greedy.tryLock('lock', 'greedy', pastTurnstile));
      for (const each of taken) each?.release();
      (await waiting).release();
      return taken.some((each) => each !== undefined);
    };
    for (let round = 0; round < 100; round++) expect(await takeAgain(false, 20)).toBe(false);
    // Without the turnstile it would stay: the other takes a moment until it runs.
    while (!(await takeAgain(true, 1)));
  });

  it('goes to the requests of a process in their order', async () => {
    const { stateDir } = await open(10_000);
    const ledger = Ledger.open(stateDir);
    const folder = native.Folder.open(stateDir, false, 0o700, -1);
    const order: number[] = [];
    const request = (number: number) =>
      ledger.transact({ lockTimeoutMs: 10_000, totalOn: () => 0 }, async () => void order.push(number));
    for (let n = 0; n < 40; n += 2) {
      const lock = folder.tryLock('lock', 'another process')!;
      const waiting = request(n);
      lock.release();
      await Promise.all([waiting, request(n + 1)]);
    }
    expect(order).toEqual(Array.from({ length: 40 }, (_, n) => n));
  });

  it('goes to a process that was held up itself until its time was over', async () => {
    const manager = await open(5000);
    const lock = native.Folder.open(manager.stateDir, false, 0o700, -1).tryLock('lock', lockNote())!;
    const acquired = manager.acquire({ cpu: 1 });
    await new Promise((resolve) => setTimeout(resolve, 20));
    // Timers come next.
    await new Promise(setImmediate);
    lock.release();
    // The waiting thread gets the lock meanwhile.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5500);
    await (await acquired).release();
  });

  it('stays with a stopped process, which the error names as stopped', async () => {
    const manager = await open(1_000);
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

  it('is not blocked by a stopped process that only waits', async () => {
    const manager = await open(5000);
    const folder = native.Folder.open(manager.stateDir, false, 0o700, -1);
    const lock = folder.tryLock('lock', lockNote())!;
    const { child } = start(manager.stateDir, `folder.waitLock('lock', lockNote(), () => {}, () => {});`);
    await somebodyWaits(manager.stateDir);
    await stop(child);
    lock.release();
    expect(folder.tryLock('lock', lockNote())).toBeUndefined();
    await (await manager.acquire({ cpu: 1 })).release();
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
    await (await manager.acquire({ cpu: 1 })).release();
  });

  it('says of a holder only what this process can know', () => {
    const note = lockNote();
    expect(lockHolder(note)).toMatchObject({ pid: process.pid, isStopped: false });
    expect(lockHolder('')).toEqual({ holder: 'an unknown process', pid: null, isStopped: false });
    const ended = 2 ** 22 + 1;
    expect(lockHolder(lockNote().replaceAll(String(process.pid), String(ended)))).toMatchObject({
      isStopped: false,
    });
    expect(lockHolder('4711 another line\n')).toMatchObject({
      holder: '4711 another line',
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
      // Another process has its number now, or the number is another's.
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

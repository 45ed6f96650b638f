// needs: agents
// The addon in processes whose environments come and go. scripts/addon-sanitizers.sh runs these
// tests under sanitizers, too.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { native } from '../../lib/base/native.js';
import { affinity } from '../../lib/entries/diagnostics.js';
import { budget } from '../support/budget.mjs';
import { makeStateDir } from '../support/state-dir.js';

const script = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const ADDON = script('../../build/Release/numalign.node');

/** What a program prints. It must end by itself, with this status. */
async function outputOf(name: string, args: string[], status = 0): Promise<string> {
  const child = spawn(process.execPath, [script(name), ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const)
    child[stream].setEncoding('utf8').on('data', (text) => (output[stream] += text));
  const [code, signal] = await once(child, 'close');
  expect({ status: code ?? signal, stderr: output.stderr }).toEqual({ status, stderr: '' });
  return output.stdout;
}

/** lifetime.mjs: its main thread never loads the addon. */
function startWorkersOnly(stateDir: string) {
  const child = spawn(process.execPath, [script('lifetime.mjs'), stateDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ended = once(child, 'exit');
  return {
    child,
    async tell(command: string): Promise<any> {
      child.stdin.write(`${command}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error(`it ended with ${child.exitCode ?? child.signalCode}`);
      return JSON.parse(value);
    },
    async end(): Promise<number | string> {
      child.stdin.end();
      const [code, signal] = await ended;
      return code ?? signal;
    },
  };
}

/** Holds the lock of a folder for most of the time while the promise is pending. */
async function whileContended<T>(path: string, pending: Promise<T>): Promise<T> {
  const folder = native.Folder.open(path, true, 0o700, -1);
  let isPending = true;
  const result = pending.finally(() => (isPending = false));
  while (isPending) {
    const lock = folder.tryLock('lock', '', true);
    await sleep(60);
    lock?.release();
    await sleep(1);
  }
  return result;
}

// The first thread that waits has the turnstile, which is the second byte of the file, and the turn, the third.
async function untilAwaited(file: string): Promise<void> {
  const turnstile = new RegExp(`OFDLCK .*:${statSync(file).ino} 1 [12]$`, 'm');
  await expect.poll(() => readFileSync('/proc/locks', 'latin1'), { interval: 2 }).toMatch(turnstile);
}

const threadsOf = ({ pid }: ChildProcess) => statSync(`/proc/${pid}/task`).nlink - 2;

describe('a process in which only Workers have loaded the addon', () => {
  it('goes on when they end while a thread waits for a lock on their behalf', async () => {
    const stateDir = makeStateDir();
    const folder = native.Folder.open(stateDir, true, 0o700, -1);
    const held = folder.tryLock('lock', '')!;
    const { child, tell, end } = startWorkersOnly(stateDir);
    await tell('wait');
    await untilAwaited(join(stateDir, 'lock'));
    await tell('end');
    const before = threadsOf(child);
    held.release();
    // The thread gets the lock, and ends.
    while (child.signalCode === null && threadsOf(child) === before) await sleep(1);
    folder.tryLock('lock', '')!.release();
    expect(await end()).toBe(0);
  });

  it('comes off the CPUs of a grant whose Worker was terminated when the next Worker acquires', async () => {
    const stateDir = makeStateDir();
    const { tell, end } = startWorkersOnly(stateDir);
    const all = String(affinity());
    const cpus = await tell('pin');
    await tell('end');
    expect(await tell('acquire')).toEqual({ cpus, mask: all });
    expect(await end()).toBe(0);
  });
});

describe('environments', () => {
  it.each([
    ['only Workers have', []],
    ['the main thread has, too', ['main']],
  ])('end at random moments without harm to the process: %s', async (_, who) => {
    for (let run = 0; run < budget({ all: 20, usual: 1 }); run++) {
      const seed = String(Math.floor(Math.random() * 2 ** 31));
      const folder = makeStateDir();
      const output = outputOf('environments.mjs', [seed, '4', folder, ...who]);
      expect(await whileContended(folder, output), `seed ${seed}`).toBe('survived\n');
    }
  });

  it.each(['lock', 'second lock', 'notice', 'written', 'pool', 'timer'])(
    'end by process.exit() in a callback: %s',
    async (where) => {
      expect(await outputOf('exits.mjs', [where, makeStateDir()], 7)).toBe('');
    },
  );
});

describe('the addon', () => {
  it('is marked as one that is never unloaded', () => {
    const { stdout } = spawnSync('readelf', ['-W', '--dynamic', ADDON], { encoding: 'utf8' });
    expect(stdout).toMatch(/\(FLAGS_1\).*\bNODELETE\b/);
  });
});

// needs: agents
// Who gets CPUs back, when, although no process watches: a shared member that knows nothing.
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { affinity } from 'numalign/diagnostics';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { newFolder, numalign, type Running, start, until } from './numalign.js';

let folder: string;
let member: number;

beforeEach(async () => {
  folder = newFolder();
  const sleeper = spawn('sleep', ['1000'], { stdio: 'ignore' });
  onTestFinished(() => void sleeper.kill('SIGKILL'));
  member = sleeper.pid!;
  expect((await numalign(['share', String(member), '--state-dir', folder])).code).toBe(0);
});

const cpus = () => String(affinity(member));

const run = (...words: string[]) => start(['run', '--cpus', '1', '--state-dir', folder, ...words]);

async function isUp({ output }: Running): Promise<void> {
  await until(() => output.stdout.includes('up\n'), 'the command');
  expect(cpus()).not.toBe('0-1');
}

const isBack = () => until(() => cpus() === '0-1', 'the CPUs of the member');

/** The shells that wait for the end of a command in this folder. */
const reapers = () =>
  readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`\0${folder}\0`);
    } catch {
      return false;
    }
  });

async function grantsOnRecord(): Promise<readonly object[]> {
  const { stdout } = await numalign(['status', '--state-dir', folder, '--output', 'json']);
  return (JSON.parse(stdout) as { grants: object[] }).grants;
}

describe('a command in place of numalign', () => {
  it.each([
    ['ends by itself', 'echo up; read line', undefined],
    ['is ended', 'echo up; exec sleep 1000', 'SIGTERM'],
    ['is killed', 'echo up; exec sleep 1000', 'SIGKILL'],
  ] as const)('gives its CPUs back when it %s', async (_, script, signal) => {
    const running = run('--', 'sh', '-c', script);
    await isUp(running);
    if (signal) running.process.kill(signal);
    else running.process.stdin!.end('\n');
    await isBack();
    await until(() => reapers().length === 0, 'the end of the reaper');
  });

  it('gives its CPUs back when what it left running has ended', async () => {
    const running = run('--', 'sh', '-c', 'sleep 1000 >/dev/null 2>&1 & echo $!; echo up');
    await isUp(running);
    await running.ended;
    expect(cpus()).not.toBe('0-1');
    process.kill(Number.parseInt(running.output.stdout, 10), 'SIGKILL');
    await isBack();
  });

  it('has no child that it has not started, and waits for none', async () => {
    const { ended, output } = run('--', 'python3', '-c', 'import os; os.waitpid(-1, 0)');
    await ended;
    expect(output.stderr).toContain('ChildProcessError');
  });

  it('starts nothing at its end where no member lives, also if some have lived', async () => {
    process.kill(member, 'SIGKILL');
    await until(() => !existsSync(`/proc/${member}`), 'the end of the member');
    await run('--', 'true').ended;
    await until(() => reapers().length === 0, 'the end of the reaper');
    // The next process that opens the folder takes it back.
    expect(await grantsOnRecord()).toMatchObject([{ alive: false }]);
  });

  it('starts numalign for a member that it cannot see', async () => {
    process.kill(member, 'SIGKILL');
    await until(() => !existsSync(`/proc/${member}`), 'the end of the member');
    // Of another pid namespace.
    await run('--', 'touch', join(folder, 'members', `p${member}-1-1-r`)).ended;
    await until(async () => (await grantsOnRecord()).length === 0, 'the release of the grant');
  });

  it.runIf(process.getuid!() === 0)(
    'starts numalign for a member of another user, which /proc may hide',
    async () => {
      process.kill(member, 'SIGKILL');
      await until(() => !existsSync(`/proc/${member}`), 'the end of the member');
      const namespace = /\d+/.exec(readlinkSync('/proc/self/ns/pid'));
      const file = join(folder, 'members', `p${member}-1-${namespace}-r`);
      await run('--', 'sh', '-c', 'touch "$0"; chown 12345 "$0"', file).ended;
      await until(async () => (await grantsOnRecord()).length === 0, 'the release of the grant');
    },
  );

  it('leaves no file where the folder has gone', async () => {
    const running = run('--', 'sh', '-c', 'rm -r "$0"; echo up', folder);
    await running.ended;
    await until(() => reapers().length === 0, 'the end of the reaper');
    expect(existsSync(folder)).toBe(false);
  });
});

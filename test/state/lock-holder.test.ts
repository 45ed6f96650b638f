// needs: folders
// The note in the lock's file: which process holds the lock, and whether it is stopped.
import { spawn } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { pidNamespace, statOf } from '../../lib/processes/process-identity.js';
import { lockHolder, lockNote } from '../../lib/state/owners/lock-holder.js';

describe('the holder of a lock', () => {
  it('is this process by its own note, and runs', () => {
    const [line] = lockNote().split('\n');
    expect(lockHolder(lockNote())).toEqual({ holder: line, pid: process.pid, isStopped: false });
  });

  it.each([
    ['', 'an unknown process'],
    ['\nstarted 1 in pid:[1]\n', 'an unknown process'],
    ['no number', 'no number'],
    ['x17 name', 'x17 name'],
    ['17', '17'],
  ])('is unknown by the note %j', (note, holder) => {
    expect(lockHolder(note)).toEqual({ holder, pid: null, isStopped: false });
  });

  it('is stopped if the process that the note identifies is', async () => {
    const child = spawn('sleep', ['1000']);
    const pid = child.pid!;
    onTestFinished(() => void child.kill('SIGKILL'));
    const { start } = statOf(pid);
    const isStopped = (second: string) => lockHolder(`${pid} sleep\n${second}\n`).isStopped;
    const own = `started ${start} in ${pidNamespace()}`;
    expect(isStopped(own)).toBe(false);
    child.kill('SIGSTOP');
    await expect.poll(() => isStopped(own)).toBe(true);
    for (const other of [
      `started ${Number(start) - 1000} in ${pidNamespace()}`,
      `started ${start} in pid:[1]`,
      `re${own}`,
      `${own} and later`,
      '',
    ])
      expect(isStopped(other)).toBe(false);
    child.kill('SIGKILL');
    await expect.poll(() => isStopped(own)).toBe(false);
  });
});

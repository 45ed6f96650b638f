// needs: folders
// A signal that aborts with any of several.
import { execFileSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { anySignal } from '../../lib/base/notices/any-signal.js';

it('aborts with the reason of the first that does', () => {
  const [first, second] = [new AbortController(), new AbortController()];
  const any = anySignal(first.signal, second.signal);
  expect(any.aborted).toBe(false);
  second.abort('second');
  first.abort('first');
  expect(any.reason).toBe('second');
  expect(anySignal(any, new AbortController().signal).reason).toBe('second');
});

it('aborts with a time-out that only it refers to, also after garbage collections', () => {
  const script = `
    import { setTimeout as pause } from 'node:timers/promises';
    import { anySignal } from 'numalign/tools';
    const { signal } = new AbortController();
    const listen = (any) => new Promise((resolve) => any.addEventListener('abort', () => resolve(any.reason.name)));
    const waiting = [
      listen(anySignal(AbortSignal.timeout(300), signal)),
      listen(anySignal(anySignal(AbortSignal.timeout(300), signal), signal)),
    ];
    for (let i = 0; i < 5; i++) {
      await pause(20);
      gc();
    }
    console.log(await Promise.race([Promise.all(waiting), pause(10_000, 'never')]));
    process.exit();
  `;
  const answer = execFileSync(process.execPath, ['--expose-gc', '--input-type=module', '-e', script]);
  expect(answer.toString().trim()).toBe("[ 'TimeoutError', 'TimeoutError' ]");
});

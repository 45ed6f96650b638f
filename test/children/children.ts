// Children of grants in tests: their messages, and their end.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const CHILD = fileURLToPath(new URL('child.mjs', import.meta.url));

/** The first message of `child.mjs`. */
export interface Report {
  readonly mask: string;
  readonly env: NodeJS.ProcessEnv;
  readonly args: readonly string[];
  readonly pid: number;
}

export async function reportOf<T = Report>(child: ChildProcess): Promise<T> {
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the child has ended with ${code}`);
  });
  ended.catch(() => {});
  const [message] = (await Promise.race([once(child, 'message'), ended])) as [T];
  return message;
}

/** Resolves once it has ended. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}

/** The same child, which is ended after the test. */
export function mortal(child: ChildProcess): ChildProcess {
  onTestFinished(() => end(child));
  return child;
}

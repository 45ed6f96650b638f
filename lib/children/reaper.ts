// Reaper: a program that hears of the end of this one.
import { native } from '../base/native.js';
import { checkText } from './execution.js';

/**
 * Starts a shell whose descriptor 3 is the end of a pipe, and waits until it has left another process
 * reading that. Returns the other end: a program that inherits it, with all that it starts, is what
 * the shell hears the end of. It closes with an execve(2) that does not name it, and is the caller's to
 * close. `args` begins with the shell's `$0`. In `environment` each is `NAME=value`. The event loop waits
 * for the script: what it starts belongs behind an `&`.
 * @throws ERR_SYSCALL; ERR_INVALID_OPTION for text with a null character
 */
export function startReaper(script: string, args: readonly string[], environment: readonly string[]): number {
  for (const text of [script, ...args, ...environment]) checkText('a text of the shell', text);
  return native.startReaper('/bin/sh', ['sh', '-c', script, ...args], environment);
}

// Reaper: a program that hears of the end of this one.
import { native } from '../base/native.js';

/**
 * Starts a shell whose descriptor 3 is the end of a pipe, and waits until it has left another process
 * reading that. Returns the other end: a program that inherits it, with all that it starts, is what
 * the shell hears the end of. In `environment` each is `NAME=value`.
 * @throws ERR_SYSCALL
 */
export function startReaper(script: string, args: readonly string[], environment: readonly string[]): number {
  return native.startReaper('/bin/sh', ['sh', '-c', script, ...args], environment);
}

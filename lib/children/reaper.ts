// Reaper: a program that hears of the end of this one.
import { native } from '../base/native.js';

/**
 * Starts a shell whose descriptor 3 is the end of a pipe, and waits until it has left another process
 * reading that. Returns the other end: a program that inherits it, with all that it starts, is what
 * the shell hears the end of.
 * @param environment `NAME=value`
 * @throws ERR_SYSCALL
 */
export const startReaper = (script: string, args: readonly string[], environment: readonly string[]) =>
  native.startReaper('/bin/sh', ['sh', '-c', script, ...args], environment);

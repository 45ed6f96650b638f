// Signals between the process that started numalign and the command that it runs.
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { parseProcStat } from 'numalign/tools';

/** Signals to pass on to the command. */
const RELAYED = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGCONT', 'SIGWINCH'] as const;
/**
 * Signals from keys of a terminal, which reach every process in its foreground, also the command.
 */
const TYPED = ['SIGINT', 'SIGQUIT'] as const;
/** The signals that end a command. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
/** A second core file, of this process, would overwrite the command's. */
const DUMPS_CORE = new Set<NodeJS.Signals>([
  'SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGIOT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGSYS', 'SIGXCPU', 'SIGXFSZ',
]); // biome-ignore format: a list

/**
 * True if keys on a terminal reach this process now. Its streams do not show that: they can be
 * redirected.
 */
function isInForeground(): boolean {
  const { pgrp, tty, tpgid } = parseProcStat(readFileSync('/proc/self/stat', 'latin1'));
  return tty !== '0' && tpgid === pgrp;
}

/** Passes signals on to the child, once there is one. Returns a function that stops it. */
export function relaySignals(child: () => ChildProcess | undefined): () => void {
  const relay = (signal: NodeJS.Signals) => child()?.kill(signal);
  const relayUnlessTyped = (signal: NodeJS.Signals) => {
    if (!isInForeground()) relay(signal);
  };
  for (const signal of RELAYED) process.on(signal, relay);
  for (const signal of TYPED) process.on(signal, relayUnlessTyped);
  return () => {
    for (const signal of RELAYED) process.off(signal, relay);
    for (const signal of TYPED) process.off(signal, relayUnlessTyped);
  };
}

/**
 * An AbortSignal that a signal to end the command aborts, or `abort`; the reason is the signal's name.
 * `stop` restores the handling of signals.
 */
export function abortAtEnd(): { signal: AbortSignal; abort: () => void; stop: () => void } {
  const controller = new AbortController();
  const abort = (name: NodeJS.Signals) => controller.abort(name);
  for (const name of ENDING) process.on(name, abort);
  return {
    signal: controller.signal,
    abort: () => controller.abort(),
    stop: () => {
      for (const name of ENDING) process.off(name, abort);
    },
  };
}

/** Waits between two looks. Resolves to false if the signal aborts the wait. */
export async function pause(seconds: number, signal: AbortSignal): Promise<boolean> {
  return setTimeout(seconds * 1000, true, { signal }).catch((error: unknown) => {
    if (signal.aborted) return false;
    throw error;
  });
}

/** The exit code with which shells report a death by signal. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + process.getBuiltinModule('node:os').constants.signals[signal];
}

/**
 * Dies of the same signal as the command, so that the parent process sees it: at SIGINT a shell
 * leaves its loop, for example. Returns if that is impossible.
 */
export function dieOf(signal: NodeJS.Signals): void {
  if (DUMPS_CORE.has(signal)) return;
  if (signal !== 'SIGKILL') {
    // Removing the last listener restores the default action, even if Node ignores the signal
    // (SIGPIPE).
    const listener = () => {};
    process.on(signal, listener);
    process.off(signal, listener);
  }
  process.kill(process.pid, signal);
}

// Signals between the process that started numalign and the command that it runs.
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

/** Sent on as they come. */
const RELAYED = ['SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGCONT', 'SIGWINCH'] as const;
/** Typed on a terminal, they reach every process in its foreground, the command too. */
const TYPED = ['SIGINT', 'SIGQUIT'] as const;
/** The signals that end a command. */
const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;
/** A second core file, of this process, would overwrite the command's. */
const DUMPS_CORE = new Set<NodeJS.Signals>([
  'SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGIOT', 'SIGBUS', 'SIGFPE', 'SIGSEGV', 'SIGSYS', 'SIGXCPU', 'SIGXFSZ',
]); // biome-ignore format: a list

/**
 * True if input typed on a terminal reaches this process now. Redirecting its streams does not
 * change that, so they are not asked.
 */
function isInForeground(): boolean {
  const stat = readFileSync('/proc/self/stat', 'latin1');
  // After the command in parentheses, which may hold anything: state, parent, process group,
  // session, terminal, its foreground group.
  const [, , group, , terminal, foreground] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return terminal !== '0' && foreground === group;
}

/** Sends signals on to the child that `child` names once there is one. Returns what ends it. */
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
 * Aborted by a signal that ends the command; the reason is the signal's name. `stop` leaves the
 * signals as they were.
 */
export function abortedByEnd(): { signal: AbortSignal; stop: () => void } {
  const controller = new AbortController();
  const abort = (name: NodeJS.Signals) => controller.abort(name);
  for (const name of ENDING) process.on(name, abort);
  return {
    signal: controller.signal,
    stop: () => {
      for (const name of ENDING) process.off(name, abort);
    },
  };
}

/** The exit code by which shells report a death by signal. */
export function exitCodeOf(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal];
}

/**
 * Dies as the command did, so that the parent process sees it (a shell leaves its loop at SIGINT,
 * for one). Returns where that is not possible.
 */
export function dieOf(signal: NodeJS.Signals): void {
  if (DUMPS_CORE.has(signal)) return;
  if (signal !== 'SIGKILL') {
    // The last listener that goes leaves the default action, also where Node ignores the signal
    // (SIGPIPE).
    const listener = () => {};
    process.on(signal, listener);
    process.off(signal, listener);
  }
  process.kill(process.pid, signal);
}

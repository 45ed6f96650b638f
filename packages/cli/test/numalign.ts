// The built command line as a child process, with private state folders that are removed.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { affinity } from 'numalign/diagnostics';
import { onTestFinished } from 'vitest';
import { runProgram } from '../lib/program.js';

export const MAIN = fileURLToPath(new URL('../dist/main.cjs', import.meta.url));

export interface Result {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command line that runs. */
export interface Running {
  readonly process: ChildProcess;
  /** Its output so far. */
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<Result>;
}

function environment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { NO_COLOR, FORCE_COLOR, CI, COLUMNS, NUMALIGN_DEBUG, ...rest } = process.env;
  return { ...rest, ...env };
}

// Killed grants of earlier tests may have left this process fewer CPUs, which a child takes for a
// choice.
function widen(): void {
  if (isNarrow()) execFileSync('taskset', ['-p', ALL_CPUS, String(process.pid)], { stdio: 'ignore' });
}

const ALL_CPUS = 'ffffffff';
const isNarrow = () => affinity().size < cpus().length;

/** A new folder, removed after the test. */
export function newFolder(): string {
  widen();
  const folder = mkdtempSync(join(tmpdir(), 'numalign-cli-'));
  onTestFinished(() => {
    endReapers(folder);
    rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  });
  return folder;
}

/**
 * Ends what would free the CPUs of commands that have ended: no test meets their grants, or a folder
 * that it has removed.
 */
export function endReapers(folder: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const args = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      if (args.includes('--reap') && args.includes(folder)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended.
    }
  }
}

export interface StartOptions {
  env?: NodeJS.ProcessEnv;
  /** In place of `node packages/cli/dist/main.cjs`. */
  program?: readonly [string, ...string[]];
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const hasEnded = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await hasEnded;
}

/** Starts it in its own session, so that it has no terminal. */
export function start(
  args: readonly string[],
  { env = {}, program = [process.execPath, MAIN] }: StartOptions = {},
): Running {
  // See widen(): the mask of this process is not changed, which may be beside living grants.
  const [command, ...first] = isNarrow() ? ['taskset', ALL_CPUS, ...program] : program;
  const child = spawn(command!, [...first, ...args], {
    env: environment(env),
    stdio: ['pipe', 'pipe', 'pipe'],
    detached: true,
  });
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  onTestFinished(() => end(child));
  const ended = new Promise<Result>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => {
      const end = () => resolve({ code, signal, ...output });
      // Closed streams are read completely. A process that it leaves running may hold them open: a
      // moment later its own output is complete.
      child.once('close', end);
      setTimeout(end, 50);
    });
  });
  return { process: child, output, ended };
}

// Commands that end by themselves, except `status --watch`, and leave their results to other
// processes. Grants of this process count as their own there: use `start` if they must be refused.
const PASSING = [
  'topology',
  'plan',
  'status',
  'configure',
  'state',
  'doctor',
  'completion',
  'admit',
  'release',
  'attach',
  'share',
  'setup',
  'uninstall',
  'systemd-unit',
];

// One after the other: they share the streams.
let last: Promise<unknown> = Promise.resolve();

function inTurn<T>(action: () => Promise<T>): Promise<T> {
  const result = last.then(action);
  last = result.catch(() => {});
  return result;
}

/** Runs it in this process: a child process takes twenty times as long. */
export const runHere = (args: readonly string[]): Promise<Result> => inTurn(() => runAlone(args));

async function runAlone(args: readonly string[]): Promise<Result> {
  const output = { stdout: '', stderr: '' };
  const { exitCode, env } = process;
  const write = { stdout: process.stdout.write, stderr: process.stderr.write };
  process.env = environment({});
  process.exitCode = undefined;
  for (const name of ['stdout', 'stderr'] as const) {
    process[name].write = (text: string | Uint8Array) => {
      output[name] += text;
      return true;
    };
  }
  try {
    await runProgram([process.execPath, MAIN, ...args]);
    return { code: Number(process.exitCode ?? 0), signal: null, ...output };
  } finally {
    for (const name of ['stdout', 'stderr'] as const) process[name].write = write[name];
    process.env = env;
    process.exitCode = exitCode;
  }
}

/**
 * Runs it to its end, without input: as a process, or in this process if it is one of those
 * commands and has no environment of its own.
 */
export function numalign(args: readonly string[], options: StartOptions = {}): Promise<Result> {
  const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args;
  const isPassing = (PASSING.includes(own[0]!) && !own.includes('--watch')) || own.includes('--help');
  if (isPassing && !options.env && !options.program) return runHere(args);
  const { process: child, ended } = start(args, options);
  child.stdin?.end();
  return ended;
}

/** Waits until `condition` returns a value. */
export async function until<T>(
  condition: () => T | undefined | false | Promise<T | undefined | false>,
  what: string,
): Promise<T> {
  for (const deadline = Date.now() + 60_000; ; ) {
    const value = await condition();
    if (value !== undefined && value !== false) return value;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Ends a process when the test is over, if it still carries `mark` in its environment. */
export function endLater(pid: number, mark: string): void {
  onTestFinished(() => {
    if (environOf(pid).includes(mark)) process.kill(pid, 'SIGKILL');
  });
}

function environOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1');
  } catch {
    return '';
  }
}

/** True if a process runs (a zombie does not). */
export function isRunning(pid: number): boolean {
  return environOf(pid) !== '';
}

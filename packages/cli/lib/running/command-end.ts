// Runs a command in place of numalign or beside it, and exits with the command's own code.
import type { ChildProcess } from 'node:child_process';
import { type Grant, NumalignError } from 'numalign';
import { refusalOfCommand } from '../terminal/executable.js';
import { printLast, printToStderr } from '../terminal/output.js';
import { errorText } from '../terminal/report-error.js';
import { exitCodeOf, relaySignals } from '../terminal/signals.js';
import { startReaper } from './reaper.js';

const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

/** A command to run on a grant. */
export interface Run {
  readonly command: string;
  readonly args: readonly string[];
  /** Further variables in its environment. */
  readonly options: { readonly threadCounts?: 'auto' };
  readonly grant: Grant;
  /** The folder that has it on record. */
  readonly stateDir: string;
  /** The grant, to print when the command starts. */
  readonly presentation: () => string;
  readonly tell: (text: string) => void;
  /** Prints why the command could not start. */
  readonly fail: (text: string) => void;
}

type End = { code: number; signal: null } | { code: null; signal: NodeJS.Signals };

/** Why a command could not start, for people, with the exit code. */
interface Failure {
  readonly code: number;
  readonly failure: string;
}

/**
 * Replaces this process by the command. Returns only if the command cannot be executed: then the
 * exit code is set.
 */
export async function becomeCommand(run: Run): Promise<void> {
  await unlessFailed(run, () => execute(run));
}

/** Runs the command beside this process. Returns the signal that killed it, or null. */
export async function superviseCommand(run: Run): Promise<NodeJS.Signals | null> {
  const { command, grant, tell } = run;
  const outcome = await unlessFailed(run, () => endOf(run));
  if (!outcome) return null;
  await end(grant, () =>
    tell(`${command} left processes running; grant ${grant.uid} ends with the last of them`),
  );
  process.exitCode = outcome.signal === null ? outcome.code : exitCodeOf(outcome.signal);
  return outcome.signal;
}

// Releases the grant if the command could not start.
async function unlessFailed(
  { grant, fail }: Run,
  start: () => Promise<End | Failure>,
): Promise<End | undefined> {
  let outcome: End | Failure;
  try {
    outcome = await start();
  } catch (error) {
    await grant.release();
    throw error;
  }
  if (!('failure' in outcome)) return outcome;
  await grant.release();
  fail(outcome.failure);
  process.exitCode = outcome.code;
  return undefined;
}

// Checks the command's file first, to print the grant only if the command can be executed.
async function execute({ command, args, options, grant, stateDir, presentation }: Run): Promise<Failure> {
  // Node refuses an empty name of a child too.
  if (command === '') return failureOf(command, { message: 'its name is empty' });
  const refusal = refusalOfCommand(command);
  if (refusal !== undefined) return failureOf(command, { code: refusal, message: refusal });
  await printLast(presentation());
  const reaper = startReaper(stateDir, grant.quiet !== null);
  try {
    return grant.exec(command, args, { ...options, descriptors: reaper ? [reaper.fd] : [] });
  } catch (error) {
    reaper?.end();
    if (!(error instanceof NumalignError) || error.syscall !== 'execve') throw error;
    const { errnoName = error.message } = error;
    return failureOf(command, { code: errnoName, message: errnoName });
  }
}

function endOf({ command, args, options, grant, presentation }: Run): Promise<End | Failure> {
  return new Promise((resolve, reject) => {
    let child: ChildProcess | undefined;
    const stopRelaying = relaySignals(() => child);
    const settle = (ending: End | Failure) => {
      stopRelaying();
      resolve(ending);
    };
    try {
      child = grant.spawn(command, args, { ...options, stdio: 'inherit' });
    } catch (error) {
      // Node throws some of the kernel's errors (ENOTDIR, E2BIG), and emits the others.
      if (!isOfNode(error)) {
        stopRelaying();
        reject(error);
      } else settle(failureOf(command, error));
      return;
    }
    child.once('spawn', () => printToStderr(presentation()));
    child.once('exit', (code, signal) =>
      settle(signal === null ? { code: code ?? 0, signal } : { code: null, signal }),
    );
    // Node emits it also for a signal that could not be sent: a running command ends only by exit.
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (child?.pid === undefined) settle(failureOf(command, error));
    });
  });
}

function isOfNode(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && !(error instanceof NumalignError) && 'code' in error;
}

function failureOf(
  command: string,
  { code, message }: Pick<NodeJS.ErrnoException, 'code' | 'message'>,
): Failure {
  if (code === 'ENOENT')
    return { code: NOT_FOUND, failure: `${command}: not found (it, or the interpreter that it names)` };
  if (code === 'EACCES')
    return { code: NOT_EXECUTABLE, failure: `${command}: not executable (permission denied)` };
  return { code: NOT_EXECUTABLE, failure: `${command}: cannot be executed: ${message}` };
}

// An error of the state folder must not hide how the command ended. The end of this process gives
// the CPUs back anyway.
async function end(grant: Grant, onHandedOver: () => void): Promise<void> {
  try {
    if (await grant.handOver()) onHandedOver();
  } catch (error) {
    printToStderr(errorText(error, process.env.NUMALIGN_DEBUG === '1'));
  }
}

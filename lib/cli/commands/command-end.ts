// A command that numalign runs: in place of numalign, or beside it, and how it has ended as numalign's
// own exit code.
import type { ChildProcess } from 'node:child_process';
import { NumalignError } from '../../base/errors.js';
import type { Grant } from '../../index.js';
import { refusalOfCommand } from '../terminal/executable.js';
import { hasPrinted, printToStderr } from '../terminal/output.js';
import { errorText } from '../terminal/report-error.js';
import { exitCodeOf, relaySignals } from '../terminal/signals.js';

const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

/** A command that is to run on a grant. */
export interface Run {
  readonly command: string;
  readonly args: readonly string[];
  /** What it finds in its environment beside the variables of the grant. */
  readonly options: { readonly threadCounts?: 'auto' };
  readonly grant: Grant;
  /** Tells what the grant is, as the command starts. */
  readonly present: () => void;
  readonly tell: (text: string) => void;
  /** Tells why the command could not be started. */
  readonly fail: (text: string) => void;
}

type End = { code: number; signal: null } | { code: null; signal: NodeJS.Signals };

/** Why a command could not be started, for people, and the exit code that says so. */
interface Failure {
  readonly code: number;
  readonly failure: string;
}

/**
 * Has the command take the place of this process. Returns only where it cannot be executed: the
 * exit code is set.
 */
export async function becomeCommand(run: Run): Promise<void> {
  await unlessFailed(run, () => execute(run));
}

/** Runs the command beside this process. Answers the signal that it has died of, or null. */
export async function superviseCommand(run: Run): Promise<NodeJS.Signals | null> {
  const { command, grant, tell } = run;
  const ended = await unlessFailed(run, () => endOf(run));
  if (!ended) return null;
  await end(grant, () =>
    tell(`${command} left processes running; grant ${grant.uid} ends with the last of them`),
  );
  process.exitCode = ended.signal === null ? ended.code : exitCodeOf(ended.signal);
  return ended.signal;
}

// The grant is released where the command could not be started.
async function unlessFailed(
  { grant, fail }: Run,
  start: () => Promise<End | Failure>,
): Promise<End | undefined> {
  let ended: End | Failure;
  try {
    ended = await start();
  } catch (error) {
    await grant.release();
    throw error;
  }
  if (!('failure' in ended)) return ended;
  await grant.release();
  fail(ended.failure);
  process.exitCode = ended.code;
  return undefined;
}

// Where its file shows that it cannot be executed, the grant is not printed.
async function execute({ command, args, options, grant, present }: Run): Promise<Failure> {
  // As Node says it of a child.
  if (command === '') return failureOf(command, { message: 'its name is empty' });
  const refusal = refusalOfCommand(command);
  if (refusal !== undefined) return failureOf(command, { code: refusal, message: refusal });
  present();
  await hasPrinted();
  try {
    return grant.exec(command, args, options);
  } catch (error) {
    if (!(error instanceof NumalignError) || error.details.syscall !== 'execve') throw error;
    const { errnoName = error.message } = error;
    return failureOf(command, { code: errnoName, message: errnoName });
  }
}

function endOf({ command, args, options, grant, present }: Run): Promise<End | Failure> {
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
      // Node throws some of what the kernel says of the command (ENOTDIR, E2BIG), and emits the
      // rest.
      if (!isOfNode(error)) {
        stopRelaying();
        reject(error);
      } else settle(failureOf(command, error));
      return;
    }
    child.once('spawn', present);
    child.once('exit', (code, signal) =>
      settle(signal === null ? { code: code ?? 0, signal } : { code: null, signal }),
    );
    // Emitted also where a signal could not be sent; once the command runs, only its exit ends
    // this.
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

// The command has ended: what it ended with is worth more than a state folder that fails us now.
// Dying gives the CPUs back too.
async function end(grant: Grant, onHandedOver: () => void): Promise<void> {
  try {
    if (await grant.handOver()) onHandedOver();
  } catch (error) {
    printToStderr(errorText(error, process.env.NUMALIGN_DEBUG === '1'));
  }
}

// How a command that numalign runs has ended, as its own exit code.
import type { ChildProcess } from 'node:child_process';
import { NumalignError } from '../../base/errors.js';
import type { Grant } from '../../index.js';
import { printToStderr } from '../terminal/output.js';
import { errorText } from '../terminal/report-error.js';
import { relaySignals } from '../terminal/signals.js';

const NOT_EXECUTABLE = 126;
const NOT_FOUND = 127;

export type Ending =
  | { code: number; signal: null }
  | { code: null; signal: NodeJS.Signals }
  | { code: number; failure: string };

export function endOf(
  grant: Grant,
  command: string,
  args: readonly string[],
  onStart: () => void,
): Promise<Ending> {
  return new Promise((resolve, reject) => {
    let child: ChildProcess | undefined;
    const stopRelaying = relaySignals(() => child);
    const settle = (ending: Ending) => {
      stopRelaying();
      resolve(ending);
    };
    try {
      child = grant.spawn(command, args, { stdio: 'inherit' });
    } catch (error) {
      // Node throws some of what the kernel says of the command (ENOTDIR, E2BIG), and emits the
      // rest.
      if (!isOfNode(error)) {
        stopRelaying();
        reject(error);
      } else settle(failureOf(command, error));
      return;
    }
    child.once('spawn', onStart);
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

function failureOf(command: string, { code, message }: NodeJS.ErrnoException): Ending {
  if (code === 'ENOENT')
    return { code: NOT_FOUND, failure: `${command}: not found (it, or the interpreter that it names)` };
  if (code === 'EACCES')
    return { code: NOT_EXECUTABLE, failure: `${command}: not executable (permission denied)` };
  return { code: NOT_EXECUTABLE, failure: `${command}: cannot be executed: ${message}` };
}

// The command has ended: what it ended with is worth more than a state folder that fails us now.
// Dying gives the CPUs back too.
export async function end(grant: Grant, onHandedOver: () => void): Promise<void> {
  try {
    if (await grant.handOver()) onHandedOver();
  } catch (error) {
    printToStderr(errorText(error, process.env.NUMALIGN_DEBUG === '1'));
  }
}

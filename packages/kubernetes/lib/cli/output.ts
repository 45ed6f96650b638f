// Output: prints results; no control characters from elsewhere reach a terminal.
import { NumalignError } from 'numalign';
import { NodeError } from '../base/errors.js';
import { type Log, printable } from '../base/log.js';

const FAILURE = 1;

/** Prints a line to stdout. */
export function print(line: string): void {
  process.stdout.write(`${printable(line)}\n`);
}

/** Prints one JSON document to stdout. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Prints a line to stderr. */
export function tell(message: string): void {
  process.stderr.write(`numalign-node: ${printable(message)}\n`);
}

/** Logs for the person who started the command. */
export const logToStderr: Log = (level, message) => tell(level === 'info' ? message : `${level}: ${message}`);

/** An error's code, its message, and what is wrong and valid. */
export function factsOf(error: unknown) {
  const isKnown = error instanceof NodeError || error instanceof NumalignError;
  const message = error instanceof Error ? error.message : String(error);
  const { code, details } = isKnown ? error : { code: null, details: {} };
  const { cause: _, ...facts } = details as Record<string, unknown>;
  return { code, message, facts };
}

/** Prints the error to stderr, in one line with its code. Returns the exit code. */
export function reportError(error: unknown, isJson: boolean): number {
  const { code, message, facts } = factsOf(error);
  if (isJson) {
    process.stderr.write(`${JSON.stringify({ error: { code, message, details: facts } })}\n`);
  } else tell(code === null ? message : `${message} [${code}]`);
  if (process.env.NUMALIGN_DEBUG === '1' && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  return FAILURE;
}

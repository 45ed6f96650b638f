// What the commands print: no text from elsewhere reaches a terminal with controls in it.
import { NumalignError } from 'numalign';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';

const FAILURE = 1;

const printable = (text: string) =>
  text.replace(/\p{C}/gu, (character) => (character === '\n' ? ' ' : '\ufffd'));

/** A line on stdout. */
export function print(line: string): void {
  process.stdout.write(`${printable(line)}\n`);
}

/** One JSON document on stdout. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** A line on stderr. */
export function tell(message: string): void {
  process.stderr.write(`numalign-node: ${printable(message)}\n`);
}

/** What is logged, for the person that started the command. */
export const logToStderr: Log = (level, message) => tell(level === 'info' ? message : `${level}: ${message}`);

/** Tells it on stderr, in one line, with its code. Answers the exit code. */
export function reportError(error: unknown, isJson: boolean): number {
  const isKnown = error instanceof NodeError || error instanceof NumalignError;
  const message = error instanceof Error ? error.message : String(error);
  const { code, details } = isKnown ? error : { code: null, details: {} };
  if (isJson) {
    const { cause: _, ...facts } = details as Record<string, unknown>;
    process.stderr.write(`${JSON.stringify({ error: { code, message, details: facts } })}\n`);
  } else tell(code === null ? message : `${message} [${code}]`);
  if (process.env.NUMALIGN_DEBUG === '1' && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  return FAILURE;
}

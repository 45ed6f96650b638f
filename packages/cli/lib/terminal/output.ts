// Prints all output of the command line. Control characters of outside text never reach a terminal.
import { writeSync } from 'node:fs';
import { stdoutPage } from './terminal.js';
import { printable } from './text.js';

/**
 * The lines without control characters, except colours if `areColored`. Text from outside must be
 * {@link printable} already: its line feeds and colours would stay.
 */
export function safeLines(text: string, areColored: boolean): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what colours are made of
  const separator = areColored ? /(\n|\u001b\[\d+m)/ : /(\n)/;
  return text
    .split(separator)
    .map((part, i) => (i % 2 === 1 ? part : printable(part)))
    .join('');
}

export function print(lines: string): void {
  process.stdout.write(safeLines(lines, stdoutPage().colors.isColorSupported));
}

let usesStream = false;

export function printToStderr(lines: string): void {
  usesStream = true;
  process.stderr.write(safeLines(lines, false));
}

/**
 * Prints to stderr the last of what this process says. Resolves when that, and all before it, is
 * written or has failed. It waits in the kernel where it can: Node takes milliseconds to make a stream.
 */
export async function printLast(lines: string): Promise<void> {
  const text = Buffer.from(safeLines(lines, false));
  const rest = usesStream ? text : unwritten(text);
  if (usesStream || rest.length > 0)
    await new Promise<void>((resolve) => process.stderr.write(rest, () => resolve()));
}

/** What is left of a text once stderr blocks no more; nothing if it cannot be written. */
function unwritten(text: Buffer): Buffer {
  let rest = text;
  try {
    while (rest.length > 0) rest = rest.subarray(writeSync(2, rest));
    return rest;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN' ? rest : Buffer.alloc(0);
  }
}

/** A message as one line. */
export const messageLine = (message: string): string => `numalign: ${printable(message)}\n`;

/** Prints a message as one line on stderr. */
export function tell(message: string): void {
  printToStderr(messageLine(message));
}

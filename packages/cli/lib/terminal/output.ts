// Prints all output of the command line. Control characters of outside text never reach a terminal.
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

export function printToStderr(lines: string): void {
  process.stderr.write(safeLines(lines, false));
}

/** Resolves when all output to stderr is written, or has failed. */
export function hasPrinted(): Promise<void> {
  return new Promise((resolve) => {
    process.stderr.write('', () => resolve());
  });
}

/** Prints a message as one line on stderr. */
export function tell(message: string): void {
  printToStderr(`numalign: ${printable(message)}\n`);
}

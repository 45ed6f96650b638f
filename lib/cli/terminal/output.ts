// All that the command line prints: no text from elsewhere reaches a terminal with controls in it.
import { stdoutPage } from './terminal.js';
import { printable } from './text.js';

/**
 * Lines, in colours where `areColored`. What is in a line from elsewhere must be {@link printable}
 * already.
 */
export function shownLines(text: string, areColored: boolean): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what colours are made of
  const kept = areColored ? /(\n|\u001b\[\d+m)/ : /(\n)/;
  return text
    .split(kept)
    .map((part, i) => (i % 2 === 1 ? part : printable(part)))
    .join('');
}

export function print(lines: string): void {
  process.stdout.write(shownLines(lines, stdoutPage().colors.isColorSupported));
}

export function printToStderr(lines: string): void {
  process.stderr.write(shownLines(lines, false));
}

/** Resolved once all that was printed to stderr is written, or cannot be. */
export function hasPrinted(): Promise<void> {
  return new Promise((resolve) => {
    process.stderr.write('', () => resolve());
  });
}

/** A message in one line. */
export function tell(message: string): void {
  printToStderr(`numalign: ${printable(message)}\n`);
}

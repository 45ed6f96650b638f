// A screen: draws pages over one another on a terminal, reads keys, and restores the terminal at the
// end.
import { print, safeLines } from './output.js';
import { stdoutPage } from './terminal.js';
import { countText } from './text.js';

// The terminal's alternate screen, without a cursor. It cuts long lines, so that the page keeps its
// height.
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';

// While keys are read one by one, the terminal leaves these to the program: Ctrl-C, Ctrl-\\, Ctrl-Z.
const SIGNALS: Readonly<Record<string, NodeJS.Signals>> = {
  '\u0003': 'SIGINT',
  '\u001c': 'SIGQUIT',
  '\u001a': 'SIGTSTP',
};

export class Screen {
  #page: (() => string) | undefined;
  readonly #onKey: ((key: string) => void) | undefined;
  readonly #draw = () => this.#redraw();
  readonly #type = (text: string) => {
    for (const key of text) {
      const signal = SIGNALS[key];
      // To all in the foreground, as the terminal does.
      if (signal) process.kill(0, signal);
      else this.#onKey?.(key);
    }
  };
  readonly #stop = () => {
    this.#leave();
    // Returns when the process continues.
    process.kill(process.pid, 'SIGSTOP');
    this.#enter();
    this.#redraw();
  };
  readonly #enter = () => {
    process.stdout.write(ENTER);
    if (this.#onKey) process.stdin.setRawMode(true);
  };
  readonly #leave = () => {
    if (this.#onKey) process.stdin.setRawMode(false);
    process.stdout.write(LEAVE);
  };

  /** True if keys reach it. */
  get hasKeys(): boolean {
    return this.#onKey !== undefined;
  }

  static isThere(): boolean {
    return process.stdout.isTTY === true && process.env.TERM !== 'dumb';
  }

  /** `onKey`: is called with each character that is typed, if the input is a terminal. */
  constructor(onKey?: (key: string) => void) {
    this.#onKey = process.stdin.isTTY === true ? onKey : undefined;
    this.#enter();
    process.stdout.on('resize', this.#draw);
    // Ctrl-Z.
    process.on('SIGTSTP', this.#stop);
    // However the process ends.
    process.on('exit', this.#leave);
    // A terminal that is closed is an end by SIGHUP, not an error.
    if (this.#onKey)
      process.stdin
        .setEncoding('utf8')
        .on('data', this.#type)
        .on('error', () => {});
  }

  /** Draws a page, and again at each resize. */
  show(page: () => string): void {
    this.#page = page;
    this.#redraw();
  }

  /** Leaves the screen and prints the last page. */
  close(): void {
    process.stdout.off('resize', this.#draw);
    process.off('SIGTSTP', this.#stop);
    process.off('exit', this.#leave);
    this.#leave();
    // It would keep the process alive.
    if (this.#onKey) process.stdin.off('data', this.#type).pause();
    print(this.#page?.() ?? '');
  }

  // One write over the previous page avoids flicker.
  #redraw(): void {
    if (!this.#page) return;
    const lines = linesFor(this.#page().trimEnd().split('\n'), process.stdout.rows || DEFAULT_ROWS);
    const output = lines.map((line) => `${safeLines(line, stdoutPage().colors.isColorSupported)}\u001b[K`);
    process.stdout.write(`\u001b[H${output.join('\n')}\u001b[J`);
  }
}

const DEFAULT_ROWS = 24;

function linesFor(lines: readonly string[], rows: number): readonly string[] {
  if (lines.length <= rows) return lines;
  const first = lines.slice(0, Math.max(rows - 1, 0));
  return [...first, stdoutPage().colors.dim(`… ${countText(lines.length - first.length, 'line')} more`)];
}

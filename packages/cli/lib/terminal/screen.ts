// A screen: draws pages over one another on a terminal, and restores the terminal at the end.
import { print, safeLines } from './output.js';
import { stdoutPage } from './terminal.js';
import { countText } from './text.js';

// The terminal's alternate screen, without a cursor. It cuts long lines, so that the page keeps its
// height.
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';

export class Screen {
  #page: (() => string) | undefined;
  readonly #draw = () => this.#redraw();
  readonly #stop = () => {
    process.stdout.write(LEAVE);
    // Returns when the process continues.
    process.kill(process.pid, 'SIGSTOP');
    process.stdout.write(ENTER);
    this.#redraw();
  };

  static isThere(): boolean {
    return process.stdout.isTTY === true && process.env.TERM !== 'dumb';
  }

  constructor() {
    process.stdout.write(ENTER);
    process.stdout.on('resize', this.#draw);
    // Ctrl-Z.
    process.on('SIGTSTP', this.#stop);
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
    process.stdout.write(LEAVE);
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

// A screen: pages that are drawn over one another on a terminal, which is as it was before when
// they end.
import { print, shownLines } from './output.js';
import { stdoutPage } from './terminal.js';
import { counted } from './text.js';

// The other screen of the terminal; no cursor; a line that is too long is cut, so that the page
// keeps its height.
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';

export class Screen {
  #page: (() => string) | undefined;
  readonly #draw = () => this.#redraw();
  readonly #stop = () => {
    process.stdout.write(LEAVE);
    // Returns when it is continued.
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

  /** The last page stays on the terminal. */
  close(): void {
    process.stdout.off('resize', this.#draw);
    process.off('SIGTSTP', this.#stop);
    process.stdout.write(LEAVE);
    print(this.#page?.() ?? '');
  }

  // In one piece, from the upper left corner over what was there: nothing flickers.
  #redraw(): void {
    if (!this.#page) return;
    const lines = linesFor(this.#page().trimEnd().split('\n'), process.stdout.rows || DEFAULT_ROWS);
    const shown = lines.map((line) => `${shownLines(line, stdoutPage().colors.isColorSupported)}\u001b[K`);
    process.stdout.write(`\u001b[H${shown.join('\n')}\u001b[J`);
  }
}

const DEFAULT_ROWS = 24;

function linesFor(lines: readonly string[], rows: number): readonly string[] {
  if (lines.length <= rows) return lines;
  const shown = lines.slice(0, Math.max(rows - 1, 0));
  return [...shown, stdoutPage().colors.dim(`… ${counted(lines.length - shown.length, 'line')} more`)];
}

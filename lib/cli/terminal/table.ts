// Tables for a terminal: aligned columns, one of which may give way; on one that is too narrow for
// that a block for each row. Pure.
import { type Page, PLAIN } from './terminal.js';
import { labelled, shorten } from './text.js';

export interface Column {
  readonly title: string;
  /** Shortened where the table would be wider than the page. */
  readonly flexible?: boolean;
  /**
   * Left out, the last one first, where the table would be wider than a narrow page all the same.
   */
  readonly isLesser?: boolean;
}

type Rows = readonly (readonly string[])[];

const GAP = 2;
const LEAST_FLEXIBLE = 12;

/** The lines of a table, without trailing spaces. Cells are plain text. */
export function table(columns: readonly Column[], rows: Rows, page: Page): string[] {
  const { width, isNarrow = false, colors = PLAIN } = page;
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  const excess = widthOf(widths) - width;
  const flexible = columns.findIndex((column) => column.flexible);
  if (excess > 0 && flexible >= 0)
    widths[flexible] = Math.max(widths[flexible]! - excess, Math.min(widths[flexible]!, LEAST_FLEXIBLE));
  if (isNarrow && widthOf(widths) > width) return narrowed(columns, rows, page);
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => shorten(cell, widths[i]!).padEnd(widths[i]! + GAP))
      .join('')
      .trimEnd();
  return [colors.bold(line(columns.map(({ title }) => title))), ...rows.map(line)];
}

const widthOf = (widths: readonly number[]) => widths.reduce((sum, width) => sum + width + GAP, -GAP);

function narrowed(columns: readonly Column[], rows: Rows, page: Page): string[] {
  const lesser = columns.findLastIndex(({ isLesser }) => isLesser);
  if (lesser < 0) return blocks(columns, rows, page);
  const without = <T>(list: readonly T[]) => list.filter((_, i) => i !== lesser);
  return table(without(columns), rows.map(without), page);
}

// Every row as lines of a title and its cell, an empty line between rows. A cell that says nothing
// is left out.
function blocks(columns: readonly Column[], rows: Rows, { width, colors = PLAIN }: Page): string[] {
  const titleWidth = Math.max(...columns.map(({ title }) => title.length));
  return rows.flatMap((row, i) => {
    const cells = columns.flatMap(({ title }, n) =>
      row[n] === '' ? [] : [[title.padEnd(titleWidth), row[n]!] as const],
    );
    const lines = labelled(cells, width).map(
      (line) => colors.bold(line.slice(0, titleWidth)) + line.slice(titleWidth),
    );
    return i === 0 ? lines : ['', ...lines];
  });
}

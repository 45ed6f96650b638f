// Tables for a terminal: aligned columns, of which one can shrink. A terminal too narrow for that
// gets a block for each row. Pure.
import { type Page, PLAIN } from './terminal.js';
import { labelRows, shorten } from './text.js';

export interface Column {
  readonly title: string;
  /** True to shorten the column if the table is wider than the page. */
  readonly flexible?: boolean;
  /**
   * True to leave out the column, the last one first, if the table is still wider than a narrow
   * page.
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
  if (isNarrow && widthOf(widths) > width) return narrowTable(columns, rows, page);
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => shorten(cell, widths[i]!).padEnd(widths[i]! + GAP))
      .join('')
      .trimEnd();
  return [colors.bold(line(columns.map(({ title }) => title))), ...rows.map(line)];
}

const widthOf = (widths: readonly number[]) => widths.reduce((sum, width) => sum + width + GAP, -GAP);

function narrowTable(columns: readonly Column[], rows: Rows, page: Page): string[] {
  const lesser = columns.findLastIndex(({ isLesser }) => isLesser);
  if (lesser < 0) return blocks(columns, rows, page);
  const without = <T>(list: readonly T[]) => list.filter((_, i) => i !== lesser);
  return table(without(columns), rows.map(without), page);
}

// Each row as lines of a title and its cell, with an empty line between rows. Empty cells are left
// out.
function blocks(columns: readonly Column[], rows: Rows, { width, colors = PLAIN }: Page): string[] {
  const titleWidth = Math.max(...columns.map(({ title }) => title.length));
  return rows.flatMap((row, i) => {
    const cells = columns.flatMap(({ title }, n) =>
      row[n] === '' ? [] : [[title.padEnd(titleWidth), row[n]!] as const],
    );
    const lines = labelRows(cells, width).map(
      (line) => colors.bold(line.slice(0, titleWidth)) + line.slice(titleWidth),
    );
    return i === 0 ? lines : ['', ...lines];
  });
}

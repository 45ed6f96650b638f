// Tables for a terminal: aligned columns, one of which may give way. Pure.
import { type Colors, PLAIN } from './terminal.js';
import { shorten } from './text.js';

export interface Column {
  readonly title: string;
  /** Shortened where the table would be wider than the terminal. */
  readonly flexible?: boolean;
}

export interface TableOptions {
  readonly width: number;
  readonly colors?: Colors;
}

const GAP = 2;
const LEAST_FLEXIBLE = 12;

/** The lines of a table, without trailing spaces. Cells are plain text. */
export function table(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  options: TableOptions,
): string[] {
  const { width, colors = PLAIN } = options;
  const widths = columns.map(({ title }, i) => Math.max(title.length, ...rows.map((row) => row[i]!.length)));
  const excess = widths.reduce((sum, w) => sum + w + GAP, -GAP) - width;
  const flexible = columns.findIndex((column) => column.flexible);
  if (excess > 0 && flexible >= 0)
    widths[flexible] = Math.max(widths[flexible]! - excess, Math.min(widths[flexible]!, LEAST_FLEXIBLE));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => shorten(cell, widths[i]!).padEnd(widths[i]! + GAP))
      .join('')
      .trimEnd();
  return [colors.bold(line(columns.map(({ title }) => title))), ...rows.map(line)];
}

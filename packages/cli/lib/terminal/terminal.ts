// The width and colours of stdout.
import { createColors } from 'picocolors';

export type Colors = ReturnType<typeof createColors>;

export const PLAIN: Colors = createColors(false);
const DEFAULT_WIDTH = 100;

/**
 * True if output should have colours: NO_COLOR decides first, then FORCE_COLOR, then the terminal.
 * (picocolors also looks at CI and --color.)
 */
export function wantsColors(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined) return !['', '0', 'false'].includes(env.FORCE_COLOR);
  return isTerminal && env.TERM !== 'dumb';
}

/** Where a page is printed. */
export interface Page {
  /** In characters. */
  readonly width: number;
  /**
   * True for a terminal of this width: no line should be longer. Else only long texts are wrapped.
   */
  readonly isNarrow?: boolean;
  readonly colors?: Colors;
}

/** The terminal's width, else that of COLUMNS. Some terminals report a width of 0. */
export function pageWidth(env: NodeJS.ProcessEnv, columns: number | undefined): number | undefined {
  if (columns) return columns;
  return /^[1-9]\d{0,3}$/.test(env.COLUMNS ?? '') ? Number(env.COLUMNS) : undefined;
}

export function stdoutPage(): Page & { readonly colors: Colors } {
  const { isTTY = false, columns } = process.stdout;
  const width = pageWidth(process.env, columns);
  return {
    width: width ?? DEFAULT_WIDTH,
    isNarrow: width !== undefined,
    colors: createColors(wantsColors(process.env, isTTY)),
  };
}

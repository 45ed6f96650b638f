// The abilities of stdout.
import { createColors } from 'picocolors';

export type Colors = ReturnType<typeof createColors>;

export const PLAIN: Colors = createColors(false);
const DEFAULT_WIDTH = 100;

/**
 * NO_COLOR first, then FORCE_COLOR, then whether it is a terminal. (picocolors' own rule also looks
 * at CI and at any --color.)
 */
export function colorsWanted(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined) return !['', '0', 'false'].includes(env.FORCE_COLOR);
  return isTerminal && env.TERM !== 'dumb';
}

/** The target of a printed page. */
export interface Page {
  /** In characters. */
  readonly width: number;
  /**
   * If a terminal has that width, no line should be longer; else it is only where long texts are
   * broken.
   */
  readonly isNarrow?: boolean;
  readonly colors?: Colors;
}

/** A terminal's width, else that of COLUMNS. Some terminals say that they have none: 0. */
export function givenWidth(env: NodeJS.ProcessEnv, columns: number | undefined): number | undefined {
  if (columns) return columns;
  return /^[1-9]\d{0,3}$/.test(env.COLUMNS ?? '') ? Number(env.COLUMNS) : undefined;
}

export function stdoutPage(): Page & { readonly colors: Colors } {
  const { isTTY = false, columns } = process.stdout;
  const width = givenWidth(process.env, columns);
  return {
    width: width ?? DEFAULT_WIDTH,
    isNarrow: width !== undefined,
    colors: createColors(colorsWanted(process.env, isTTY)),
  };
}

// What stdout can show.
import pc from 'picocolors';

export type Colors = ReturnType<typeof pc.createColors>;

export const PLAIN: Colors = pc.createColors(false);
const DEFAULT_WIDTH = 100;

/** NO_COLOR first, then FORCE_COLOR, then whether it is a terminal. (picocolors' own rule also looks at CI and at anybody's --color.) */
export function colorsWanted(env: NodeJS.ProcessEnv, isTerminal: boolean): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR !== undefined) return !['', '0', 'false'].includes(env.FORCE_COLOR);
  return isTerminal && env.TERM !== 'dumb';
}

export function stdoutColors(): Colors {
  return pc.createColors(colorsWanted(process.env, process.stdout.isTTY === true));
}

export function stdoutWidth(): number {
  return process.stdout.columns ?? DEFAULT_WIDTH;
}

import type { Shape } from './shapes.mjs';

export function concernsOf(shape: Shape): string[];
export function chooseShapes(
  shapes: readonly Shape[],
  changedFiles: readonly string[],
  turn: number,
  more: number,
  most?: number,
): Shape[];
export const MACHINES_OF_ROOMS: ReadonlyMap<string, readonly string[]>;

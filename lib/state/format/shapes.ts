// The shapes that values of the state files have.
import type { UnknownFields } from '../../account/pod-assignment.js';
import { type Fields, shapes } from '../../base/shapes.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { corrupt } from './sealed-json.js';

/** @throws ERR_STATE_CORRUPT */
export const { object, record, list, listOf, text, matching, flag, whole, oneOf, orNull } = shapes(
  (where, value, valid) => corrupt(`${where} is not ${valid}`, value, valid),
);

/** Every commit adds one: a number without room above it cannot be one that commits have led to. */
export const GENERATIONS = 2 ** 52;

export function generation(value: unknown): number {
  const found = whole(value, 'generation');
  return found < GENERATIONS ? found : corrupt('generation leaves no room to count on', value);
}

export function cpuSet(value: unknown, where: string): CpuSet {
  try {
    return CpuSet.parse(text(value, where));
  } catch (cause) {
    return corrupt(`${where} is not a list of CPUs (${(cause as Error).message})`, value);
  }
}

export function nodeIds(value: unknown, where: string): number[] {
  return list(value, where).map((node) => whole(node, where, NodeSet.MAX_ID));
}

// JSON.stringify recurses, and ends with a RangeError some thousand levels deep.
const MAX_DEPTH = 100;

function isWithin(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((part) => isWithin(depth - 1, part));
}

// Splits what this version knows from what it must keep.
export function unknownOf(value: Fields, known: Fields): UnknownFields {
  const unknown = Object.entries(value).filter(([key]) => !Object.hasOwn(known, key));
  const tooDeep = unknown.find(([, part]) => !isWithin(MAX_DEPTH, part));
  if (tooDeep) corrupt(`${tooDeep[0]} is nested deeper than ${MAX_DEPTH} levels`);
  return Object.fromEntries(unknown);
}

/** It becomes a file name. */
export const uuid = (value: unknown, where: string) => matching(value, where, /^[0-9a-f-]+$/, 'a uuid');

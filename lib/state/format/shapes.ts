// The shapes that values of the state files have. Most of them are right: where one is in its list
// is worked out only where it is refused.
import type { UnknownFields } from '../../account/pod-assignment.js';
import { NumalignError } from '../../base/errors.js';
import { type Fields, type Shape, shapes } from '../../base/shapes.js';
import type { Steps } from '../../base/steps.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { corrupt } from './sealed-json.js';

/** @throws ERR_STATE_CORRUPT */
export const { object, list, text, matching, flag, whole, oneOf, orNull } = shapes((where, value, valid) =>
  corrupt(`${where} is not ${valid}`, value, valid),
);

// What is refused of a part, as what is refused of the whole.
function ofPart(part: string, error: unknown): unknown {
  if (!(error instanceof NumalignError)) return error;
  return new NumalignError(error.code, `${part}: ${error.message}`, { ...error.details });
}

/** Every item of a list has the shape. `from`: where the list begins in the one that has its name. */
export function listOf<T>(value: unknown, where: string, shape: Shape<T>, from = 0): T[] {
  const items = list(value, where);
  const found: T[] = [];
  try {
    for (let i = 0; i < items.length; i++) found.push(shape(items[i], 'it'));
  } catch (error) {
    throw ofPart(`${where}[${from + found.length}]`, error);
  }
  return found;
}

// Some 10 µs each.
const ITEMS_AT_ONCE = 32;

/** As {@link listOf}, of a list that may be long. */
export function* listSteps<T>(value: unknown, where: string, shape: Shape<T>): Steps<T[]> {
  const items = list(value, where);
  const found: T[] = [];
  for (let at = 0; at < items.length; at += ITEMS_AT_ONCE) {
    found.push(...listOf(items.slice(at, at + ITEMS_AT_ONCE), where, shape, at));
    yield;
  }
  return found;
}

/** Every value of an object has the shape, which changes none: it answers the object itself. */
export function recordOf<T>(value: unknown, where: string, shape: Shape<T>): Record<string, T> {
  const fields = object(value, where);
  for (const key of Object.keys(fields)) {
    try {
      shape(fields[key], 'it');
    } catch (error) {
      throw ofPart(`${where}.${key}`, error);
    }
  }
  return fields as Record<string, T>;
}

/** What the shape makes of every value of an object. */
export function record<T>(value: unknown, where: string, shape: Shape<T>): Record<string, T> {
  const fields = object(value, where);
  const keys = Object.keys(fields);
  if (keys.length === 0) return fields as Record<string, T>;
  const found: [string, T][] = [];
  try {
    for (const key of keys) found.push([key, shape(fields[key], 'it')]);
  } catch (error) {
    throw ofPart(`${where}.${keys[found.length]}`, error);
  }
  return Object.fromEntries(found);
}

/** Every commit adds one: a number without room above it cannot be one that commits have led to. */
export const GENERATIONS = 2 ** 52;

export function generation(value: unknown): number {
  const found = whole(value, 'generation');
  return found < GENERATIONS ? found : corrupt('generation leaves no room to count on', value);
}

export function cpuSet(value: unknown, where: string): CpuSet {
  // Most that a pod names are.
  if (value === '') return CpuSet.EMPTY;
  try {
    return CpuSet.parse(text(value, where));
  } catch (cause) {
    return corrupt(`${where} is not a list of CPUs (${(cause as Error).message})`, value);
  }
}

/** It answers the list itself. */
export function nodeIds(value: unknown, where: string): number[] {
  const ids = list(value, where);
  for (const id of ids) whole(id, where, NodeSet.MAX_ID);
  return ids as number[];
}

// JSON.stringify recurses, and ends with a RangeError some thousand levels deep.
const MAX_DEPTH = 100;

function isWithin(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((part) => isWithin(depth - 1, part));
}

const NOTHING_UNKNOWN: UnknownFields = Object.freeze({});

// Splits what this version knows from what it must keep.
export function unknownOf(value: Fields, known: readonly string[]): UnknownFields {
  let unknown: [string, unknown][] | undefined;
  for (const name of Object.keys(value)) {
    if (known.includes(name)) continue;
    if (!isWithin(MAX_DEPTH, value[name])) corrupt(`${name} is nested deeper than ${MAX_DEPTH} levels`);
    unknown ??= [];
    unknown.push([name, value[name]]);
  }
  return unknown ? Object.fromEntries(unknown) : NOTHING_UNKNOWN;
}

/** It becomes a file name. */
export const uuid = (value: unknown, where: string) => matching(value, where, /^[0-9a-f-]+$/, 'a uuid');

// The shapes of values in the state files. Most values are right, so an item's place in its list is
// computed only for an error.
import type { UnknownFields } from '../../account/pod-assignment.js';
import { NumalignError, reworded } from '../../base/errors.js';
import { type Fields, type Shape, shapes } from '../../base/shapes.js';
import type { Steps } from '../../base/steps.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { corrupt, NEWER } from './sealed-json.js';

const known = shapes((where, value, valid) => corrupt(`${where} is not ${valid}`, value, valid));

/** @throws ERR_STATE_CORRUPT */
export const { object, list, text, matching, flag, whole, orNull } = known;

/**
 * One of the values that this version knows. Another text is from a newer numalign, and no damage:
 * the line that has it is sealed.
 * @throws ERR_STATE_VERSION for another text, ERR_STATE_CORRUPT for another value
 */
export function oneOf<T extends string>(value: unknown, where: string, valid: readonly T[]): T {
  if (typeof value !== 'string' || valid.includes(value as T)) return known.oneOf(value, where, valid);
  throw new NumalignError('ERR_STATE_VERSION', `${where} is '${value}', which ${NEWER}`, { value, valid });
}

// Puts the place of a part in front of the message of its error.
function ofPart(part: string, error: unknown): unknown {
  if (!(error instanceof NumalignError)) return error;
  return reworded(error, `${part}: ${error.message}`);
}

/**
 * Decodes each item of a list. `from`: the index of the first item in the list that errors name.
 */
export function listOf<T>(value: unknown, where: string, shape: Shape<T>, from = 0): T[] {
  const items = list(value, where);
  let at = from;
  try {
    // A list that grows item by item takes more memory than its items.
    return items.map((item) => {
      const found = shape(item, 'it');
      at++;
      return found;
    });
  } catch (error) {
    throw ofPart(`${where}[${at}]`, error);
  }
}

// An item takes some 10 µs.
const ITEMS_AT_ONCE = 32;

/** Like {@link listOf}, in steps for a long list. */
export function* listSteps<T>(value: unknown, where: string, shape: Shape<T>): Steps<T[]> {
  const items = list(value, where);
  const found: T[] = [];
  for (let at = 0; at < items.length; at += ITEMS_AT_ONCE) {
    found.push(...listOf(items.slice(at, at + ITEMS_AT_ONCE), where, shape, at));
    yield;
  }
  return found;
}

/** Checks each value of an object with a shape that changes no value. Returns the object itself. */
export function recordOf<T>(value: unknown, where: string, shape: Shape<T>): Record<string, T> {
  record(value, where, shape);
  return value as Record<string, T>;
}

/** Decodes each value of an object. */
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

/** An object with these members, in this order. `prefix`: what errors put in front of their names. */
export function members<T extends object>(
  shapeOf: { readonly [Name in keyof T]-?: Shape<T[Name]> },
  prefix = '',
): Shape<T> {
  const entries = Object.entries<Shape<unknown>>(shapeOf).map(
    ([name, shape]) => [name, shape, `${prefix}${name}`] as const,
  );
  return (value, where) => {
    const fields = object(value, where);
    const found: Fields = {};
    for (const [name, shape, at] of entries) found[name] = shape(fields[name], at);
    return found as T;
  };
}

/** A shape of values that may be null. */
export const nullable =
  <T>(shape: Shape<T>): Shape<T | null> =>
  (value, where) =>
    value === null ? null : shape(value, where);

/** An upper limit: commits add one each and never come this far. */
export const GENERATIONS = 2 ** 52;

export function generation(value: unknown): number {
  const found = whole(value, 'generation');
  return found < GENERATIONS ? found : corrupt('generation is too large for more commits', value);
}

export function cpuSet(value: unknown, where: string): CpuSet {
  // The most frequent value.
  if (value === '') return CpuSet.EMPTY;
  try {
    return CpuSet.parse(text(value, where));
  } catch (cause) {
    return corrupt(`${where} is not a list of CPUs (${(cause as Error).message})`, value);
  }
}

/** Returns the list itself. */
export function nodeIds(value: unknown, where: string): number[] {
  const ids = list(value, where);
  for (const id of ids) whole(id, where, NodeSet.MAX_ID);
  return ids as number[];
}

export const nodeSet: Shape<NodeSet> = (value, where) => NodeSet.from(nodeIds(value, where));

// JSON.stringify recurses and throws a RangeError at some thousand levels.
const MAX_DEPTH = 100;

function isWithin(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((part) => isWithin(depth - 1, part));
}

export const NOTHING_UNKNOWN: UnknownFields = Object.freeze({});

// The fields that this version does not know and must keep.
export function unknownOf(value: Fields, names: readonly string[]): UnknownFields {
  let unknown: [string, unknown][] | undefined;
  for (const name of Object.keys(value)) {
    if (names.includes(name)) continue;
    if (!isWithin(MAX_DEPTH, value[name])) corrupt(`${name} is nested deeper than ${MAX_DEPTH} levels`);
    unknown ??= [];
    unknown.push([name, value[name]]);
  }
  return unknown ? Object.fromEntries(unknown) : NOTHING_UNKNOWN;
}

/** A uuid becomes a file name. */
export const uuid = (value: unknown, where: string) => matching(value, where, /^[0-9a-f-]+$/, 'a uuid');

// The shapes that values of the state files have.
import type { UnknownFields } from '../../account/pod-assignment.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { corrupt, type Members } from './sealed-json.js';

// ---- reading

export function members(value: unknown, where: string): Members {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Members;
  return corrupt(`${where} is not an object`, value);
}

export function text(value: unknown, where: string): string {
  return typeof value === 'string' ? value : corrupt(`${where} is not a text`, value);
}

export function flag(value: unknown, where: string): boolean {
  return typeof value === 'boolean' ? value : corrupt(`${where} is not true or false`, value);
}

export function whole(value: unknown, where: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  return corrupt(`${where} is not a whole number`, value);
}

/** Every commit adds one: a number without room above it cannot be one that commits have led to. */
export const GENERATIONS = 2 ** 52;

export function generation(value: unknown): number {
  const found = whole(value, 'generation');
  return found < GENERATIONS ? found : corrupt('generation leaves no room to count on', value);
}

export function list(value: unknown, where: string): unknown[] {
  return Array.isArray(value) ? value : corrupt(`${where} is not a list`, value);
}

export function oneOf<T extends string>(value: unknown, valid: readonly T[], where: string): T {
  return valid.includes(value as T)
    ? (value as T)
    : corrupt(`${where} is none of ${valid.join(', ')}`, value);
}

export function orNull<T>(
  value: unknown,
  decode: (value: unknown, where: string) => T,
  where: string,
): T | null {
  return value === null ? null : decode(value, where);
}

export function cpuSet(value: unknown, where: string): CpuSet {
  try {
    return CpuSet.parse(text(value, where));
  } catch (cause) {
    return corrupt(`${where} is not a list of CPUs (${(cause as Error).message})`, value);
  }
}

export function nodeIds(value: unknown, where: string): number[] {
  return list(value, where).map((node) => {
    const id = whole(node, where);
    return id <= NodeSet.MAX_ID ? id : corrupt(`${where} has a NUMA node above ${NodeSet.MAX_ID}`, id);
  });
}

export function record<T>(
  value: unknown,
  decode: (value: unknown, where: string) => T,
  where: string,
): Record<string, T> {
  return Object.fromEntries(
    Object.entries(members(value, where)).map(([key, item]) => [key, decode(item, `${where}.${key}`)]),
  );
}

// JSON.stringify recurses, and ends with a RangeError some thousand levels deep.
const MAX_DEPTH = 100;

function isWithin(depth: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return depth > 0 && Object.values(value).every((part) => isWithin(depth - 1, part));
}

// Splits what this version knows from what it must keep.
export function unknownOf(value: Members, known: Members): UnknownFields {
  const unknown = Object.entries(value).filter(([key]) => !Object.hasOwn(known, key));
  const tooDeep = unknown.find(([, part]) => !isWithin(MAX_DEPTH, part));
  if (tooDeep) corrupt(`${tooDeep[0]} is nested deeper than ${MAX_DEPTH} levels`);
  return Object.fromEntries(unknown);
}

// It becomes a file name.
export function uuid(value: unknown, where: string): string {
  const id = text(value, where);
  return /^[0-9a-f-]*$/.test(id) ? id : corrupt(`${where} is not a uuid`, id);
}

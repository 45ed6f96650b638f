// Values of Go types: read and written as encoding/json does, and rendered as the text under
// Kubernetes' checksums. Pure.
import { CpuSet } from '../machine/cpu-set.js';
import { type GoJson, GoNumber, GoObject } from './go-json.js';

/** A Go type, as far as checkpoints need it. */
export interface GoType<T> {
  /** The name as `%T` prints it. */
  readonly name: string;
  /** The zero value of a variable. */
  readonly zero: T;
  /**
   * Reads into a variable that contains `before`.
   * @throws GoTypeError, whose message contains `where`
   */
  read(json: GoJson, before: T, where: string): T;
  write(value: T): string;
  /** The rendered value, without the type's name. */
  render(value: T): string;
}

/** Thrown for a JSON value that a Go variable cannot take, or would lose. */
export class GoTypeError extends TypeError {
  readonly details: { readonly value?: string; readonly valid: unknown };

  constructor(message: string, details: GoTypeError['details'] = { valid: "the kubelet's fields" }) {
    super(message);
    this.details = details;
  }
}

function mismatch(json: GoJson, { name }: { readonly name: string }, where: string): never {
  const kind = (() => {
    if (json instanceof GoNumber) return `the number ${json.text}`;
    if (json instanceof GoObject) return 'an object';
    return Array.isArray(json) ? 'a list' : typeof json === 'string' ? 'a text' : String(json);
  })();
  throw new GoTypeError(`${where} is ${kind}, not ${name}`);
}

const ESCAPES = /[<>&\u2028\u2029]/g;

/** Quotes a text like Go, which also escapes characters that could end a script in HTML. */
function quote(text: string): string {
  return JSON.stringify(text).replace(ESCAPES, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

export function text(name = 'string'): GoType<string> {
  const type: GoType<string> = {
    name,
    zero: '',
    read: (json, before, where) => {
      if (json === null) return before;
      return typeof json === 'string' ? json : mismatch(json, type, where);
    },
    write: quote,
    render: (value) => value,
  };
  return type;
}

/** A set that is a list in JSON, such as `0-3,8`, and a map under the checksum. */
export const cpuSet: GoType<CpuSet> = {
  name: 'cpuset.CPUSet',
  zero: CpuSet.EMPTY,
  read: (json, before, where) => {
    if (json === null) return before;
    if (typeof json !== 'string') return mismatch(json, cpuSet, where);
    try {
      return CpuSet.parse(json);
    } catch (cause) {
      throw new GoTypeError(`${where} is not a list of CPUs (${(cause as Error).message})`);
    }
  },
  write: (value) => quote(value.toString()),
  render: (value) => `{elems:(map[int]struct {})map[${[...value].map((cpu) => `${cpu}:{}`).join(' ')}]}`,
};

const UINT64 = 2n ** 64n;

export function uint64(name = 'uint64'): GoType<bigint> {
  const type: GoType<bigint> = {
    name,
    zero: 0n,
    read: (json, before, where) => {
      if (json === null) return before;
      if (!(json instanceof GoNumber) || !/^\d+$/.test(json.text)) return mismatch(json, type, where);
      const value = BigInt(json.text);
      return value < UINT64 ? value : mismatch(json, type, where);
    },
    write: String,
    render: String,
  };
  return type;
}

/** Go has 64 bits here, but these are ids and counts, which never exceed 2^53. */
export const int: GoType<number> = {
  name: 'int',
  zero: 0,
  read: (json, before, where) => {
    if (json === null) return before;
    const isInteger = json instanceof GoNumber && /^-?\d+$/.test(json.text);
    if (!isInteger || !Number.isSafeInteger(Number(json.text))) return mismatch(json, int, where);
    return Number(json.text) + 0;
  },
  write: String,
  render: String,
};

/** How a map's keys are written in JSON, and their order when rendered. */
interface GoKey<K> {
  readonly name: string;
  parse(key: string, where: string): K;
  compare(a: K, b: K): number;
}

export function textKey(name = 'string'): GoKey<string> {
  return { name, parse: (key) => key, compare: byBytes };
}

export const intKey: GoKey<number> = {
  name: 'int',
  parse: (key, where) => {
    if (/^[+-]?\d+$/.test(key) && Number.isSafeInteger(Number(key))) return Number(key) + 0;
    throw new GoTypeError(`${where} has the key ${JSON.stringify(key)}, which is not an int`);
  },
  compare: (a, b) => a - b,
};

// JSON and the checksum distinguish nil from empty.
const nil = '<nil>';

export function map<K, T>(
  key: GoKey<K>,
  element: GoType<T>,
  name = `map[${key.name}]${element.name}`,
): GoType<ReadonlyMap<K, T> | null> {
  const type: GoType<ReadonlyMap<K, T> | null> = {
    name,
    zero: null,
    read: (json, before, where) => {
      if (json === null) return null;
      if (!(json instanceof GoObject)) return mismatch(json, type, where);
      // The map keeps its entries; its elements are not merged.
      const entries = new Map(before);
      for (const [text, value] of json.members) {
        entries.set(key.parse(text, where), element.read(value, element.zero, `${where}.${text}`));
      }
      return entries;
    },
    write: (value) => {
      if (value === null) return 'null';
      const entries = Array.from(value, ([k, v]) => [String(k), v] as const).sort(([a], [b]) =>
        byBytes(a, b),
      );
      return `{${entries.map(([k, v]) => `${quote(k)}:${element.write(v)}`).join(',')}}`;
    },
    render: (value) => {
      if (value === null) return nil;
      const entries = [...value].sort(([a], [b]) => key.compare(a, b));
      return `map[${entries.map(([k, v]) => `${k}:${element.render(v)}`).join(' ')}]`;
    },
  };
  return type;
}

export function list<T>(element: GoType<T>): GoType<readonly T[] | null> {
  const type: GoType<readonly T[] | null> = {
    name: `[]${element.name}`,
    zero: null,
    read: (json, before, where) => {
      if (json === null) return null;
      if (!Array.isArray(json)) return mismatch(json, type, where);
      return json.map((item, i) => element.read(item, before?.[i] ?? element.zero, `${where}[${i}]`));
    },
    write: (value) => (value === null ? 'null' : `[${value.map((item) => element.write(item)).join(',')}]`),
    render: (value) => (value === null ? nil : `[${value.map((item) => element.render(item)).join(' ')}]`),
  };
  return type;
}

export function pointer<T>(element: GoType<T>): GoType<T | null> {
  return {
    name: `*${element.name}`,
    zero: null,
    read: (json, before, where) => (json === null ? null : element.read(json, before ?? element.zero, where)),
    write: (value) => (value === null ? 'null' : element.write(value)),
    render: (value) => (value === null ? nil : `<*>${element.render(value)}`),
  };
}

/** One field of a struct: its name in Go, its type, and whether JSON leaves it out if empty. */
export interface GoField<T> {
  readonly go: string;
  readonly type: GoType<T>;
  readonly omitEmpty?: boolean;
}

type Fields<T> = { readonly [Name in keyof T]: GoField<T[Name]> };

/**
 * A struct; `fields` by their names in JSON, in order. Go skips all other members. Here only
 * `skipped` ones are, those of other versions: what a newer kubelet adds must not be lost.
 */
export function struct<T extends object>(
  name: string,
  fields: Fields<T>,
  skipped: readonly string[] = [],
): GoType<T> {
  const entries = Object.entries(fields) as [keyof T & string, GoField<T[keyof T & string]>][];
  const isEmpty = (value: unknown) =>
    value === null ||
    (value instanceof Map && value.size === 0) ||
    (value instanceof CpuSet && value.isEmpty);
  // Go uses Unicode's simple case folding, as these patterns do.
  const patternOf = (key: string) => new RegExp(`^${key}$`, 'iu');
  const patterns = entries.map(([key]) => patternOf(key));
  const skippedPatterns = skipped.map(patternOf);
  const type: GoType<T> = {
    name,
    zero: Object.fromEntries(entries.map(([key, field]) => [key, field.type.zero])) as T,
    read: (json, before, where) => {
      if (json === null) return before;
      if (!(json instanceof GoObject)) return mismatch(json, type, where);
      const value = { ...before };
      for (const [key, member] of json.members) {
        const [field, of] = entries[patterns.findIndex((pattern) => pattern.test(key))] ?? [];
        if (field && of) value[field] = of.type.read(member, value[field], `${where}.${field}`);
        else if (!skippedPatterns.some((pattern) => pattern.test(key))) {
          throw new GoTypeError(`${where} has ${JSON.stringify(key)}, which no known kubelet writes`, {
            value: key,
            valid: [...entries.map(([each]) => each), ...skipped],
          });
        }
      }
      return value;
    },
    write: (value) => {
      const output = entries.filter(([key, { omitEmpty }]) => !(omitEmpty && isEmpty(value[key])));
      return `{${output.map(([key, field]) => `"${key}":${field.type.write(value[key])}`).join(',')}}`;
    },
    render: (value) => {
      const rendered = entries.map(([key, { go, type: of }]) => `${go}:(${of.name})${of.render(value[key])}`);
      return `{${rendered.join(' ')}}`;
    },
  };
  return type;
}

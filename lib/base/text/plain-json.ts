// The JSON form of any value.

type Plain = string | number | boolean | null | undefined | Plain[] | { [key: string]: Plain };

/**
 * A copy that JSON can represent: a bigint becomes its digits, an error its name, code and message,
 * a map or set a list, an object with `toJSON` its result. A circular reference becomes
 * `[Circular]`. Values that throw when read are left out.
 */
export function plainJson(value: unknown): Plain {
  return copy(value, []);
}

function copy(value: unknown, outer: readonly object[]): Plain {
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null) return value as Plain;
  if (outer.includes(value)) return '[Circular]';
  try {
    return copyObject(value, [...outer, value]);
  } catch {
    return undefined;
  }
}

function copyObject(value: object, outer: readonly object[]): Plain {
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === 'function') return copy(toJSON.call(value), outer);
  if (value instanceof Error) {
    const { name, code, message } = value as NodeJS.ErrnoException;
    return copy({ name, code, message }, outer);
  }
  const isList = Array.isArray(value) || ArrayBuffer.isView(value);
  if (isList || value instanceof Map || value instanceof Set) {
    return Array.from(value as Iterable<unknown>, (item) => copy(item, outer) ?? null);
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copy(item, outer)]));
}

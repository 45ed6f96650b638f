// Shapes: checks of values from outside, in options, requests and files. Each caller has its own
// words and its own code for a refusal; the checks are the same.

/** Throws: the value at `where` must be `valid`. */
export type Refuse = (where: string, value: unknown, valid: string) => never;

/** Returns the value at `where` if it is a T. @throws the caller's refusal otherwise */
export type Shape<T> = (value: unknown, where: string) => T;

/** An object, and not a list. */
export type Fields = Record<string, unknown>;

export function isObject(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Shapes that call `refuse` for a wrong value. `valid` replaces the shape's own words for what would
 * be valid.
 */
export function shapes(refuse: Refuse) {
  const object = (value: unknown, where: string, valid = 'an object'): Fields =>
    isObject(value) ? value : refuse(where, value, valid);

  const list = (value: unknown, where: string, valid = 'a list'): unknown[] =>
    Array.isArray(value) ? value : refuse(where, value, valid);

  return {
    object,
    list,

    /** Every value of an object has the shape. */
    record: <T>(value: unknown, where: string, shape: Shape<T>): Record<string, T> =>
      Object.fromEntries(
        Object.entries(object(value, where)).map(([key, item]) => [key, shape(item, `${where}.${key}`)]),
      ),

    /** Every item of a list has the shape. */
    listOf: <T>(value: unknown, where: string, shape: Shape<T>): T[] =>
      list(value, where).map((item, i) => shape(item, `${where}[${i}]`)),

    text: (value: unknown, where: string, valid = 'a text'): string =>
      typeof value === 'string' ? value : refuse(where, value, valid),

    /** A text of this form. */
    matching: (value: unknown, where: string, form: RegExp, valid: string): string =>
      typeof value === 'string' && form.test(value) ? value : refuse(where, value, valid),

    flag: (value: unknown, where: string): boolean =>
      typeof value === 'boolean' ? value : refuse(where, value, 'true or false'),

    /** A whole number from 0 to `greatest`, by default the greatest exact number. */
    whole: (value: unknown, where: string, greatest = Number.MAX_SAFE_INTEGER): number =>
      Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= greatest
        ? (value as number)
        : refuse(where, value, `a whole number from 0 to ${greatest}`),

    /** A number from 0 to `greatest`, not only a whole one; `what` names its kind in the refusal. */
    within: (value: unknown, where: string, greatest: number, what: string): number =>
      typeof value === 'number' && value >= 0 && value <= greatest
        ? value
        : refuse(where, value, `${what} from 0 to ${greatest}`),

    oneOf: <T extends string>(value: unknown, where: string, valid: readonly T[]): T =>
      valid.includes(value as T)
        ? (value as T)
        : refuse(where, value, valid.map((each) => `'${each}'`).join(' or ')),

    orNull: <T>(value: unknown, where: string, shape: Shape<T>): T | null =>
      value === null ? null : shape(value, where),

    /** A value that passes the test `is`. */
    that: <T>(value: unknown, where: string, is: (value: unknown) => value is T, valid: string): T =>
      is(value) ? value : refuse(where, value, valid),

    /** Undefined stays undefined. */
    optional: <T>(value: unknown, where: string, shape: Shape<T>): T | undefined =>
      value === undefined ? undefined : shape(value, where),
  };
}

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

/** `valid` replaces the shape's own words for what would be valid. */
export interface Shapes {
  object(value: unknown, where: string, valid?: string): Fields;
  /** Every value of an object has the shape. */
  record<T>(value: unknown, where: string, shape: Shape<T>): Record<string, T>;
  list(value: unknown, where: string, valid?: string): unknown[];
  /** Every item of a list has the shape. */
  listOf<T>(value: unknown, where: string, shape: Shape<T>): T[];
  text(value: unknown, where: string, valid?: string): string;
  /** A text of this form. */
  matching(value: unknown, where: string, form: RegExp, valid: string): string;
  flag(value: unknown, where: string): boolean;
  /** A whole number from 0 to `greatest`, by default the greatest exact number. */
  whole(value: unknown, where: string, greatest?: number): number;
  /** A number, not only a whole one; `what` names its kind in the refusal. */
  within(value: unknown, where: string, least: number, greatest: number, what: string): number;
  oneOf<T extends string>(value: unknown, where: string, valid: readonly T[]): T;
  orNull<T>(value: unknown, where: string, shape: Shape<T>): T | null;
  /** A value that passes the test `is`. */
  that<T>(value: unknown, where: string, is: (value: unknown) => value is T, valid: string): T;
  /** Undefined stays undefined. */
  optional<T>(value: unknown, where: string, shape: Shape<T>): T | undefined;
}

/** Shapes that call `refuse` for a wrong value. */
export function shapes(refuse: Refuse): Shapes {
  const of: Shapes = {
    object: (value, where, valid = 'an object') => (isObject(value) ? value : refuse(where, value, valid)),

    record: (value, where, shape) =>
      Object.fromEntries(
        Object.entries(of.object(value, where)).map(([key, item]) => [key, shape(item, `${where}.${key}`)]),
      ),

    list: (value, where, valid = 'a list') => (Array.isArray(value) ? value : refuse(where, value, valid)),

    listOf: (value, where, shape) => of.list(value, where).map((item, i) => shape(item, `${where}[${i}]`)),

    text: (value, where, valid = 'a text') =>
      typeof value === 'string' ? value : refuse(where, value, valid),

    matching: (value, where, form, valid) =>
      typeof value === 'string' && form.test(value) ? value : refuse(where, value, valid),

    flag: (value, where) => (typeof value === 'boolean' ? value : refuse(where, value, 'true or false')),

    whole: (value, where, greatest = Number.MAX_SAFE_INTEGER) =>
      Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= greatest
        ? (value as number)
        : refuse(where, value, `a whole number from 0 to ${greatest}`),

    within: (value, where, least, greatest, what) =>
      typeof value === 'number' && value >= least && value <= greatest
        ? value
        : refuse(where, value, `${what} from ${least} to ${greatest}`),

    oneOf: <T extends string>(value: unknown, where: string, valid: readonly T[]) =>
      valid.includes(value as T)
        ? (value as T)
        : refuse(where, value, valid.map((each) => `'${each}'`).join(' or ')),

    orNull: (value, where, shape) => (value === null ? null : shape(value, where)),

    that: (value, where, is, valid) => (is(value) ? value : refuse(where, value, valid)),

    optional: (value, where, shape) => (value === undefined ? undefined : shape(value, where)),
  };
  return of;
}

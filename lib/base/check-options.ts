// The checks of every function that takes options.
import { inspect } from 'node:util';
import { NumalignError } from './errors.js';

// Levenshtein's distance, to name what a misspelled option may have meant. Two letters in the wrong
// order are one mistake.
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replacement = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = i > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = isSwapped ? before[j - 2]! + 1 : replacement;
      next.push(Math.min(replacement, swap, row[j]! + 1, next[j - 1]! + 1));
    }
    [before, row] = [row, next];
  }
  return row[b.length]!;
}

// Options with another name in a KubeletConfiguration, on the command line or in a request.
const synonyms = (): Readonly<Record<string, string>> => ({
  reserved: 'reservedSystemCPUs',
  reservedcpus: 'reservedSystemCPUs',
  isolated: 'isolatedCPUs',
  strict: 'strictCPUReservation',
  count: 'cpu',
  devices: 'resources',
  topologymanagerpolicy: 'policy',
  topologymanagerscope: 'scope',
});

/** The valid key that `key`, in lower case, probably means. A poor guess would mislead. */
export function nearestOf(key: string, valid: readonly string[]): string | undefined {
  const synonym = synonyms()[key];
  if (synonym !== undefined && valid.includes(synonym)) return synonym;
  const distance = (name: string) => editDistance(key, name.toLowerCase());
  const [nearest] = [...valid].sort((a, b) => distance(a) - distance(b));
  if (nearest !== undefined && distance(nearest) <= Math.max(key.length, nearest.length) / 3) return nearest;
  const [longer, another] = valid.filter((name) => name.toLowerCase().startsWith(key));
  return another === undefined ? longer : undefined;
}

// All but an array have no members of their own: they would be taken for options that are left out.
const BUILT_IN = ['Array', 'Date', 'Map', 'Promise', 'RegExp', 'Set'];
const isBuiltIn = (value: object) =>
  BUILT_IN.includes(Object.prototype.toString.call(value).slice('[object '.length, -1));

// A Manager, say, in place of options.
function ownerText(options: object): string {
  const name: unknown = options.constructor?.name;
  return typeof name === 'string' && name !== 'Object' ? `, a member of the given ${name}.` : '.';
}

/**
 * Refuses anything but an object whose keys are all in `valid`. `elsewhere` says where a key belongs
 * that is an option of something else: `pin({ manager: { stateDir } })`.
 * @throws ERR_INVALID_OPTION, naming the valid key that was probably meant.
 */
export function checkOptions(
  options: unknown,
  valid: readonly string[],
  what: string,
  elsewhere?: (key: string) => string | undefined,
): Record<string, unknown> {
  if (typeof options !== 'object' || options === null || isBuiltIn(options)) {
    throw new NumalignError(
      'ERR_INVALID_OPTION',
      `${what}: the options must be an object, not ${display(options)}. Valid are: ${valid.join(', ')}`,
      { value: options, valid },
    );
  }
  for (const key in options) {
    if (valid.includes(key) || !Object.hasOwn(options, key)) continue;
    const place = elsewhere?.(key);
    const nearest = place === undefined ? nearestOf(key.toLowerCase(), valid) : undefined;
    const meant = place ?? (nearest && `"${nearest}"`);
    const guess = meant === undefined ? ownerText(options) : `; did you mean ${meant}?`;
    throw new NumalignError(
      'ERR_INVALID_OPTION',
      `${what} has no option "${key}"${guess} Valid are: ${valid.join(', ')}`,
      { value: key, ...(nearest !== undefined && { nearest }), valid },
    );
  }
  return options as Record<string, unknown>;
}

/** Like {@link checkOptions}; the values are taken to be of the type, or are checked later. */
export function checkNames<T extends object>(options: T, valid: readonly string[], what: string): T {
  return checkOptions(options, valid, what) as T;
}

/** Refuses the value of an option; `valid` says what would do. @throws ERR_INVALID_OPTION */
export function invalidOption(name: string, value: unknown, valid: string): never {
  throw new NumalignError('ERR_INVALID_OPTION', `${name} must be ${valid}, not ${display(value)}`, {
    option: name,
    value,
    valid,
  });
}

/** The short form of any value in messages. */
export function display(value: unknown): string {
  const text = inspect(value, {
    depth: 1,
    breakLength: Number.POSITIVE_INFINITY,
    maxArrayLength: 5,
    maxStringLength: 80,
  });
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

const MAX_NAME_LENGTH = 253; // the limit of names in Kubernetes

/** The rule of {@link isName} in words. */
export const NAME = `a text of 1 to ${MAX_NAME_LENGTH} printable characters`;

/**
 * True if a value can be a name. Names are printed: control characters would let one line look like
 * another.
 */
export function isName(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_NAME_LENGTH && /^[^\p{C}]+$/u.test(value);
}

/** The text of a thrown value in messages: JavaScript can throw any value. */
export function thrownText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : display(thrown);
}

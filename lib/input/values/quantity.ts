// Parses Kubernetes quantities such as "500m", "1.5Gi" or 2 to exact amounts: a bigint of
// nano-units, the finest unit of Kubernetes.
import { inspect } from 'node:util';
import { NumalignError } from '../../base/errors.js';

/** An amount in the form of the Kubernetes API, such as `"500m"`, `"1.5Gi"` or `2`. */
export type Quantity = string | number;

/** Millicores in one CPU. */
export const MILLI = 1000;

/** Nano-units in one unit. */
export const UNIT = 10n ** 9n;

// Each stands for a thousand times the one before.
const SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY_SUFFIXES = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

function scaleOf(suffix: string): bigint {
  const binary = BINARY_SUFFIXES.indexOf(suffix) + 1;
  return binary > 0 ? UNIT << BigInt(10 * binary) : 10n ** BigInt(3 * SUFFIXES.indexOf(suffix));
}

// Limits of exponents and texts: cheap to compute, and beyond the amounts of any machine.
const PATTERN = /^([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,2}))?$/;
const MAX_LENGTH = 100;
// Kubernetes caps greater amounts at this one or not, depending on their suffix. Here they are
// errors.
const MAX_UNITS = 2n ** 63n - 1n;

const FORM = 'a quantity such as 2, "500m", "1.5Gi" or "1e3"';

const CPUS = /^\s*([\d.]{1,40})\s*(m?)\s*(?:cpus?|cores?)?\s*$/i;
const BYTES = /^\s*([\d.]{1,40})\s*([kmgtpe]?)(i?)(?:b|bytes?)?\s*$/i;

// The quantities that "2 cores" or 4GB may stand for: of 1024 or of 1000, if it does not say which.
function likelyMeant(value: unknown, where: string): string[] {
  const [, number, unit = '', binary] = (where.endsWith('cpu') ? CPUS : BYTES).exec(String(value)) ?? [];
  if (number === undefined) return [];
  const prefix = unit.toUpperCase();
  const suffixes = where.endsWith('cpu') || unit === '' ? [unit] : [`${prefix}i`, prefix.replace('K', 'k')];
  return (binary ? suffixes.slice(0, 1) : suffixes)
    .map((suffix) => `${number}${suffix}`)
    .filter((text) => PATTERN.test(text));
}

function fail(where: string, value: unknown, valid: string): never {
  const text = inspect(value, { depth: 0, maxStringLength: 80 });
  const nearest = valid === FORM ? likelyMeant(value, where) : [];
  const guess = nearest.length > 0 ? `; did you mean "${nearest.join('" or "')}"?` : '';
  throw new NumalignError('ERR_INVALID_QUANTITY', `${where} must be ${valid}, not ${text}${guess}`, {
    field: where,
    value,
    ...(nearest.length > 0 && { nearest: nearest[0] }),
    valid,
  });
}

/** Rounds away from zero, like Kubernetes. */
function divide(amount: bigint, divisor: bigint): bigint {
  return amount < 0n ? -divide(-amount, divisor) : (amount + divisor - 1n) / divisor;
}

function toNumber(amount: bigint, where: string, valid: string): number {
  const number = Number(amount);
  return Number.isSafeInteger(number) ? number : fail(where, String(amount), valid);
}

/**
 * The exact amount in nano-units, rounded away from zero. `where` names the field in an error.
 * @throws ERR_INVALID_QUANTITY
 */
export function parseQuantity(value: unknown, where: string): bigint {
  // Most quantities are whole numbers.
  if (Number.isSafeInteger(value)) return BigInt(value as number) * UNIT;
  // A number beyond 2^53 may differ from the one in the source. NaN and the infinities fail here
  // too.
  const text =
    typeof value === 'number' && Math.abs(value) <= Number.MAX_SAFE_INTEGER ? String(value) : value;
  const match = typeof text === 'string' && text.length <= MAX_LENGTH ? PATTERN.exec(text) : null;
  if (match === null)
    return fail(where, value, Number.isFinite(value) ? `${FORM}, and a number at most 2^53-1` : FORM);
  const [, sign, whole, fraction = '', suffix = '', exponentText = '0'] = match;
  const exponent = Number(exponentText) - fraction.length;
  const power = 10n ** BigInt(Math.abs(exponent));
  const digits = BigInt(`${whole}${fraction}`) * scaleOf(suffix);
  const amount = exponent < 0 ? divide(digits, power) : digits * power;
  if (amount > MAX_UNITS * UNIT) fail(where, value, 'at most 2^63-1');
  return sign === '-' ? -amount : amount;
}

/** The amount in thousandths, rounded up. @throws ERR_INVALID_QUANTITY beyond 2^53-1 */
export function milliValue(nanos: bigint, where = 'the amount'): number {
  return toNumber(divide(nanos, UNIT / 1000n), where, 'at most 2^53-1 thousandths');
}

/** The amount in whole units, rounded up. @throws ERR_INVALID_QUANTITY beyond 2^53-1 */
export function wholeValue(nanos: bigint, where = 'the amount'): number {
  return toNumber(divide(nanos, UNIT), where, 'at most 2^53-1');
}

/** A parsed quantity. {@link milliOf} and {@link wholeOf} fill in the numbers. */
export interface Amount {
  readonly nanos: bigint;
  milli: number | undefined;
  whole: number | undefined;
}

// A cache: most pods have the same few quantities, and a look-up is faster than parsing.
const cache = new Map<unknown, Amount>();
const CACHE_SIZE = 256;

/**
 * Like {@link parseQuantity}, with the same object for the same quantity. `where`: a field of `of`.
 */
export function parseAmount(value: unknown, of: string, where: string): Amount {
  let amount = cache.get(value);
  if (!amount) {
    amount = { nanos: parseQuantity(value, `${of}.${where}`), milli: undefined, whole: undefined };
    if (cache.size === CACHE_SIZE) cache.clear();
    cache.set(value, amount);
  }
  return amount;
}

/** Like {@link milliValue}. */
export function milliOf(amount: Amount, of: string, where: string): number {
  amount.milli ??= milliValue(amount.nanos, `${of}.${where}`);
  return amount.milli;
}

/** Like {@link wholeValue}. */
export function wholeOf(amount: Amount, of: string, where: string): number {
  amount.whole ??= wholeValue(amount.nanos, `${of}.${where}`);
  return amount.whole;
}

/** Bytes in binary units with one decimal below 100, such as `62.8 GiB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${Number.isInteger(value) || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

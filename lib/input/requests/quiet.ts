// Checks and freezes the option `quiet` of a request.
import {
  type CacheShare,
  QUIET_PARTS,
  type QuietPart,
  type QuietRequest,
} from '../../account/pod-assignment.js';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { isFrom1To, option } from '../values/option-values.js';

/** The parts of {@link RequestOptions.quiet}. A part that you leave out is off. */
export interface QuietOptions {
  /** Moves the interrupts of devices to other CPUs. */
  interrupts?: boolean;
  /** Moves unbound kernel work, such as writeback, to other CPUs. */
  workqueues?: boolean;
  /** Moves the packets that the kernel steers (RPS, XPS) to other CPUs. */
  packets?: boolean;
  /**
   * Disables deep idle states. `maxLatency`: the longest wake-up time that remains, in
   * microseconds, up to 1,000,000; `true` stands for 10. With 0 the CPU polls.
   */
  idle?: boolean | { maxLatency: number };
  /** Keeps the CPUs at their greatest frequency. */
  frequency?: boolean;
  /** Reserves ways of each L3 cache of the CPUs: no other task fills them. */
  cache?: CacheShare;
  /**
   * How many of the CPUs, the lowest, `interrupts`, `workqueues` and `packets` leave as they are: the
   * grant's own interrupts can go there.
   */
  housekeeping?: number;
}

const MOST_LATENCY_US = 1_000_000;
const MOST_WAYS = 32;
const MOST_KEPT = 1024;

/** The parts of `quiet: true`: all that take no amount. */
export const WHOLE_QUIET: QuietRequest = Object.freeze({
  interrupts: true,
  workqueues: true,
  packets: true,
  idle: Object.freeze({ maxLatency: 10 }),
  frequency: true,
  cache: null,
});

function parseIdle(value: unknown): QuietRequest['idle'] {
  if (value === undefined || value === false) return null;
  if (value === true) return WHOLE_QUIET.idle;
  if (typeof value !== 'object' || value === null)
    invalidOption('quiet.idle', value, 'true, false or { maxLatency: 10 }, in microseconds');
  const { maxLatency } = checkOptions(value, ['maxLatency'], 'quiet.idle');
  return Object.freeze({ maxLatency: option.whole(maxLatency, 'quiet.idle.maxLatency', MOST_LATENCY_US) });
}

// A whole number from 1 on; `why` ends what would be valid.
const amount = (value: unknown, name: string, greatest: number, why = '') =>
  option.that(value, name, isFrom1To(greatest), `a whole number from 1 to ${greatest}${why}`);

function parseCache(value: unknown): CacheShare | null {
  if (value === undefined) return null;
  const valid = '{ ways: 4 } or { percent: 25 }';
  if (typeof value !== 'object' || value === null) invalidOption('quiet.cache', value, valid);
  const { ways, percent } = checkOptions(value, ['ways', 'percent'], 'quiet.cache');
  if ((ways === undefined) === (percent === undefined)) invalidOption('quiet.cache', value, valid);
  return Object.freeze(
    ways === undefined
      ? { percent: amount(percent, 'quiet.cache.percent', 99, ': all other tasks share the rest') }
      : { ways: amount(ways, 'quiet.cache.ways', MOST_WAYS) },
  );
}

const parseFlag = (value: unknown = false, name: string) => option.flag(value, name);

const PARSERS: { readonly [Part in QuietPart]: (value: unknown, name: string) => QuietRequest[Part] } = {
  ...{ interrupts: parseFlag, workqueues: parseFlag, packets: parseFlag },
  ...{ idle: parseIdle, frequency: parseFlag, cache: parseCache },
};

/** undefined if all parts are off. @throws ERR_INVALID_OPTION */
export function parseQuiet(value: unknown): QuietRequest | undefined {
  if (value === undefined || value === false) return undefined;
  if (value === true) return WHOLE_QUIET;
  const valid = `true, false or an object of ${QUIET_PARTS.join(', ')}`;
  if (typeof value !== 'object' || value === null) invalidOption('quiet', value, valid);
  const { housekeeping, ...fields } = checkOptions(value, [...QUIET_PARTS, 'housekeeping'], 'quiet');
  const parts = QUIET_PARTS.map((part) => [part, PARSERS[part](fields[part], `quiet.${part}`)]);
  const request = Object.fromEntries(parts) as unknown as QuietRequest;
  const kept = housekeeping !== undefined && {
    housekeeping: amount(housekeeping, 'quiet.housekeeping', MOST_KEPT),
  };
  if (Object.values(request).every((part) => !part)) return undefined;
  return Object.freeze({ ...request, ...kept });
}

/**
 * The parts that a request requires.
 * @throws ERR_INVALID_OPTION for a part that is off in `quiet`
 */
export function parseRequiredQuiet(value: unknown, quiet: QuietRequest | undefined): readonly QuietPart[] {
  if (value === undefined) return [];
  return option.listOf(value, 'require.quiet', (item, where) => {
    const part = option.oneOf(item, where, QUIET_PARTS);
    if (!quiet?.[part]) invalidOption(where, part, 'a part that `quiet` asks for');
    return part;
  });
}

/** How a part of {@link RequestOptions.quiet} is written in texts. */
export const QUIET_TEXT =
  'interrupts, workqueues, packets, idle[=MICROSECONDS], frequency, cache=WAYS, cache=PERCENT%, or all, which is all but cache';

/** A part such as `interrupts`, `idle=20`, `cache=25%` or `all`; undefined if it is none. */
export function parseQuietPart(text: string): QuietOptions | undefined {
  const [, name, amount, percent] = /^(\w+)(?:=(\d+)(%?))?$/.exec(text) ?? [];
  if (name === 'cache' && amount)
    return { cache: { [percent ? 'percent' : 'ways']: Number(amount) } as CacheShare };
  if (name === 'idle' && amount && !percent) return { idle: { maxLatency: Number(amount) } };
  const parts = QUIET_PARTS.filter((part) => part !== 'cache' && (part === name || name === 'all'));
  return amount || parts.length === 0 ? undefined : Object.fromEntries(parts.map((part) => [part, true]));
}

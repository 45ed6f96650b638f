// Durations in the form of Kubernetes: Go's time.ParseDuration.
import { invalidOption } from '../../base/check-options.js';

const unitsMs = (): Readonly<Record<string, number>> => ({
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
});
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/g;
// The longest time of a timer.
const MOST_MS = 2 ** 31 - 1;

/**
 * The milliseconds of a duration such as `10s` or `1m30s`, or of a number of milliseconds.
 * @throws ERR_INVALID_OPTION
 */
export function parseDuration(name: string, value: unknown): number {
  const ms = typeof value === 'string' ? parseText(value) : value;
  if (typeof ms === 'number' && ms >= 0 && ms <= MOST_MS) return ms;
  return invalidOption(
    name,
    value,
    `a number of milliseconds from 0 to ${MOST_MS}, or a duration such as '10s'`,
  );
}

function parseText(text: string): number | undefined {
  if (text === '0') return 0;
  const parts = [...text.matchAll(PART)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return undefined;
  const units = unitsMs();
  return parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * units[unit!]!, 0);
}

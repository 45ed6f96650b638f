// ISO 8601 in UTC.

const padded = (n: number, digits = 2) => String(n).padStart(digits, '0');

/**
 * As `date.toISOString()`, whose first call finds out the time zone of the machine: fifteen system
 * calls that UTC does not need.
 */
export function isoTime(date = new Date()): string {
  const day = [padded(date.getUTCFullYear(), 4), padded(date.getUTCMonth() + 1), padded(date.getUTCDate())];
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map((n) => padded(n));
  return `${day.join('-')}T${time.join(':')}.${padded(date.getUTCMilliseconds(), 3)}Z`;
}

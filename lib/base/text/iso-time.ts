// ISO 8601 in UTC.

const padded = (n: number, digits = 2) => String(n).padStart(digits, '0');

// The last second, which most times share.
let known = { second: Number.NaN, text: '' };

function textOfSecond(date: Date): string {
  const day = [padded(date.getUTCFullYear(), 4), padded(date.getUTCMonth() + 1), padded(date.getUTCDate())];
  const time = [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()].map((n) => padded(n));
  return `${day.join('-')}T${time.join(':')}`;
}

/**
 * As `date.toISOString()`, whose first call finds out the time zone of the machine: fifteen system
 * calls that UTC does not need.
 */
export function isoTime(date = new Date()): string {
  const second = Math.floor(date.getTime() / 1000);
  if (second !== known.second) known = { second, text: textOfSecond(date) };
  return `${known.text}.${padded(date.getUTCMilliseconds(), 3)}Z`;
}

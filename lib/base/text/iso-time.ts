// ISO 8601 in UTC.

const padded = (n: number, digits = 2) => String(n).padStart(digits, '0');

// The last text up to the minute, which the next has most often too.
const last = { minute: Number.NaN, text: '' };

function minuteText(date: Date): string {
  const day = [padded(date.getUTCFullYear(), 4), padded(date.getUTCMonth() + 1), padded(date.getUTCDate())];
  return `${day.join('-')}T${padded(date.getUTCHours())}:${padded(date.getUTCMinutes())}:`;
}

/**
 * As `date.toISOString()`, whose first call finds out the time zone of the machine: fifteen system
 * calls that UTC does not need.
 */
export function isoTime(date = new Date()): string {
  const ms = date.getTime();
  const minute = Math.floor(ms / 60_000);
  if (minute !== last.minute) {
    last.text = minuteText(date);
    last.minute = minute;
  }
  const past = ms - minute * 60_000;
  return `${last.text}${padded(Math.floor(past / 1000))}.${padded(past % 1000, 3)}Z`;
}

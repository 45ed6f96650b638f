// How grants are named, and times. Pure.
import { printable } from 'numalign/tools';

const SHOWN_ID = 8;

/** The least length from 8 on at which all ids differ. */
export function idLength(ids: readonly string[]): number {
  const longest = Math.max(SHOWN_ID, ...ids.map((id) => id.length));
  for (let length = SHOWN_ID; length < longest; length++) {
    if (new Set(ids.map((id) => id.slice(0, length))).size === ids.length) return length;
  }
  return longest;
}

/** Shortens 2026-01-02T03:04:05.678Z to 2026-01-02 03:04:05Z. */
export function since(time: string): string {
  return printable(time)
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z');
}

// Counts, lists and lines of words. Pure.
import type { CpuSet, NodeSet } from 'numalign';

/** `1 core`, `2 cores`. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The set as a list, or `none`. */
export function listText(set: CpuSet | NodeSet): string {
  return set.isEmpty ? 'none' : set.toString();
}

/** At most `width` characters; `…` marks a cut. */
export function shorten(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(width - 1, 0)).trimEnd()}…`;
}

/** Fills words into lines of `width`. A longer word gets its own line. */
export function fill(words: readonly string[], width: number): string[] {
  const lines: string[] = [];
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

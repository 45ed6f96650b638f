// Formats the texts that several commands print. Pure.
import type { CpuSet, NodeSet } from 'numalign';
import type { Page } from './terminal.js';

export { formatBytes, printable } from 'numalign/tools';

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

/** Fills paragraphs to `width`. Indented lines stay as they are. */
export function fillProse(text: string, width: number): string {
  return text.replace(/^\S.*(?:\n\S.*)*$/gm, (paragraph) =>
    fill(paragraph.split(/[ \n]+/), width).join('\n'),
  );
}

/**
 * Wraps lines that are longer than a narrow page, and indents what follows by two more. Lines with
 * colours stay as they are.
 */
export function fitPage(text: string, { width, isNarrow = false }: Page): string {
  if (!isNarrow) return text;
  const fold = (line: string) => {
    const indent = ' '.repeat(line.search(/\S/));
    const words = line.trim().split(' ');
    return fill(words, width - indent.length - 2).map((part, i) => `${indent}${i === 0 ? '' : '  '}${part}`);
  };
  const isLong = (line: string) => line.length > width && !line.includes('\u001b');
  return text
    .split('\n')
    .flatMap((line) => (isLong(line) ? fold(line) : [line]))
    .join('\n');
}

/** Rows of a label and its text, with texts aligned and filled to `width`. */
export function labelRows(
  rows: readonly (readonly [label: string, text: string])[],
  width: number,
): string[] {
  const indent = Math.max(...rows.map(([label]) => label.length)) + 2;
  return rows.flatMap(([label, text]) =>
    fill(text.split(' '), Math.max(width - indent, 20)).map(
      (line, i) => (i === 0 ? label : '').padEnd(indent) + line,
    ),
  );
}

// JSON does not escape C1 controls and line separators, and a terminal obeys them.
function escaped(json: string): string {
  const unit = (at: string, i: number) => `\\u${at.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return json.replace(/(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) => unit(character, i)).join(''),
  );
}

/** JSON on one line, with a line feed at its end. */
export function jsonLine(value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  return `${escaped(JSON.stringify(value, replacer))}\n`;
}

/** JSON for people and programs: indented, with rows of numbers on one line. */
export function formatJson(value: unknown): string {
  // JSON escapes line feeds inside strings, so this matches structure only.
  return `${escaped(JSON.stringify(value, null, 2)).replace(/\[\n\s+(\d+(?:,\n\s+\d+)*)\n\s+\]/g, (_, row: string) => `[${row.replace(/\s+/g, '').replaceAll(',', ', ')}]`)}\n`;
}

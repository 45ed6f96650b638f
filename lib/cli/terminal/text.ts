// Small pieces of text that several commands print. Pure.
import type { CpuSet, NodeSet } from '../../index.js';
import type { Page } from './terminal.js';

export { printable } from '../../base/text/printable.js';
export { formatBytes } from '../../input/values/quantity.js';

/** `1 core`, `2 cores`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The list form, or `none`. */
export function listed(set: CpuSet | NodeSet): string {
  return set.isEmpty ? 'none' : set.toString();
}

/** At most `width` characters, the cut shown by `…`. */
export function shorten(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(width - 1, 0)).trimEnd()}…`;
}

/** Words filled into lines of `width`; a word that is longer has a line of its own. */
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

/** Paragraphs filled to `width`; lines that are indented stay as they are. */
export function fillProse(text: string, width: number): string {
  return text.replace(/^\S.*(?:\n\S.*)*$/gm, (paragraph) =>
    fill(paragraph.split(/[ \n]+/), width).join('\n'),
  );
}

/**
 * Plain lines that are longer than a narrow page, filled to it: what follows is indented by two
 * more. Those with colours are left alone.
 */
export function fitted(text: string, { width, isNarrow = false }: Page): string {
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

/** Rows of a label and its text, the texts aligned and filled to `width`. */
export function labelled(rows: readonly (readonly [label: string, text: string])[], width: number): string[] {
  const indent = Math.max(...rows.map(([label]) => label.length)) + 2;
  return rows.flatMap(([label, text]) =>
    fill(text.split(' '), Math.max(width - indent, 20)).map(
      (line, i) => (i === 0 ? label : '').padEnd(indent) + line,
    ),
  );
}

// JSON leaves the C1 controls and the line separators as they are, and a terminal obeys them.
function escaped(json: string): string {
  const unit = (at: string, i: number) => `\\u${at.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return json.replace(/(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu, (character) =>
    Array.from({ length: character.length }, (_, i) => unit(character, i)).join(''),
  );
}

/** JSON in one line, with its line feed. */
export function jsonLine(value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  return `${escaped(JSON.stringify(value, replacer))}\n`;
}

/** JSON for people and programs: indented, with rows of numbers on one line. */
export function formatJson(value: unknown): string {
  // A line feed inside a string is escaped, so this matches structure only.
  return `${escaped(JSON.stringify(value, null, 2)).replace(/\[\n\s+(\d+(?:,\n\s+\d+)*)\n\s+\]/g, (_, row: string) => `[${row.replace(/\s+/g, '').replaceAll(',', ', ')}]`)}\n`;
}

// Formats the texts that several commands print. Pure.
import { fill } from '@numalign/page/words';
import type { Page } from './terminal.js';

export { countText, fill, listText, shorten } from '@numalign/page/words';
export { formatBytes, printable } from 'numalign/tools';

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

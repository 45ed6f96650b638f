// The documents and the code blocks in them.
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { beforeEach } from 'vitest';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export const read = (path: string): string => readFileSync(`${ROOT}${path}`, 'utf8');

/** What users read, and what contributors do. */
export const PAGES: readonly string[] = [
  'README.md',
  'CONTRIBUTING.md',
  ...readdirSync(`${ROOT}docs`).flatMap((name) => (name.endsWith('.md') ? `docs/${name}` : [])),
];

/** In a suite about {@link REFERENCE}: a failure ends with what writes these pages. */
export function hintAtDocs(): void {
  beforeEach(({ onTestFailed }) => {
    onTestFailed(({ task }) => {
      for (const error of task.result?.errors ?? [])
        error.message += '\n\nThe pages of docs/reference are generated: npm run docs';
    });
  });
}

/** What `npm run docs` writes. */
export const REFERENCE: readonly string[] = readdirSync(`${ROOT}docs/reference`).map(
  (name) => `docs/reference/${name}`,
);

export interface CodeBlock {
  readonly page: string;
  readonly line: number;
  /** After the fence; empty where there is none. */
  readonly language: string;
  readonly text: string;
  /** A `text` block right after it (or after a line that leads over to it): what it prints. */
  readonly output: string | undefined;
}

function blocksOf(page: string): CodeBlock[] {
  const source = read(page);
  const found = [...source.matchAll(/^( *)(```+)([^\n`]*)\n(.*?)^\1\2$/gms)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
    language: match[3]!.trim(),
    text: match[4]!,
  }));
  return found.map(({ start, end, language, text }, i) => {
    const next = found[i + 1];
    const between = next && source.slice(end, next.start);
    const isOutput = next?.language === 'text' && /^\n\n(?:[^\n]*:\n\n)?$/.test(between!);
    const line = source.slice(0, start).split('\n').length;
    return { page, line, language, text, output: isOutput ? next.text : undefined };
  });
}

/** All code blocks of all pages. */
export const BLOCKS: readonly CodeBlock[] = PAGES.flatMap(blocksOf);

/** What stands in the running text as code. */
export function inlineCode(page: string): string[] {
  const text = read(page).replace(/^( *)```.*?^\1```$/gms, '');
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!);
}

/** What stands in a text as code. */
export const codeIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code]) => code!);

/** The text from a heading to the next one of its level or a higher one. */
export function section(page: string, heading: string): string {
  const level = /^#+/.exec(heading)![0].length;
  const from = page.indexOf(`\n${heading}\n`);
  if (from < 0) throw new Error(`no heading ${heading}`);
  const rest = page.slice(from + heading.length + 2);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return end < 0 ? rest : rest.slice(0, end);
}

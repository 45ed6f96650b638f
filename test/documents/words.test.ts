// needs: folders
// The words of documents, comments, messages and test titles: direct English, and not too much of it.
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PAGES, REFERENCE, ROOT, read } from '../support/documents.js';

// Turns that have a plainer word in every place.
const BANNED = [
  'whoever',
  'whomever',
  'whom',
  'nobody',
  'somebody',
  'anybody',
  'everybody',
  'he',
  'him',
  'his',
  'himself',
  'anew',
  'told of',
  'to be had',
  'is had',
  'had from',
  'be it',
  'should it',
  'such as have',
  'wherein',
  'whereof',
  'thereof',
  'therein',
  'lest',
];

// Comments are wrapped: a turn may continue after the mark of the next line.
const GAP = String.raw`(?: |\s*\n\s*(?:\/\/+|#+|\*)?\s*)`;
const TURNS = new RegExp(
  `\\b(?:${BANNED.map((turn) => turn.replaceAll(' ', GAP)).join('|')})\\b|\\bof${GAP}that(?=[.,;:)])`,
  'gi',
);

function turnsIn(text: string): [line: number, turn: string][] {
  return [...text.matchAll(TURNS)].map(({ 0: turn, index }) => [
    text.slice(0, index).split('\n').length,
    turn.replace(/\s+(?:(?:\/\/|#|\*)\s*)?/g, ' '),
  ]);
}

const SOURCE = /\.([cm]?[jt]s|h|c|cc|cpp|sh|py|ya?ml)$/;
const FOREIGN = /(^|\/)(node_modules|build|vectors|fixtures)(\/|$)/;
// This file has the turns themselves.
const SELF = 'test/documents/words.test.ts';

function sourcesIn(folder: string): string[] {
  return readdirSync(`${ROOT}${folder}`, { recursive: true, encoding: 'utf8' })
    .map((name) => `${folder}/${name}`)
    .filter((path) => SOURCE.test(path) && !FOREIGN.test(path) && path !== SELF);
}

const foldersIn = (folder: string) =>
  readdirSync(`${ROOT}${folder}`, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() && !FOREIGN.test(entry.name) ? [`${folder}/${entry.name}`] : [],
  );

const filesIn = (folder: string) =>
  readdirSync(`${ROOT}${folder}`).flatMap((name) => (SOURCE.test(name) ? [`${folder}/${name}`] : []));

const ROOMS: readonly (readonly [room: string, files: readonly string[]])[] = [
  ['documents', PAGES],
  ['docs/reference', REFERENCE],
  ['lib', filesIn('lib')],
  ...[
    ...['lib', 'native', 'test', 'packages/kubernetes/test'].flatMap(foldersIn),
    ...[
      'packages/kubernetes/lib',
      'packages/claims',
      'packages/cli',
      'packages/metrics',
      'packages/page',
      'bench',
      'scripts',
      'examples',
    ],
  ].map((folder) => [folder, sourcesIn(folder)] as const),
];

describe('banned turns', () => {
  it.each(ROOMS)('are not in %s', (_, files) => {
    const turns = files.flatMap((file) => turnsIn(read(file)).map((found) => [file, ...found].join(' ')));
    expect(turns).toEqual([]);
  });

  it('are found over the end of a line, and not in longer words', () => {
    expect(turnsIn('// this is told\n  // of anything')).toEqual([[1, 'told of']]);
    expect(turnsIn('the end of that.')).toEqual([[1, 'of that']]);
    expect(turnsIn('the members of that group, this, the, shed')).toEqual([]);
  });
});

const countWords = (text: string) => text.split(/\s+/).filter((word) => word !== '').length;

describe('the length of the documents', () => {
  it('of the README is at most 900 words', () => {
    expect(countWords(read('README.md'))).toBeLessThanOrEqual(900);
  });

  it('of all without the generated pages is at most 20,000 words', () => {
    const packages = readdirSync(`${ROOT}packages`).map((name) => `packages/${name}/README.md`);
    const counts = [...PAGES, 'CHANGELOG.md', ...packages].map((page) => countWords(read(page)));
    expect(counts.reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(20_000);
  });
});

/** The text of a page without code and pictures. */
function proseOf(page: string): string {
  return read(page)
    .replace(/^( *)```.*?^\1```$/gms, '')
    .replace(/!\[[^\]]*\]\([^)]*\)/g, '')
    .replace(/`[^`\n]*`/g, '');
}

// Words of everyday English too: a link would say nothing.
const PLAIN = ['cpu', 'core', 'package', 'plan', 'state', 'flag', 'clear', 'commit', 'merge', 'distance'];

describe('the vocabulary', () => {
  const terms = [...read('docs/vocabulary.md').matchAll(/^- \*\*([^*]+)\*\*|\*\*(rejection)\*\*/gm)]
    .map(([, term, other]) => (term ?? other)!.toLowerCase())
    .filter((term) => !PLAIN.includes(term));

  it('has the terms that are looked for', () => {
    expect(terms).toEqual(expect.arrayContaining(['grant', 'shared pool', 'owner', 'hint', 'policy']));
  });

  it('is linked where the README first uses one of its terms', () => {
    // The list of documents is all links.
    const prose = proseOf('README.md').split('## Documents')[0]!;
    const unlinked = terms.flatMap((term) => {
      // Plurals count, and lines are wrapped.
      const pattern = term.replace(/s$/, '').replaceAll(' ', '\\s+').replace(/y$/, '(?:y|ie)');
      const [first] = prose.matchAll(new RegExp(`(\\[[^\\]]*?)?\\b${pattern}s?\\b`, 'gi'));
      return first && first[1] === undefined
        ? [`${term}: ${prose.slice(first.index - 30, first.index + 30)}`]
        : [];
    });
    expect(unlinked).toEqual([]);
  });
});

// The documents are true: every JavaScript block runs as it stands, but in a state folder of its own; commands, manifests, links and figures are what there is.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { createProgram } from '../lib/cli/program.js';
import { parsePod } from '../lib/pod-request.js';
import { MAIN, numalign } from './cli/numalign.js';
import { makeStateDir } from './support/state-dir.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The JavaScript blocks of a document, each with the output that is shown right after it (and a line that leads over to it). */
function blocksOf(path: string) {
  const text = readFileSync(`${ROOT}${path}`, 'utf8');
  return [...text.matchAll(/^```js\n(.*?)^```\n(?:\n(?:[^\n]*:\n\n)?```text\n(.*?)^```)?/gms)].map(
    ([, code, output], i) => [path, i + 1, code!, output] as const,
  );
}

const PAGES = [
  'README.md',
  ...readdirSync(`${ROOT}docs`).flatMap((name) => (name.endsWith('.md') ? `docs/${name}` : [])),
];
const blocks = PAGES.flatMap(blocksOf);
const read = (path: string) => readFileSync(`${ROOT}${path}`, 'utf8');
/** What is between the fences of a language, with the page that it is on. */
const fenced = (language: string) =>
  PAGES.flatMap((page) =>
    [...read(page).matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].map(
      ([, text]) => [page, text!] as const,
    ),
  );

// Numbers depend on the machine.
const shape = (text: string) => text.replace(/\d+(-\d+)?/g, 'N');

function run(code: string) {
  const stateDir = `stateDir: ${JSON.stringify(makeStateDir())}`;
  // Simulated machines have none.
  const own = code
    .replace('openManager()', `openManager({ ${stateDir} })`)
    .replace(/openManager\(\{(?!\s*topology\b)/, `openManager({ ${stateDir},`);
  return spawnSync(process.execPath, ['--input-type=module', '-e', own], { cwd: ROOT, encoding: 'utf8' });
}

describe('the documents', () => {
  it.each(blocks)('%s has a block %i that runs, and prints what is shown', (_path, _number, code, output) => {
    const { status, stdout, stderr } = run(code);
    expect([status, stderr]).toEqual([0, '']);
    if (output !== undefined) expect(shape(stdout)).toBe(shape(output));
    // What the comment behind a console.log promises.
    for (const [, promised] of code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)) expect(stdout).toContain(promised!);
  });

  it('show output where they should', () => {
    expect(blocks.filter(([, , , output]) => output !== undefined).length).toBe(8);
  });
});

describe('what the documents show of the command line', () => {
  it.each(fenced('console'))('%s shows what is printed', async (_page, text) => {
    const [first, ...shown] = text.trimEnd().split('\n');
    const line = first!.replace(/^\$ numalign/, `'${process.execPath}' '${MAIN}'`);
    const { code, stdout, stderr } = await numalign([], {
      program: ['/bin/sh', '-c', `cd '${ROOT}examples' && ${line}`],
    });
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.trimEnd().split('\n')).toEqual(shown);
  });

  // Whatever is run of these would change the machine: it is only read.
  it.each(fenced('sh').filter(([, text]) => text.includes('numalign ')))(
    '%s uses commands and options that there are',
    (_page, text) => {
      for (const [, line] of text.matchAll(/^(?:\$ )?numalign (.*?)(?: -- .*| *#.*)?$/gm)) {
        const words = line!.split(/\s+/);
        let command: Command | undefined = createProgram();
        while (command && command.commands.length > 0) {
          const name: string = words.shift()!;
          command = command.commands.find((each) => each.name() === name);
        }
        expect(command, line).toBeDefined();
        const known = command!.options.flatMap(({ long, short }) => [long, short]);
        expect(
          words.filter((word) => /^--?[a-z]/.test(word) && !known.includes(word)),
          line,
        ).toEqual([]);
      }
    },
  );

  it.each(fenced('yaml'))('%s has a manifest that is one', (_page, text) => {
    const documents = parseAllDocuments(text).map((document) => document.toJS());
    expect(documents.map((document) => parsePod(document).qosClass)).toEqual(documents.map(() => 'Guaranteed'));
  });
});

describe('the links of the documents', () => {
  // As GitHub makes it of a heading.
  const anchorOf = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');

  it.each([...PAGES, 'CHANGELOG.md', 'CONTRIBUTING.md', 'THIRD-PARTY-NOTICES.md'])(
    '%s leads to what is there',
    (page) => {
      const text = read(page)
        .replace(/^```.*?^```/gms, '')
        .replace(/`[^`\n]*`/g, '');
      for (const [, target] of text.matchAll(/\]\((?!https?:)([^)\s]+)\)/g)) {
        const [path, anchor] = target!.split('#');
        const file = path === '' ? `${ROOT}${page}` : resolve(ROOT, dirname(page), path!);
        expect([target, existsSync(file)]).toEqual([target, true]);
        if (anchor === undefined) continue;
        const headings = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
          anchorOf(heading!),
        );
        expect([target, headings.includes(anchor)]).toEqual([target, true]);
      }
    },
  );
});

describe('the figures of the documents', () => {
  const benchmarks = read('docs/benchmarks.md');
  const cellsOf = (row: string) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());

  /** The cells of a row of the benchmarks, by its scenario and its name. */
  function measured(scenario: string, name: string): string[] {
    const [, table = ''] = benchmarks.split(`\n### ${scenario}\n`);
    const row = table
      .split(/^##/m)[0]!
      .split('\n')
      .find((line) => line.startsWith(`| ${name} |`));
    return row === undefined ? [] : cellsOf(row);
  }

  it('in README.md are those of docs/benchmarks.md', () => {
    const rows = [...read('README.md').matchAll(/^\| `(\w+): ([^`]+)` \|.*\|$/gm)];
    expect(rows.length).toBe(16);
    for (const [row, scenario, name] of rows) {
      const figures = cellsOf(row).slice(1).filter(Boolean);
      expect(measured(scenario!, name!), `${scenario}: ${name}`).toEqual(expect.arrayContaining(figures));
    }
    const [, met, missed] = /(\d+) targets met, (\d+) missed/.exec(benchmarks)!;
    expect(read('README.md')).toContain(`${met} are met and ${missed} missed`);
  });

  it('in docs/recipes.md are those of docs/benchmarks.md', () => {
    const [, table = ''] = read('docs/recipes.md').split(
      "| V8's helpers | median | p99 | p99.9 | most |\n|---|---|---|---|---|\n",
    );
    const rows = table.split('\n\n')[0]!.split('\n').map(cellsOf);
    expect(rows.length).toBe(4);
    for (const [name, ...figures] of rows) {
      expect(measured('isolation', `collection: ${name}`)).toEqual(expect.arrayContaining(figures));
    }
  });
});

describe('the list of errors', () => {
  it('has a row for every code, and none for others', () => {
    const codes = (path: string, pattern: RegExp) =>
      [...readFileSync(`${ROOT}${path}`, 'utf8').matchAll(pattern)].map((match) => match[1]!).sort();
    expect(codes('docs/errors.md', /^\| `(ERR_\w+)` \|/gm)).toEqual(codes('lib/errors.ts', /^ {2}\| '(ERR_\w+)'/gm));
  });
});

// needs: documents
// The documents are true: every code block is run, or checked as far as possible; links and figures
// match.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { discover } from '../../lib/entries/topology.js';
import { openManager } from '../../lib/index.js';
import { parsePod } from '../../lib/input/pods/pod-request.js';
import { MAIN, newFolder, numalign } from '../../packages/cli/test/numalign.js';
import { type Call, checkedProgram, runShell } from '../support/documented-commands.js';
import { BLOCKS, type CodeBlock, inlineCode, PAGES, REFERENCE, ROOT, read } from '../support/documents.js';
import { makeStateDir } from '../support/state-dir.js';

const blocksIn = (...languages: string[]) => BLOCKS.filter(({ language }) => languages.includes(language));

// Numbers and lists of them depend on the machine.
const shape = (text: string) => text.replace(/\d+(-\d+)?(,\d+(-\d+)?)*/g, 'N');

// Pictures made of letters: nothing prints them.
const DRAWINGS = [' discover ──►', '/numalign  ', '             before  '];

describe('every code block of the documents', () => {
  it('has a language that is checked below', () => {
    const checked = ['js', 'ts', 'sh', 'console', 'ini', 'yaml', 'text'];
    const others = BLOCKS.filter(({ language }) => !checked.includes(language));
    expect(others.map(({ page, line, language }) => [page, line, language])).toEqual([]);
    for (const language of checked)
      expect([language, blocksIn(language).length > 0]).toEqual([language, true]);
  });

  it('of text is the output of the block before it, or a drawing', () => {
    const outputs = BLOCKS.filter(({ output }) => output !== undefined);
    expect(outputs.map(({ page, language }) => [page, language])).toEqual(
      outputs.map(({ page }) => [page, 'js']),
    );
    const printed = new Set(outputs.map(({ page, output }) => `${page}\n${output}`));
    const others = blocksIn('text').filter(({ page, text }) => !printed.has(`${page}\n${text}`));
    const isDrawing = (text: string) => DRAWINGS.some((begin) => text.startsWith(begin));
    expect(others.filter(({ text }) => !isDrawing(text)).map(({ page, line }) => [page, line])).toEqual([]);
    expect(others.length).toBe(DRAWINGS.length);
  });
});

const CLUSTER = "import cluster from 'numalign/cluster';\n";

// Workers run the same file as their primary.
function clusterFile(text: string, stateDir: string): string {
  const file = join(projectFolder(), 'cluster.mjs');
  const manager = `if (cluster.isPrimary) cluster.setupPrimary({ manager: { ${stateDir} } });\n`;
  writeFileSync(file, text.replace(CLUSTER, `${CLUSTER}${manager}`));
  return file;
}

/** A folder where the package is installed. */
function projectFolder(): string {
  const project = newFolder();
  mkdirSync(join(project, 'node_modules'));
  symlinkSync(ROOT, join(project, 'node_modules/numalign'));
  return project;
}

describe('JavaScript of the documents', () => {
  it.each(blocksIn('js'))('runs, and prints the shown output: $page, line $line', ({ text, output }) => {
    const stateDir = `stateDir: ${JSON.stringify(makeStateDir())}`;
    // Simulated machines have none.
    const own = text
      .replace('openManager()', `openManager({ ${stateDir} })`)
      .replace(/\bpin\(\{ cpu/, `pin({ manager: { ${stateDir} }, cpu`)
      .replace(/openManager\(\{(?!\s*topology\b)/, `openManager({ ${stateDir},`);
    const program = own.includes(CLUSTER) ? [clusterFile(own, stateDir)] : ['--input-type=module', '-e', own];
    const { status, stdout, stderr } = spawnSync(process.execPath, program, { cwd: ROOT, encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    if (output !== undefined) expect(shape(stdout)).toBe(shape(output));
    // The comment after a console.log has its output.
    for (const [, promised] of text.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm))
      expect(stdout).toContain(promised!);
  });
});

describe('TypeScript of the documents', () => {
  it('compiles with strict settings where the package is installed', () => {
    const project = projectFolder();
    mkdirSync(join(project, 'node_modules/@numalign'));
    for (const name of ['kubernetes', 'metrics'])
      symlinkSync(`${ROOT}packages/${name}`, join(project, 'node_modules/@numalign', name));
    for (const name of ['@types', 'piscina', 'prom-client', '@opentelemetry'])
      symlinkSync(`${ROOT}node_modules/${name}`, join(project, 'node_modules', name));
    writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
    const compilerOptions = {
      module: 'nodenext',
      target: 'es2022',
      strict: true,
      exactOptionalPropertyTypes: true,
      // Those of piscina do not compile so.
      skipLibCheck: true,
      noEmit: true,
      types: ['node'],
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    // Declarations that a block may rely on.
    writeFileSync(
      join(project, 'before.d.ts'),
      "declare const grant: import('numalign').Grant;\ndeclare const tid: number;\n",
    );
    // JavaScript too: users of TypeScript copy it.
    for (const { page, line, text } of blocksIn('ts', 'js')) {
      writeFileSync(join(project, `${basename(page, '.md')}-${line}.ts`), `${text}export {};\n`);
    }
    const { status, stdout } = spawnSync(process.execPath, [`${ROOT}node_modules/typescript/bin/tsc`], {
      cwd: project,
      encoding: 'utf8',
    });
    expect([status, stdout]).toEqual([0, '']);
  });
});

describe('commands with their output', () => {
  // `$ cat FILE` shows a file, which is there for the commands after it.
  it.each(blocksIn('console'))('print the shown output: $page, line $line', async ({ text }) => {
    const folder = newFolder();
    for (const name of ['pod.yaml', 'deployment.yaml']) cpSync(`${ROOT}examples/${name}`, join(folder, name));
    let count = 0;
    for (const [, line, shown] of text.matchAll(/^\$ (.*)\n((?:(?!\$ ).*\n)*)/gm)) {
      const file = /^cat (\S+)$/.exec(line!)?.[1];
      if (file !== undefined) {
        writeFileSync(join(folder, file), shown!);
        continue;
      }
      const command = line!.replace(/^numalign/, `'${process.execPath}' '${MAIN}'`);
      const program = ['/bin/sh', '-c', `cd '${folder}' && ${command}`] as const;
      const { code, stdout, stderr } = await numalign([], { program });
      expect([code, stderr]).toEqual([0, '']);
      expect(stdout).toBe(shown);
      count++;
    }
    expect(count).toBeGreaterThan(0);
  });
});

/** Where a number of CPUs is written for a machine that is larger than this one. */
async function expectAcquirable({ env }: Pick<Call, 'env'>) {
  const topology = await discover({ synthetic: 'package:2 [numa(memory=16GiB)] core:8 pu:2' });
  const manager = await openManager({ ...JSON.parse(env.NUMALIGN_MANAGER ?? '{}'), topology });
  const grant = await manager.acquire(JSON.parse(env.NUMALIGN_ACQUIRE!));
  expect(grant.cpus.isEmpty).toBe(false);
}

describe('shell of the documents', () => {
  it.each(blocksIn('sh'))('has existing commands and options: $page, line $line', async ({ text }) => {
    const { status, stderr, calls } = runShell(text);
    expect([status, stderr]).toEqual([0, '']);
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) if ('NUMALIGN_ACQUIRE' in call.env) await expectAcquirable(call);
  });

  it('is distinguished from commands and options that do not exist', () => {
    expect(runShell('numalign plan --no-such-option').stderr).toContain("unknown option '--no-such-option'");
    expect(runShell('numalign run --cpus many -- ./server').stderr).toContain('many');
    expect(runShell('npm run no-such-script').stderr).toContain('no-such-script');
    expect(runShell('bash scripts/none.sh').stderr).toContain('scripts/none.sh');
    expect(runShell('no-such-program').status).toBe(127);
  });

  it.each([...PAGES, ...REFERENCE])(
    'in the text of %s names existing commands, options and scripts',
    (page) => {
      const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
      for (const code of inlineCode(page)) {
        const words = code.split(/\s+/);
        const npm = /^npm run ([\w:-]+)/.exec(code)?.[1];
        if (npm !== undefined) expect(Object.keys(scripts), code).toContain(npm);
        if (words[0] !== 'numalign' || !/^[a-z]/.test(words[1] ?? '')) continue;
        let command = checkedProgram();
        for (let i = 1; command.commands.length > 0 && words[i] !== undefined; i++) {
          const next = command.commands.find((each) => each.name() === words[i]);
          expect(next, code).toBeDefined();
          command = next!;
        }
        const end = words.indexOf('--');
        const given = words.slice(0, end < 0 ? undefined : end).filter((word) => /^--?[a-z]/.test(word));
        const known = command.options.flatMap(({ long, short }) => [long, short]);
        expect(
          given.filter((word) => !known.includes(word.replace(/=.*/, ''))),
          code,
        ).toEqual([]);
      }
    },
  );

  it.each([...PAGES, ...REFERENCE])('in %s names existing files', (page) => {
    const paths = inlineCode(page).filter((code) =>
      /^(lib|native|test|scripts|bench|docs|examples)\/[a-z\d./_-]+$/.test(code),
    );
    expect(paths.filter((path) => !existsSync(`${ROOT}${path}`))).toEqual([]);
  });
});

describe('units of systemd in the documents', () => {
  const nameOf = ({ text }: CodeBlock) => basename(/^# (\S+)$/m.exec(text)![1]!);
  const settings = (text: string, key: string) =>
    [...text.matchAll(new RegExp(`^${key}=(.*)$`, 'gm'))].map(([, value]) => value!);

  it.each(blocksIn('ini'))(
    'start what there is, with options that there are: $page, line $line',
    async ({ text }) => {
      const [command] = settings(text, 'ExecStart');
      const quoted = settings(text, 'Environment').join(' ');
      const { status, stderr, calls } = runShell(`export ${quoted}\n${command!.replace('/usr/bin/', '')}`);
      expect([status, stderr, calls.length]).toEqual([0, '', 1]);
      if (quoted.includes('NUMALIGN_ACQUIRE')) await expectAcquirable(calls[0]!);
    },
  );

  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;

  it.runIf(hasSystemd)('are valid for systemd', () => {
    const folder = newFolder();
    for (const block of blocksIn('ini')) {
      // It checks that the program exists.
      const text = block.text.replaceAll(/\/usr\/bin\/(node|numalign)/g, process.execPath);
      writeFileSync(join(folder, nameOf(block)), text);
    }
    const units = blocksIn('ini').map(nameOf);
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', ...units.map((name) => `./${name}`)], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect([status, stderr]).toEqual([0, '']);
  });
});

describe('manifests of the documents', () => {
  const all = blocksIn('yaml').map((block) => ({
    ...block,
    documents: parseAllDocuments(block.text).map((document) => document.toJS()),
  }));

  it.each(all)('are of Guaranteed pods: $page, line $line', ({ documents }) => {
    expect(documents.map(({ kind }) => kind)).toEqual(documents.map(() => 'Pod'));
    expect(documents.map((document) => parsePod(document).qosClass)).toEqual(
      documents.map(() => 'Guaranteed'),
    );
  });
});

describe('the links of the documents', () => {
  // GitHub's anchor of a heading.
  const anchorOf = (heading: string) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-');

  it.each([...PAGES, ...REFERENCE, 'CHANGELOG.md', 'THIRD-PARTY-NOTICES.md'])(
    '%s leads to existing targets',
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
  const benchmarks = read('docs/reference/benchmarks.md');
  const cellsOf = (row: string) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());

  /** The cells of a row of the benchmarks, by its scenario and its name. */
  function measured(scenario: string, name: string): string[] {
    const [, table = ''] = benchmarks.split(`\n## ${scenario}\n`);
    const row = table
      .split(/^## /m)[0]!
      .split('\n')
      .find((line) => line.startsWith(`| ${name} |`));
    return row === undefined ? [] : cellsOf(row);
  }

  it('in README.md are those of docs/reference/benchmarks.md', () => {
    const rows = [...read('README.md').matchAll(/^\| [^|]+ \| `(\w+): ([^`]+)` \|.*\|$/gm)];
    expect(rows.length).toBe(5);
    for (const [row, scenario, name] of rows) {
      const figures = cellsOf(row).slice(2).filter(Boolean);
      expect(measured(scenario!, name!), `${scenario}: ${name}`).toEqual(expect.arrayContaining(figures));
    }
  });

  it('in docs/benchmarks.md are those of docs/reference/benchmarks.md', () => {
    const rows = [...read('docs/benchmarks.md').matchAll(/^\| `([\w-]+): ([^`]+)` \|.*\|$/gm)];
    expect(rows.length).toBe(15);
    for (const [row, scenario, name] of rows) {
      const figures = cellsOf(row).slice(1).filter(Boolean);
      expect(measured(scenario!, name!), `${scenario}: ${name}`).toEqual(expect.arrayContaining(figures));
    }
    const [counts] = /\d+ targets met, \d+ missed/.exec(benchmarks)!;
    expect(read('docs/benchmarks.md').replace(/\s+/g, ' ')).toContain(counts);
  });
});

// needs: documents
// What the command loads for what is asked of it, and from where.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { installIn } from '../../../test/support/installed.js';
import { newFolder } from './numalign.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Prints, at the end, which files were loaded, and whether from compiled code; and which parts of Node
 * when another program was to take the place of this one.
 */
const RECORD = `
  const { dlopen, moduleLoadList } = process;
  let parts = [];
  process.dlopen = (module, ...rest) => {
    dlopen.call(process, module, ...rest);
    const { execute } = module.exports;
    module.exports.execute = (program) => {
      parts = [...moduleLoadList];
      return execute(program);
    };
  };
  const vm = require('node:vm');
  const compiled = [];
  vm.Script = class extends vm.Script {
    constructor(source, options) {
      super(source, options);
      if (this.cachedDataRejected === false) compiled.push(options.filename);
    }
  };
  process.on('exit', () => {
    const files = Object.keys(require.cache).filter((file) => file !== __filename);
    process.stderr.write('\\n' + JSON.stringify({ files, compiled, parts }));
  });`;

class Installed {
  readonly folder = newFolder();
  readonly packages = installIn(this.folder);

  /** As npm does: the library's script before the command's. */
  runScripts() {
    const script = join(this.packages, 'numalign/scripts/compile-code.mjs');
    cpSync(join(ROOT, 'scripts/compile-code.mjs'), script);
    spawnSync(process.execPath, [script, join(this.packages, 'numalign')]);
    return this.runScript();
  }

  runScript() {
    const script = join(this.packages, '@numalign/cli/dist/install.cjs');
    return spawnSync(process.execPath, [script], { encoding: 'utf8' });
  }

  get compiled(): string {
    return join(this.packages, '@numalign/cli/compiled');
  }

  run(...args: string[]) {
    const record = join(this.folder, 'record.cjs');
    writeFileSync(record, RECORD);
    const main = join(this.packages, '@numalign/cli/dist/main.cjs');
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--require', record, main, ...args], {
      encoding: 'utf8',
      env: { ...process.env, NODE_V8_COVERAGE: undefined },
    });
    const lines = stderr.split('\n');
    const { files, compiled, parts } = JSON.parse(lines.pop()!) as Record<
      'files' | 'compiled' | 'parts',
      string[]
    >;
    const names = (paths: string[]) =>
      paths.map((path) => basename(path).replace(/-[\w-]{8}\.cjs$/, '')).sort();
    const loaded = { files: names(files), compiled: names(compiled), parts };
    return { status, stdout, stderr: lines.join('\n'), ...loaded };
  }

  /** A run whose program the kernel refuses, so that the command is there at the end. */
  runRefused() {
    const program = join(this.folder, 'program');
    writeFileSync(program, '#!/dev/null\n', { mode: 0o755 });
    const options = ['--cpus', '1', '--reserved', '0', '--state-dir', join(this.folder, 'state')];
    return this.run('run', ...options, '--', program);
  }
}

const OF_COMMAND = ['main.cjs', 'rolldown-runtime', 'run.cjs'];
const OF_LIBRARY = [
  'common',
  'index.cjs',
  'managers',
  'requests',
  'rolldown-runtime',
  'shared',
  'tools.cjs',
  'workload',
];

describe('the command', () => {
  it('loads its code and that of numalign from what was compiled at the installation', () => {
    const installed = new Installed();
    expect(installed.runScripts()).toMatchObject({ status: 0, stderr: '' });
    const { status, compiled } = installed.runRefused();
    expect(status).toBe(126);
    expect(compiled).toEqual([...OF_LIBRARY.filter((name) => !name.endsWith('.cjs')), 'run.cjs'].sort());
  });

  it('loads no more for a run than it needs', () => {
    const { status, files, compiled } = new Installed().runRefused();
    expect([status, compiled]).toEqual([126, []]);
    expect(files.filter((name) => !/\.(node|json)$/.test(name))).toEqual(
      [...OF_COMMAND, ...OF_LIBRARY, 'compiled-code.cjs'].sort(),
    );
  });

  it('makes no stream for a program that takes its place, and loads no part of Node for other commands', () => {
    const { stderr, parts } = new Installed().runRefused();
    expect(stderr).toMatch(/^numalign: CPU \d+ on /);
    expect(parts).toContain('NativeModule fs');
    const others =
      /^NativeModule (child_process|net|tty|readline|fs\/promises|crypto|internal\/fs\/sync_write_stream)$/;
    expect(parts.filter((name) => others.test(name))).toEqual([]);
  });

  it.each(['--version', '-V'])('loads nothing to say its version: %s', (option) => {
    const { status, stdout, stderr, files } = new Installed().run(option);
    const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/cli/package.json'), 'utf8'));
    expect([status, stdout, stderr]).toEqual([0, `${version}\n`, '']);
    expect(files).toEqual(['main.cjs', 'package.json', 'package.json']);
  });

  it('finds what it imports when it needs that, though its code was compiled before', () => {
    const installed = new Installed();
    installed.runScripts();
    const file = join(installed.folder, 'pod.yaml');
    writeFileSync(
      file,
      'kind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: b, resources: {limits: {cpu: 1, memory: 1Gi}}}]}\n',
    );
    const { status, stdout, compiled } = installed.run(
      'plan',
      '--synthetic',
      'numa:2 core:4 pu:1',
      '-f',
      file,
    );
    expect([status, stdout]).toEqual([0, expect.stringContaining('CPU')]);
    expect(compiled).toContain('program.cjs');
  });

  it('finds what it needs of numalign where the exports of the package have it', () => {
    const { exports } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      exports: Record<string, { require?: { default: string } }>;
    };
    const dist = join(ROOT, 'packages/cli/dist');
    const code = ['run.cjs', 'shared.cjs', 'program.cjs'].map((name) =>
      readFileSync(join(dist, name), 'utf8'),
    );
    const names = new Set(code.join('').match(/(?<=require\("numalign)[^"]*/g));
    expect(names.size).toBeGreaterThan(2);
    for (const name of names) {
      const file = name === '' ? './dist/index.cjs' : `./dist/entries${name}.cjs`;
      expect(exports[`.${name}`]!.require!.default).toBe(file);
    }
  });

  it('is found with the library in a folder of NODE_PATH', () => {
    const installed = new Installed();
    const elsewhere = join(installed.folder, 'elsewhere');
    mkdirSync(elsewhere);
    renameSync(join(installed.packages, 'numalign'), join(elsewhere, 'numalign'));
    const program = join(installed.packages, '@numalign/cli/dist/main.cjs');
    const run = (env: NodeJS.ProcessEnv) =>
      spawnSync(process.execPath, [program, 'status', '--state-dir', join(installed.folder, 'state')], {
        cwd: installed.folder,
        encoding: 'utf8',
        env: { ...process.env, ...env },
      });
    expect(run({ NODE_PATH: elsewhere })).toMatchObject({ status: 0, stderr: '' });
    expect(run({ NODE_PATH: 'elsewhere' })).toMatchObject({ status: 0, stderr: '' });
    expect(run({})).toMatchObject({ status: 1, stderr: expect.stringContaining('[ERR_LIBRARY_MISSING]') });
  });

  it('finds the library as Plug’n’Play does, whatever is in folders above', () => {
    const installed = new Installed();
    const elsewhere = join(installed.folder, 'elsewhere');
    const library = join(installed.packages, 'numalign');
    renameSync(library, elsewhere);
    mkdirSync(library);
    const stray = { name: 'numalign', version: '0.0.1' };
    writeFileSync(join(library, 'package.json'), JSON.stringify(stray));
    const program = join(installed.packages, '@numalign/cli/dist/main.cjs');
    const plugAndPlay = join(installed.folder, 'pnp.cjs');
    const run = (code: string) => {
      writeFileSync(plugAndPlay, code);
      const args = ['-r', plugAndPlay, program, 'status', '--state-dir', join(installed.folder, 'state')];
      return spawnSync(process.execPath, args, { encoding: 'utf8' });
    };
    expect(run('').stderr).toContain('[ERR_LIBRARY_VERSION]');
    const resolving = `
      const Module = require('node:module');
      const resolve = Module._resolveFilename;
      const entries = { numalign: 'dist/index.cjs', 'numalign/package.json': 'package.json' };
      Module._resolveFilename = (id, ...rest) =>
        id.startsWith('numalign')
          ? ${JSON.stringify(elsewhere)} + '/' + (entries[id] ?? id.replace('numalign', 'dist/entries') + '.cjs')
          : resolve(id, ...rest);
      process.versions.pnp = '3';`;
    expect(run(resolving)).toMatchObject({ status: 0, stderr: '' });
  });

  it('works where its script cannot find the library, or write', () => {
    const installed = new Installed();
    expect(installed.runScript()).toMatchObject({ status: 0, stderr: '' });
    expect(existsSync(installed.compiled)).toBe(false);
    writeFileSync(installed.compiled, 'a file');
    expect(installed.runScripts()).toMatchObject({ status: 0, stderr: '' });
    expect(installed.runRefused()).toMatchObject({ status: 126 });
  });

  it('has the licences of what is in its files', () => {
    const dist = join(ROOT, 'packages/cli/dist');
    expect(readdirSync(dist)).toContain('THIRD-PARTY-NOTICES.md');
    const notices = readFileSync(join(dist, 'THIRD-PARTY-NOTICES.md'), 'utf8');
    expect(notices).toMatch(/## commander\n.*TJ Holowaychuk.*## picocolors\n.*Oleksii Raspopov/s);
  });
});

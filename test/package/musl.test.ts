// The addon for musl, under musl's loader. Neither npm nor Debian has a Node for musl, and there is
// no Alpine: Bun stands in, which has Node's interface for addons, but not all of libuv, which a
// manager needs for notices of changes. Debian's musl is the C library. Bun needs a libstdc++ for
// musl, which is linked from Debian's static one, since there is no other.
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
// @ts-expect-error: it has no types.
import { installPackages } from '../../scripts/steps.mjs';
import { npm, ROOT, run } from './tarball.js';

const BUN = '@oven/bun-linux-x64-musl';
const MUSL = '/lib/x86_64-linux-musl/libc.so';
const ADDON = 'prebuilds/linux-x64/numalign.musl.node';
const canRun = process.getuid!() === 0 && process.arch === 'x64';

const folder = mkdtempSync(join(tmpdir(), 'numalign-musl-'));
const bun = join(folder, 'node_modules', BUN, 'bin/bun');
const libraries = join(folder, 'lib');
afterAll(() => rmSync(folder, { recursive: true }));

// What libstdc++.a asks of glibc and musl has not: a hint, a faster way to unwind, random numbers.
const MISSING = `
  char __libc_single_threaded = 0;
  int _dl_find_object(void *address, void *result) { return -1; }
  unsigned arc4random(void) { return 4; }`;

function symbols(file: string, option: string): string[] {
  const lines = run('nm', ['-D', option, file], { cwd: folder }).stdout.trim().split('\n');
  return lines.map((line) => line.trim().split(/\s+/).at(-1)!.replace(/@.*/, ''));
}

/** libstdc++.so.6 with what Bun needs. */
function linkLibrary(): void {
  const ofMusl = new Set(symbols(MUSL, '--defined-only'));
  const vtables = ['', 'si_', 'vmi_'].map(
    (kind) => `_ZTVN10__cxxabiv1${kind.length + 17}__${kind}class_type_infoE`,
  );
  const needed = symbols(bun, '--undefined-only').filter(
    (name) => !ofMusl.has(name) && !/^(ZSTD|_ITM)_/.test(name),
  );
  writeFileSync(join(folder, 'missing.c'), MISSING);
  mkdirSync(libraries);
  const part = (name: string) => run('gcc', [`-print-file-name=${name}`], { cwd: folder }).stdout.trim();
  const archives = ['libstdc++.a', 'libgcc_eh.a', 'libgcc.a'].map(part);
  const flags = ['-shared', '-fPIC', '-nostdlib', '-Wl,-soname,libstdc++.so.6', '-Wl,--no-undefined'];
  const wanted = [...needed, ...vtables].map((name) => `-Wl,-u,${name}`);
  const [begin, end] = [part('crtbeginS.o'), part('crtendS.o')];
  const inputs = ['missing.c', begin, ...wanted, ...archives, end, MUSL];
  run('gcc', [...flags, '-o', join(libraries, 'libstdc++.so.6'), ...inputs], { cwd: folder });
  symlinkSync(MUSL, join(libraries, 'libc.musl-x86_64.so.1'));
}

beforeAll(() => {
  if (!canRun) return;
  run('npm', ['run', '--silent', 'prebuild', '--', '--arch', 'x64', '--libc', 'musl'], { cwd: ROOT });
  const missing = installPackages([{ name: 'musl', present: () => existsSync(MUSL) }]);
  if (missing.length > 0) throw new Error('Debian’s package musl cannot be installed');
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'consumer', private: true, type: 'module' }),
  );
  npm(
    ['install', '--force', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', `${BUN}@1.4.5`],
    {
      cwd: folder,
    },
  );
  const numalign = join(folder, 'node_modules/numalign');
  for (const name of ['dist', 'package.json', ADDON, 'node_modules/node-gyp-build'])
    cpSync(join(ROOT, name), join(numalign, name), { recursive: true });
  linkLibrary();
});

/** What a program prints, under musl. */
function underMusl(text: string): string {
  writeFileSync(join(folder, 'app.mjs'), text);
  const env = { LD_LIBRARY_PATH: libraries, LIBC: 'musl' };
  return run(bun, ['app.mjs'], { cwd: folder, env }).stdout;
}

const here = (text: string) =>
  run(process.execPath, ['--input-type=module', '-e', text], { cwd: ROOT }).stdout;

describe.runIf(canRun)('the addon for musl', () => {
  it('is loaded under musl', () => {
    const text = `
      import { readFileSync } from 'node:fs';
      import { supported } from 'numalign';
      const maps = readFileSync('/proc/self/maps', 'utf8');
      console.log(supported.isSupported, /numalign\\.musl\\.node/.test(maps), /ld-linux|glibc|libc\\.so\\.6/.test(maps));`;
    expect(underMusl(text)).toBe('true true false\n');
  });

  it('discovers this machine like the one for glibc', () => {
    const text = `
      import { discover } from 'numalign/topology';
      const { cpus, numaNodes, cpusPerCore } = await discover();
      console.log(String(cpus), JSON.stringify(numaNodes), cpusPerCore);`;
    expect(underMusl(text)).toBe(here(text));
  });

  it('decides like the one for glibc', () => {
    const text = `
      import { openManager } from 'numalign';
      import { discover } from 'numalign/topology';
      const topology = await discover({ synthetic: 'package:2 numa:2 l3:2 core:4 pu:2' });
      const manager = await openManager({ topology, policy: 'best-effort' });
      for (const cpu of [1, 3, 9, 20])
        console.log(String((await manager.acquire({ cpu, memory: '1Gi' })).cpus), String(manager.freeCpus()));`;
    expect(underMusl(text)).toBe(here(text));
  });

  it('pins a thread, and reads it back', () => {
    const text = `
      import { CpuSet, pinThread } from 'numalign';
      import { affinity } from 'numalign/diagnostics';
      const cpu = CpuSet.of(affinity().first);
      pinThread(cpu);
      console.log(affinity().equals(cpu));`;
    expect(underMusl(text)).toBe('true\n');
  });
});

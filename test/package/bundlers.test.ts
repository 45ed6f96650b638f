// Programs that are bundled, with the settings of docs/platforms.md and without, by the bundlers
// themselves.
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { npm, ROOT, run } from './tarball.js';

const folder = mkdtempSync(join(tmpdir(), 'numalign-bundlers-'));
const BUNDLERS = [
  'esbuild',
  'rollup',
  '@rollup/plugin-node-resolve',
  '@rollup/plugin-commonjs',
  'webpack',
  '@vercel/ncc',
  'bun',
];

const PROGRAM = `
  import { supported } from 'numalign';
  import { discover } from 'numalign/topology';
  discover().then(
    (topology) => console.log(supported.isSupported, topology.cpus.size > 0),
    ({ code, message }) => console.log(supported.isSupported, code, message),
  );`;

beforeAll(() => {
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'consumer', private: true }));
  npm(['install', '--no-audit', '--no-fund', '--loglevel=error', ...BUNDLERS], { cwd: folder });
  symlinkSync(ROOT, join(folder, 'node_modules/numalign'));
  writeFileSync(join(folder, 'app.mjs'), PROGRAM);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** What the page has bundlers set, as the text of an object's members. */
function setting(bundler: string): string {
  const page = readFileSync(join(ROOT, 'docs/platforms.md'), 'utf8');
  const row = page.split('\n').find((line) => line.startsWith(`| ${bundler}`));
  return /\| `(.*)` \|$/.exec(row!)![1]!;
}

/** By the name of the bundle: who makes it, and how with the given settings. */
const BUILDS: Readonly<Record<string, readonly [bundler: string, program: (settings: string) => string]>> = {
  'esbuild.mjs': ['esbuild', (settings) => esbuild('esbuild.mjs', 'esm', settings)],
  'esbuild.cjs': ['esbuild', (settings) => esbuild('esbuild.cjs', 'cjs', settings)],
  'rollup.mjs': ['Rollup', (settings) => rollup('rollup.mjs', 'es', settings)],
  'rollup.cjs': ['Rollup', (settings) => rollup('rollup.cjs', 'cjs', settings)],
  'webpack.cjs': [
    'webpack',
    (settings) => `
      const options = { mode: 'production', target: 'node', entry: './app.mjs', ${settings} };
      require('webpack')({ ...options, output: { path: __dirname, filename: 'webpack.cjs' } }, (error, stats) => {
        if (error || stats.hasErrors()) throw error ?? new Error(stats.toString());
      });`,
  ],
  'ncc.mjs': [
    'ncc',
    (settings) => `
      require('@vercel/ncc')(__dirname + '/app.mjs', { quiet: true, ${settings} })
        .then(({ code }) => require('fs').writeFileSync('ncc.mjs', code));`,
  ],
};

const esbuild = (outfile: string, format: string, settings: string) => `
  const options = { entryPoints: ['app.mjs'], bundle: true, platform: 'node', ${settings} };
  require('esbuild').build({ ...options, format: '${format}', outfile: '${outfile}' });`;

const rollup = (file: string, format: string, settings: string) => `
  const plugins = [require('@rollup/plugin-node-resolve').default(), require('@rollup/plugin-commonjs').default({ ignoreDynamicRequires: true })];
  require('rollup').rollup({ input: 'app.mjs', plugins, onwarn() {}, ${settings} })
    .then((bundle) => bundle.write({ file: '${file}', format: '${format}' }));`;

/** What the bundle prints. */
function bundled(name: string, settings: string): string {
  writeFileSync(join(folder, 'build.cjs'), BUILDS[name]![1](settings));
  run(process.execPath, ['build.cjs'], { cwd: folder });
  return run(process.execPath, [name], { cwd: folder }).stdout;
}

describe('a bundled program', () => {
  it.each(Object.entries(BUILDS))('works with the setting of the documents: %s', (name, [bundler]) => {
    expect(bundled(name, setting(bundler))).toBe('true true\n');
  });

  it('has all that it imports if Bun bundles it', () => {
    const bun = join(folder, 'node_modules/.bin/bun');
    run(bun, ['build', '--target=node', '--outfile=bun.mjs', 'app.mjs'], { cwd: folder });
    expect(run(process.execPath, ['bun.mjs'], { cwd: folder }).stdout).toMatch(
      /^(true|false ERR_ADDON_MISSING) /,
    );
  });

  it.each(Object.keys(BUILDS))('without it fails with a code that names the external module: %s', (name) => {
    expect(bundled(name, '')).toMatch(/^false ERR_ADDON_MISSING numalign was bundled into .*external/);
  });
});

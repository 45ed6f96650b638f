// Planted bugs: a copy of the package with one in it, by exact replacement.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fail } from '../../scripts/steps.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const COPIED = [
  'lib',
  'native',
  'dist',
  'dist-test',
  'package.json',
  'binding.gyp',
  'rolldown.config.mjs',
  'tsconfig.json',
  'scripts',
];

const script = (path, ...args) => [process.execPath, join(ROOT, 'node_modules', path), ...args];

// What a change needs, by where it is.
const BUILDS = {
  'native/': ['make', '-C', 'build', 'BUILDTYPE=Release'],
  'packages/kubernetes/': script('typescript/bin/tsc', '-p', 'packages/kubernetes/tsconfig.build.json'),
  'lib/': script('rolldown/bin/cli.mjs', '-c'),
};

export function run(command, args, options) {
  return spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28, ...options });
}

function must({ status, stdout, stderr }, what) {
  if (status !== 0) fail(`${what} failed\n${stdout}${stderr}`);
}

// The project's own packages are the copy's.
function linkModules(folder) {
  const [from, to] = [join(ROOT, 'node_modules'), join(folder, 'node_modules')];
  mkdirSync(join(to, '@numalign'), { recursive: true });
  const names = readdirSync(from).filter((name) => name !== 'numalign' && name !== '@numalign');
  for (const name of names) symlinkSync(join(from, name), join(to, name));
  symlinkSync('..', join(to, 'numalign'));
  for (const name of ['cli', 'kubernetes', 'metrics'])
    symlinkSync(`../../packages/${name}`, join(to, '@numalign', name));
}

/** Copies the built package, and more of its folders, into an empty one. */
export function copyPackage(folder, ...more) {
  if (!existsSync(join(ROOT, 'build/Makefile'))) fail('the addon was not built here: npm run compile');
  // With their exact times, by which make knows the objects that need not be made again.
  const build = readdirSync(join(ROOT, 'build')).filter((name) => !/^(addon-|core-|fuzz|torture)/.test(name));
  mkdirSync(join(folder, 'build'));
  must(run('cp', ['-a', ...[...COPIED, ...more].map((name) => join(ROOT, name)), folder]), 'cp');
  must(run('cp', ['-a', ...build.map((name) => join(ROOT, 'build', name)), join(folder, 'build')]), 'cp');
  linkModules(folder);
}

/**
 * The text with `after` in place of the one of the texts `before` that occurs in it; undefined
 * unless exactly one does, once.
 */
export function applyEdit(text, { before, after }) {
  const found = before.filter((each) => text.includes(each));
  if (found.length !== 1 || text.split(found[0]).length !== 2) return undefined;
  return text.replace(found[0], () => after);
}

/** Edits a file, and builds what is needed. */
export function plant(folder, edit) {
  const { file, before } = edit;
  const path = join(folder, file);
  const text = applyEdit(readFileSync(path, 'utf8'), edit);
  if (text === undefined) {
    fail(
      `${file} has not exactly one\n${before.join('\nor\n')}\nThe source has changed: plant the bug in what it is now.`,
    );
  }
  writeFileSync(path, text);
  const [, [command, ...args]] = Object.entries(BUILDS).find(([start]) => file.startsWith(start));
  must(run(command, args, { cwd: folder }), [command, ...args].join(' '));
}

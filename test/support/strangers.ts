// Programs of the package for users without access to the working copy, for example below /root.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/**
 * The beginning of a command that runs as another user, in the group of the same number and
 * another.
 */
export const asUser = (user: number, group?: number) => [
  'setpriv',
  ...[`--reuid=${user}`, `--regid=${user}`, group === undefined ? '--clear-groups' : `--groups=${group}`],
];

/** True if this is root, and others can run the same Node. */
export const canBeStranger =
  process.getuid?.() === 0 &&
  spawnSync('env', [...asUser(65534), process.execPath, '--version']).status === 0;

let folder: string | undefined;

/**
 * A file of the built package, in a copy that all users can read; removed after the tests of the
 * file.
 */
export function forStrangers(path: string): string {
  folder ??= copied();
  return join(folder, path);
}

export const AGENT = 'test/support/agent.mjs';

function copied(): string {
  const copy = mkdtempSync(join(tmpdir(), 'numalign-strangers-'));
  const packages = ['.', 'packages/cli', 'packages/metrics'];
  const dependencies = packages.flatMap((path) => {
    const manifest = JSON.parse(readFileSync(join(ROOT, path, 'package.json'), 'utf8'));
    return Object.keys(manifest.dependencies ?? {}).filter((name) => !name.includes('numalign'));
  });
  const paths = [
    ...packages.flatMap((path) => [join(path, 'package.json'), join(path, 'dist')]),
    ...dependencies.map((name) => `node_modules/${name}`),
    ...['build/Release/numalign.node', 'dist-test/library.js', 'dist-test/lib', AGENT],
  ];
  for (const path of paths) cpSync(join(ROOT, path), join(copy, path), { recursive: true });
  for (const name of ['numalign', '@numalign'])
    cpSync(join(ROOT, 'node_modules', name), join(copy, 'node_modules', name), {
      verbatimSymlinks: true,
      recursive: true,
    });
  execFileSync('chmod', ['-R', 'a+rX', copy]);
  return copy;
}

/** Removes the copy. In a process of several test files each has its own. */
export function removeCopy(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true });
  folder = undefined;
}

// Where each file has a process of its own.
afterAll(removeCopy);

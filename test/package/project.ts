// Empty projects to install the tarball into.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { npm, run, type Tarball } from './tarball.js';

// Prebuilt addons are made by root, and what a machine has is hidden by root.
export const isRoot = process.getuid!() === 0;

/** The one that the run has packed. */
export function tarball(): Tarball {
  const value = inject('tarball');
  if (!value) throw new Error('only root can pack');
  return value;
}

/** That of a package in packages/. */
export function tarballOf(name: 'claims' | 'cli' | 'kubernetes' | 'metrics' | 'page'): Tarball {
  const value = inject('packages')[name];
  if (!value) throw new Error('only root can pack');
  return value;
}

/** An empty project, removed with the test. */
export function makeProject(): string {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-consumer-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'consumer', private: true, type: 'module' }),
  );
  return folder;
}

/** A project with the tarball installed; `stderr` is what npm printed. */
export function install(
  options: { bare?: boolean; env?: Record<string, string>; mayFail?: boolean; args?: string[] } = {},
) {
  const { args = [], ...others } = options;
  const cwd = makeProject();
  const result = npm(['install', '--loglevel=warn', '--no-audit', '--no-fund', ...args, tarball().path], {
    cwd,
    ...others,
  });
  return { cwd, ...result };
}

/** Runs a module of the project, and answers what it prints. */
export function runModule(
  cwd: string,
  text: string,
  options: { bare?: boolean; env?: Record<string, string> } = {},
): string {
  return run(process.execPath, ['--input-type=module', '-e', text], { cwd, ...options }).stdout;
}

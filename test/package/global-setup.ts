// Packs before any test runs: it makes dist/ again, which tests use, and all of them the tarballs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { pack, ROOT, run, type Tarball } from './tarball.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Undefined where prebuilt addons cannot be made: root makes them. */
    tarball: Tarball | undefined;
    /** Those of packages/, by the names of their folders. */
    packages: Readonly<Record<string, Tarball>>;
  }
}

export default function setup(project: TestProject): (() => void) | undefined {
  project.provide('packages', {});
  if (process.getuid!() !== 0) return project.provide('tarball', undefined) as undefined;
  run('npm', ['run', '--silent', 'prebuild'], { cwd: ROOT });
  const folder = mkdtempSync(join(tmpdir(), 'numalign-package-'));
  project.provide('tarball', pack(folder));
  const packages = ['claims', 'cli', 'kubernetes', 'metrics', 'page'].map(
    (name) => [name, pack(folder, ['--workspace', `packages/${name}`])] as const,
  );
  project.provide('packages', Object.fromEntries(packages));
  return () => rmSync(folder, { recursive: true });
}

// Packs before any test runs: it makes dist/ again, which tests use, and all of them the tarball.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { pack, type Tarball } from './tarball.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Undefined where prebuilt addons cannot be made: root makes them. */
    tarball: Tarball | undefined;
  }
}

export default function setup(project: TestProject): (() => void) | undefined {
  if (process.getuid!() !== 0) return project.provide('tarball', undefined) as undefined;
  const folder = mkdtempSync(join(tmpdir(), 'numalign-package-'));
  project.provide('tarball', pack(folder));
  return () => rmSync(folder, { recursive: true });
}

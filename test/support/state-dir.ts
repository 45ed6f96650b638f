// A private state folder for one test, removed after it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export function makeStateDir(fileSystem = tmpdir()): string {
  const parent = mkdtempSync(join(fileSystem, 'numalign-test-'));
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }));
  return join(parent, 'state');
}

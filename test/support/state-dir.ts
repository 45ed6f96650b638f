// A private state folder for one test, removed after it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export function makeStateDir(fileSystem = tmpdir()): string {
  const parent = mkdtempSync(join(fileSystem, 'numalign-test-'));
  // A thread that still waits for a lock makes its file once more.
  onTestFinished(() => rmSync(parent, { recursive: true, force: true, maxRetries: 20, retryDelay: 10 }));
  return join(parent, 'state');
}

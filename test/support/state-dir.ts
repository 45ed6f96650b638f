// A private state folder for one test, removed after it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export function makeStateDir(fileSystem = tmpdir()): string {
  const parent = mkdtempSync(join(fileSystem, 'numalign-test-'));
  onTestFinished(() => removeFolder(parent));
  return join(parent, 'state');
}

// A thread that still waits for a lock makes its file once more; what has come meanwhile Node's own
// retries do not remove.
function removeFolder(path: string): void {
  for (let attempts = 20; ; attempts--) {
    try {
      rmSync(path, { recursive: true, force: true });
      return;
    } catch (error) {
      if (attempts === 0) throw error;
    }
  }
}

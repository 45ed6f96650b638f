// needs: folders
// Where the addon of a package is found.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { loadAddon } from '../../lib/base/load-addon.js';

it('an addon that was not compiled here is found by what numalign depends on, whichever package asks', () => {
  const folder = mkdtempSync(join(tmpdir(), 'numalign-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const dependency = join(folder, 'node_modules/node-gyp-build');
  mkdirSync(dependency, { recursive: true });
  writeFileSync(join(dependency, 'index.js'), 'module.exports = (folder) => ({ folder });');
  expect(loadAddon(folder)).toEqual({ folder });
});

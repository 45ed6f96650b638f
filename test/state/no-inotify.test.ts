// needs: folders
// A user has few instances of inotify: without one, files are looked at now and then.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { native } from '../../lib/base/native.js';
import { FileWatch } from '../../lib/state/files/file-watch.js';
import { makeStateDir } from '../support/state-dir.js';

it('a file is looked at now and then until there is an instance, and followed from then on', async () => {
  const folder = makeStateDir();
  mkdirSync(folder);
  const path = join(folder, 'state.json');
  writeFileSync(path, '');
  const instance = vi.spyOn(native, 'Inotify').mockImplementation(() => {
    throw Object.assign(new Error('inotify_init1'), { errnoName: 'EMFILE' });
  });
  onTestFinished(() => instance.mockRestore());
  let notices = 0;
  const watch = new FileWatch(path, () => notices++);
  watch.start();
  onTestFinished(() => watch.stop());
  await expect.poll(() => notices).toBeGreaterThanOrEqual(2);
  instance.mockRestore();
  const looks = notices;
  await expect.poll(() => notices).toBeGreaterThan(looks);
  writeFileSync(path, 'changed');
  const before = notices;
  await expect.poll(() => notices).toBeGreaterThan(before);
});

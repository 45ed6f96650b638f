// needs: process
// A user has few instances of inotify: without one, files are looked at now and then.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { native } from '../../lib/base/native.js';
import { FileWatch } from '../../lib/state/files/file-watch.js';
import { OwnerGuard } from '../../lib/state/owner-guard.js';
import type { Owners } from '../../lib/state/owners/owners.js';
import { makeStateDir } from '../support/state-dir.js';

function withoutInstance() {
  const instance = vi.spyOn(native, 'Inotify').mockImplementation(() => {
    throw Object.assign(new Error('inotify_init1'), { errnoName: 'EMFILE' });
  });
  onTestFinished(() => instance.mockRestore());
  return instance;
}

it('owners’ files are looked at now and then: the own one, and those that others have left', async () => {
  withoutInstance();
  const path = makeStateDir();
  mkdirSync(join(path, 'owners'), { recursive: true });
  const steps: string[] = [];
  const owners = {
    hear: () => ({ doubt: () => {}, settle: () => {} }),
    seemsEnded: () => true,
    seemsToLeaveGrants: () => true,
    hasEnded: () => true,
    withLeftGrants: () => ['0f9b8a71-1d2e-4f3a-8b4c-5d6e7f8a9b0c'],
    own: { isNeeded: true, reassert: () => steps.push('written again') > 0 },
  } as unknown as Owners;
  const guard = new OwnerGuard(path, owners, {
    folder: { isOpen: true, isCurrent: true },
    ensureCurrent: () => {},
    touch: async () => {},
    ring: () => {},
  });
  let heard = 0;
  guard.add(() => heard++);
  onTestFinished(() => guard.stop());
  // One of these looks comes with the first listener.
  await expect.poll(() => heard).toBeGreaterThan(2);
  expect(steps.length).toBeGreaterThan(1);
});

it('a file is looked at now and then until there is an instance, and followed from then on', async () => {
  const folder = makeStateDir();
  mkdirSync(folder);
  const path = join(folder, 'state.json');
  writeFileSync(path, '');
  const instance = withoutInstance();
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

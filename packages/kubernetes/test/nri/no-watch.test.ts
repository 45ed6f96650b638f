// A kernel that has no watch of files left (fs.inotify.max_user_watches).
import { afterEach, expect, test, vi } from 'vitest';
import { NriPlugin } from '../../lib/nri/plugin.js';
import { FakeRuntime } from '../support/fake-runtime.js';
import { idleHandlers } from '../support/nri-handlers.js';
import { socketFolder } from '../support/socket-folder.js';

const place = socketFolder();
const refused: string[] = [];

vi.mock('node:fs', async (original) => ({
  ...(await original<typeof import('node:fs')>()),
  watch: (path: string) => {
    refused.push(path);
    throw Object.assign(new Error('ENOSPC: no watch is left'), { code: 'ENOSPC' });
  },
}));

afterEach(() => place.remove());

test('without a watch, a missing socket is not looked for all the time', async () => {
  const plugin = new NriPlugin({
    ...{ socketPath: place.socketPath, name: 'numalign', index: '10' },
    handlers: idleHandlers(),
    log: () => {},
  });
  const started = plugin.start();
  await expect.poll(() => refused).toEqual([place.folder]);
  // Long enough for many more looks.
  for (let i = 0; i < 10; i += 1) await (await FakeRuntime.listen(`${place.folder}/other`)).close();
  expect(refused).toEqual([place.folder]);
  await plugin.close();
  await expect(started).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
});

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { NriHandlers } from '../../lib/nri/handlers.js';
import { NriPlugin } from '../../lib/nri/plugin.js';
import { FakeRuntime } from '../support/fake-runtime.js';

let folder: string;
let socketPath: string;
let plugin: NriPlugin;
let runtime: FakeRuntime;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'nri-'));
  socketPath = join(folder, 'nri.sock');
});

afterEach(async () => {
  await plugin.close();
  await runtime.close();
  rmSync(folder, { recursive: true });
});

const HANDLERS: NriHandlers = {
  synchronize: async () => [],
  createContainer: async () => ({}),
  updateContainer: async () => [],
  stopContainer: async () => [],
};

test('a plugin registers with its name and index, and asks for what it has handlers for', async () => {
  runtime = await FakeRuntime.listen(socketPath);
  plugin = new NriPlugin({ socketPath, name: 'numalign', index: '10', handlers: HANDLERS, log: () => {} });
  const started = plugin.start();
  const peer = await runtime.synchronizedPlugin();
  await started;
  expect(peer.registration).toEqual({ plugin_name: 'numalign', plugin_idx: '10' });
  expect(peer.events).toBe((1 << 3) | (1 << 7) | (1 << 9));
});

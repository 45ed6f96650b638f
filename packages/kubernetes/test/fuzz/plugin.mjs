// A plugin whose runtime goes, comes again and is hostile, and at the end is a good one.
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NriPlugin } from '../../dist/nri/plugin.js';
import { HostileRuntime, WAYS } from './hostile-runtime.mjs';

// The longest a plugin waits before it tries again is 5 s.
const RECOVERY_LIMIT = 15_000;

/** Resolves with counts once the plugin has found the good runtime; rejects where it does not. */
export async function fuzzPlugin(random, folder, duration) {
  const socketPath = join(folder, 'plugin.sock');
  const counts = { 'plugin: runtimes': 0, 'plugin: connections': 0 };
  let synchronizations = 0;
  const plugin = new NriPlugin({
    socketPath,
    name: 'fuzz',
    index: '10',
    limits: { queue: 1 << 20, stall: 300 },
    log: () => {},
    handlers: {
      synchronize: async () => {
        synchronizations += 1;
        return [];
      },
      createContainer: async () => ({}),
      updateContainer: async () => [],
      stopContainer: async () => [],
    },
  });
  const started = plugin.start();
  started.catch(() => {});
  const end = performance.now() + duration;
  while (performance.now() < end) {
    const close = await listen(socketPath, (socket) => {
      counts['plugin: connections'] += 1;
      new HostileRuntime(random, socket)
        .run(random.weighted({ ...WAYS, flood: 0 }))
        .then(() => socket.destroy());
    });
    counts['plugin: runtimes'] += 1;
    await sleep(random.below(300));
    await close(random.chance(2));
    if (random.chance(2)) await sleep(random.below(50));
  }
  counts['plugin: synchronizations'] = synchronizations;
  const close = await listen(socketPath, (socket) => new HostileRuntime(random, socket).run('honest'));
  const limit = AbortSignal.timeout(RECOVERY_LIMIT);
  while (!plugin.session) {
    if (limit.aborted) throw new Error('the plugin does not find the good runtime');
    await sleep(20);
  }
  await started;
  await plugin.close();
  await close(false);
  return counts;
}

async function listen(path, accept) {
  rmSync(path, { force: true });
  const sockets = new Set();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    accept(socket);
  });
  await new Promise((resolve) => server.listen(path, resolve));
  // A runtime that is killed leaves its socket's file.
  return async (isKilled) => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    if (!isKilled) rmSync(path, { force: true });
  };
}

import fs, { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { NriPlugin, type NriPluginOptions } from '../../lib/nri/plugin.js';
import { FakeRuntime, type FakeRuntimeOptions } from '../support/fake-runtime.js';
import { idleHandlers } from '../support/nri-handlers.js';
import { type SocketFolder, socketFolder } from '../support/socket-folder.js';

let place: SocketFolder;
let lines: string[];
let plugin: NriPlugin;
const runtimes: FakeRuntime[] = [];

beforeEach(() => {
  place = socketFolder();
  lines = [];
});

afterEach(async () => {
  await plugin?.close();
  for (const runtime of runtimes.splice(0)) await runtime.close();
  place.remove();
});

function makePlugin(options: Partial<NriPluginOptions> = {}): NriPlugin {
  plugin = new NriPlugin({
    socketPath: place.socketPath,
    name: 'numalign',
    index: '10',
    handlers: idleHandlers(),
    log: (level, message) => lines.push(`${level} ${message}`),
    ...options,
  });
  return plugin;
}

async function listen(path = place.socketPath, options: FakeRuntimeOptions = {}): Promise<FakeRuntime> {
  const runtime = await FakeRuntime.listen(path, options);
  runtimes.push(runtime);
  return runtime;
}

test.each([
  [{ index: '1' }, 'ERR_NRI_INDEX'],
  [{ index: '100' }, 'ERR_NRI_INDEX'],
  [{ index: 'a1' }, 'ERR_NRI_INDEX'],
  [{ index: '10\n' }, 'ERR_NRI_INDEX'],
  [{ name: '' }, 'ERR_NRI_NAME'],
  [{ name: 'a/b' }, 'ERR_NRI_NAME'],
  [{ name: '-a' }, 'ERR_NRI_NAME'],
  [{ name: 'a'.repeat(65) }, 'ERR_NRI_NAME'],
  [{ socketPath: '' }, 'ERR_NRI_SOCKET_PATH'],
  [{ socketPath: `/${'a'.repeat(107)}` }, 'ERR_NRI_SOCKET_PATH'],
  [{ socketPath: '/a\0b' }, 'ERR_NRI_SOCKET_PATH'],
])('%j can never work', async (options, code) => {
  const value = Object.values(options)[0];
  const details = { value, valid: expect.any(String) };
  await expect(makePlugin(options).start()).rejects.toMatchObject({ code, details });
});

test('the path of a socket may be as long as the kernel takes', async () => {
  const started = makePlugin({ socketPath: `/${'a'.repeat(106)}` }).start();
  await expect.poll(() => lines).toEqual([expect.stringMatching(/ENOENT; waiting for the socket$/)]);
  await plugin.close();
  await expect(started).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
});

test('a log of a failure has its code and the socket', async () => {
  const facts: unknown[] = [];
  const started = makePlugin({ log: (_level, _message, more) => void facts.push(more) }).start();
  await expect.poll(() => facts).toEqual([{ code: 'ERR_NRI_CONNECT', socket: place.socketPath }]);
  await plugin.close();
  await expect(started).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
});

test('start resolves at the first Synchronize, and the session can be used', async () => {
  const runtime = await listen();
  let isStarted = false;
  const started = makePlugin()
    .start()
    .then(() => {
      isStarted = true;
    });
  const peer = await runtime.plugin();
  await peer.configure();
  expect(isStarted).toBe(false);
  await expect(plugin.updateContainers([])).rejects.toMatchObject({ code: 'ERR_NRI_NO_SESSION' });
  await peer.synchronize([], []);
  await started;
  expect(plugin.session?.runtime?.name).toBe('fake');
  expect(await plugin.updateContainers([])).toEqual([]);
});

test('a missing socket is awaited', async () => {
  const started = makePlugin().start();
  await expect
    .poll(() => lines)
    .toEqual([`warn NRI: no connection to ${place.socketPath}: ENOENT; waiting for the socket`]);
  await (await listen()).synchronizedPlugin();
  await started;
});

test('a missing folder is awaited, together with its parents', async () => {
  const folder = join(place.folder, 'run', 'nri');
  const started = makePlugin({ socketPath: join(folder, 'nri.sock') }).start();
  await expect.poll(() => lines.length).toBe(1);
  mkdirSync(join(place.folder, 'run'));
  mkdirSync(folder);
  await (await listen(join(folder, 'nri.sock'))).synchronizedPlugin();
  await started;
  expect(lines.length).toBe(2);
});

test('a missing socket is not looked for all the time if the kernel has no watch left', async () => {
  const watch = vi.spyOn(fs, 'watch').mockImplementation(() => {
    throw Object.assign(new Error('ENOSPC: no watch is left'), { code: 'ENOSPC' });
  });
  syncBuiltinESMExports();
  onTestFinished(() => {
    watch.mockRestore();
    syncBuiltinESMExports();
  });
  const started = makePlugin().start();
  await expect.poll(() => watch.mock.calls).toEqual([[place.folder]]);
  // Long enough for many more looks.
  for (let i = 0; i < 10; i += 1) await (await listen(join(place.folder, 'other'))).close();
  expect(watch).toHaveBeenCalledTimes(1);
  await plugin.close();
  await expect(started).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
});

test('a folder that is made again is watched again', async () => {
  const folder = join(place.folder, 'nri');
  mkdirSync(folder);
  const started = makePlugin({ socketPath: join(folder, 'nri.sock') }).start();
  await expect.poll(() => lines.length).toBe(1);
  rmSync(folder, { recursive: true });
  mkdirSync(folder);
  await new Promise((resolve) => setTimeout(resolve, 20));
  await (await listen(join(folder, 'nri.sock'))).synchronizedPlugin();
  await started;
});

test('other new files beside the socket are ignored', async () => {
  const started = makePlugin().start();
  await expect.poll(() => lines.length).toBe(1);
  for (let i = 0; i < 20; i += 1) writeFileSync(join(place.folder, `file-${i}`), '');
  await (await listen()).synchronizedPlugin();
  await started;
  expect(lines.length).toBe(2);
});

test('a plugin that is dropped registers again, at once', async () => {
  const runtime = await listen();
  const started = makePlugin().start();
  const peer = await runtime.synchronizedPlugin();
  await started;
  const first = plugin.session;
  peer.disconnect();
  await runtime.synchronizedPlugin();
  await expect.poll(() => plugin.session).toBeDefined();
  expect(plugin.session).not.toBe(first);
});

test('a runtime that starts again is found by its new socket', async () => {
  const first = await listen();
  const started = makePlugin().start();
  await first.synchronizedPlugin();
  await started;
  await first.close();
  await expect.poll(() => plugin.session).toBeUndefined();
  await (await listen()).synchronizedPlugin();
  await expect.poll(() => plugin.session).toBeDefined();
});

test('a socket without a listener is tried again', async () => {
  // A killed runtime leaves its socket file.
  const other = join(place.folder, 'other');
  const dead = await FakeRuntime.listen(other);
  renameSync(other, place.socketPath);
  await dead.close();
  expect(existsSync(place.socketPath)).toBe(true);
  const started = makePlugin().start();
  await expect
    .poll(() => lines)
    .toEqual([`warn NRI: no connection to ${place.socketPath}: ECONNREFUSED; registering again`]);
  rmSync(place.socketPath);
  await (await listen()).synchronizedPlugin();
  await started;
});

test('a runtime that refuses every session is asked at once, and then less and less often', async () => {
  const times: number[] = [];
  await listen(place.socketPath, {
    registration: { error: 'not now' },
    onRegister: () => times.push(performance.now()),
  });
  makePlugin()
    .start()
    .catch(() => {});
  await expect.poll(() => times.length).toBeGreaterThanOrEqual(5);
  const gaps = times.slice(1, 5).map((time, i) => time - times[i]!);
  // A timer may be a millisecond early.
  for (const [i, least] of [0, 99, 199, 399].entries()) expect(gaps[i]).toBeGreaterThanOrEqual(least);
});

test('a runtime that drops each session soon is asked less and less often', async () => {
  const times: number[] = [];
  const runtime = await listen(place.socketPath, { onRegister: () => times.push(performance.now()) });
  const started = makePlugin().start();
  while (times.length < 4) (await runtime.synchronizedPlugin()).disconnect();
  await started;
  const gaps = times.slice(1).map((time, i) => time - times[i]!);
  // A timer may be a millisecond early.
  for (const [i, least] of [0, 99, 199].entries()) expect(gaps[i]).toBeGreaterThanOrEqual(least);
});

test('a runtime that drops each session late is asked at once each time', async () => {
  const runtime = await listen();
  let now = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => (now += 1000));
  onTestFinished(() => clock.mockRestore());
  const begin = Date.now();
  const started = makePlugin().start();
  for (let sessions = 0; sessions < 8; sessions += 1) (await runtime.synchronizedPlugin()).disconnect();
  await started;
  // The delays after seven short sessions.
  expect(Date.now() - begin).toBeLessThan(100 + 200 + 400 + 800 + 1600 + 3200);
});

test('a runtime with a new socket is asked as if none had refused before', async () => {
  const times: number[] = [];
  const options: FakeRuntimeOptions = {
    registration: { error: 'not now' },
    onRegister: () => times.push(performance.now()),
  };
  const former = await listen(place.socketPath, options);
  const started = makePlugin().start();
  started.catch(() => {});
  await expect.poll(() => times.length).toBeGreaterThanOrEqual(5);
  times.length = 0;
  await former.close();
  await listen(place.socketPath, options);
  await expect.poll(() => times.length).toBeGreaterThanOrEqual(2);
  // The next delay would have been 800 ms.
  expect(times[1]! - times[0]!).toBeLessThan(700);
});

test('a refusal is logged once, and the plugin keeps trying', async () => {
  let registrations = 0;
  const refusing = await listen(place.socketPath, {
    registration: { error: 'not now' },
    onRegister: () => (registrations += 1),
  });
  const started = makePlugin().start();
  await expect.poll(() => registrations).toBeGreaterThanOrEqual(3);
  expect(lines).toEqual(['warn NRI: the runtime does not register 10-numalign: not now; registering again']);
  await refusing.close();
  await (await listen()).synchronizedPlugin();
  await started;
});

test('a handler that lacks a file of its own does not keep the plugin from registering again', async () => {
  let synchronizations = 0;
  const synchronize = async () => {
    synchronizations += 1;
    if (synchronizations === 1) throw Object.assign(new Error('no state'), { code: 'ENOENT' });
    return [];
  };
  const runtime = await listen();
  const started = makePlugin({ handlers: { ...idleHandlers(), synchronize } }).start();
  await expect(runtime.synchronizedPlugin()).rejects.toMatchObject({ message: 'no state' });
  await runtime.synchronizedPlugin();
  await started;
  expect(lines[0]).toBe('warn NRI: Synchronize failed here: no state; registering again');
});

test('close while a plugin waits for a socket ends start with an error', async () => {
  const started = makePlugin().start();
  await expect.poll(() => lines.length).toBe(1);
  await plugin.close();
  await expect(started).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
});

test('close while a plugin is being synchronized ends start with an error', async () => {
  const runtime = await listen();
  const started = makePlugin().start();
  const peer = await runtime.plugin();
  await plugin.close();
  await expect(started).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
  await peer.closed;
  expect(lines).toEqual([]);
});

test('close ends the session and leaves nothing behind, and can be repeated', async () => {
  const runtime = await listen();
  const started = makePlugin().start();
  const peer = await runtime.synchronizedPlugin();
  await started;
  await Promise.all([plugin.close(), plugin.close()]);
  await plugin.close();
  await peer.closed;
  expect(plugin.session).toBeUndefined();
  await runtime.close();
  await expect
    .poll(() => process.getActiveResourcesInfo().filter((name) => /FSEvent|Pipe(?!Wrap)/.test(name)))
    .toEqual([]);
});

test('a closed plugin does not start', async () => {
  await listen();
  makePlugin();
  await plugin.close();
  await expect(plugin.start()).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
});

const active = (kinds: RegExp) => process.getActiveResourcesInfo().filter((kind) => kinds.test(kind)).length;

test('no watch is left while a session is up that was waited for', async () => {
  const started = makePlugin().start();
  await expect.poll(() => lines.length).toBe(1);
  await (await listen()).synchronizedPlugin();
  await started;
  expect(active(/FSEvent/)).toBe(0);
});

test('a plugin that is refused again and again has one watch, and its timer ends when it is closed', async () => {
  const watches: number[] = [];
  await listen(place.socketPath, {
    registration: { error: 'not now' },
    onRegister: () => watches.push(active(/FSEvent/)),
  });
  const started = makePlugin().start();
  await expect.poll(() => watches.length).toBeGreaterThanOrEqual(4);
  expect(Math.max(...watches)).toBeLessThanOrEqual(1);
  const timers = active(/Timeout/);
  const closed = expect(started).rejects.toMatchObject({ code: 'ERR_NRI_CLOSED' });
  await plugin.close();
  expect(active(/Timeout/)).toBeLessThan(timers);
  await closed;
});

// Connections to a socket, and what tells it from a later one at its path.
import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { connectTo } from '../../lib/nri/connect.js';
import { identityOf } from '../../lib/nri/path-watch.js';
import { FakeRuntime } from '../support/fake-runtime.js';
import { type SocketFolder, socketFolder } from '../support/socket-folder.js';

let place: SocketFolder;

beforeEach(() => {
  place = socketFolder();
});

afterEach(() => place.remove());

test('a connection that is called off on the way ends with the reason', async () => {
  const runtime = await FakeRuntime.listen(place.socketPath);
  const reason = new Error('enough');
  const calling = new AbortController();
  const connected = connectTo(place.socketPath, calling.signal);
  calling.abort(reason);
  await expect(connected).rejects.toBe(reason);
  await expect(connectTo(place.socketPath, calling.signal)).rejects.toBe(reason);
  await runtime.close();
});

test('a connection that fails names the socket, with the kernel’s error as its cause', async () => {
  await expect(connectTo(place.socketPath, new AbortController().signal)).rejects.toMatchObject({
    code: 'ERR_NRI_CONNECT',
    details: { value: place.socketPath, cause: { code: 'ENOENT' } },
  });
});

/** Makes it again, at a later time of the kernel's coarse clock. Most file systems reuse its inode. */
function remake(path: string, make: () => void): void {
  const { ctimeNs } = statSync(path, { bigint: true });
  do {
    rmSync(path, { recursive: true });
    make();
  } while (statSync(path, { bigint: true }).ctimeNs === ctimeNs);
}

test('a socket that is made again has another identity, even with the same inode', () => {
  const make = () => writeFileSync(place.socketPath, '');
  make();
  const before = identityOf(place.socketPath);
  expect(identityOf(place.socketPath)).toBe(before);
  remake(place.socketPath, make);
  expect(identityOf(place.socketPath)).not.toBe(before);
});

test('a missing socket whose folder is made again has another identity, even with the same inode', () => {
  const folder = join(place.folder, 'nri');
  const path = join(folder, 'nri.sock');
  mkdirSync(folder);
  const before = identityOf(path);
  expect(identityOf(path)).toBe(before);
  remake(folder, () => mkdirSync(folder));
  expect(identityOf(path)).not.toBe(before);
});

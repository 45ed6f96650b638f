import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Mux } from '../../lib/ttrpc/mux.js';
import { mux as muxFrame, RawPeer } from '../support/raw-peer.js';
import { socketPair } from '../support/socket-pair.js';

let near: Socket;
let far: Socket;

beforeEach(async () => {
  [near, far] = await socketPair();
});

afterEach(() => {
  near.destroy();
  far.destroy();
});

/** All that the far end reads until the near end is done. */
async function readAll(): Promise<Buffer> {
  const parts: Buffer[] = [];
  far.on('data', (bytes: Buffer) => parts.push(bytes)).resume();
  await once(far, 'end');
  return Buffer.concat(parts);
}

test('a message begins in a frame of at most 4096 bytes, and the rest comes in one, as containerd reads', async () => {
  const mux = new Mux(near);
  mux.send(2, Buffer.alloc(4096, 1));
  mux.send(1, Buffer.alloc(100_000, 2));
  near.end();
  const rest = 100_000 - 4096;
  const expected = [
    muxFrame(2, Buffer.alloc(4096, 1)),
    muxFrame(1, Buffer.alloc(4096, 2)),
    muxFrame(1, Buffer.alloc(rest, 2)),
  ];
  expect((await readAll()).equals(Buffer.concat(expected))).toBe(true);
});

test('a message that is larger than a frame goes in several', async () => {
  // This peer takes long to put it together.
  const mux = new Mux(near, { queue: 32 << 20, stall: 300_000 });
  const peer = new RawPeer(far);
  const message = Buffer.alloc(10 << 20);
  message.writeUInt32BE(message.length - 10, 0);
  mux.send(1, message);
  expect((await peer.next()).message.length).toBe(message.length - 10);
  expect(peer.muxFrames).toEqual([4096, 4 << 20, 4 << 20, (2 << 20) - 4096]);
});

test('frames of connections without a listener are skipped', async () => {
  const mux = new Mux(near);
  const received = new Promise<Buffer>((resolve) => mux.listen(1, resolve));
  for (const id of [0, 2, 3, 2 ** 32 - 1]) far.write(muxFrame(id, Buffer.from('other')));
  far.write(muxFrame(1, Buffer.from('ours')));
  expect(await received).toEqual(Buffer.from('ours'));
});

test('a frame that is too long closes the connection', async () => {
  const mux = new Mux(near);
  far.write(Buffer.from([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]));
  expect(await mux.closed).toMatchObject({ code: 'ERR_TTRPC_MUX', details: { value: 0xffffffff } });
  expect(near.destroyed).toBe(true);
});

test('a listener that throws closes the connection with the reason', async () => {
  const mux = new Mux(near);
  mux.listen(1, () => {
    throw new TypeError('no such thing');
  });
  far.write(muxFrame(1, Buffer.from('x')));
  expect(await mux.closed).toMatchObject({
    code: 'ERR_TTRPC_FRAME',
    message: expect.stringContaining('no such thing'),
  });
});

test('the close of a peer is reported, and if it was in the middle of a frame', async () => {
  const mux = new Mux(near);
  far.end(muxFrame(1, Buffer.from('whole')));
  expect(await mux.closed).toMatchObject({
    code: 'ERR_TTRPC_CLOSED',
    message: 'ttrpc: the peer closed the connection',
  });
  [near, far] = await socketPair();
  const other = new Mux(near);
  far.end(muxFrame(1, Buffer.from('whole')).subarray(0, 10));
  expect(await other.closed).toMatchObject({
    code: 'ERR_TTRPC_CLOSED',
    message: expect.stringContaining('middle'),
  });
});

test('a write to a closed peer says so', async () => {
  const mux = new Mux(near);
  far.destroy();
  mux.send(1, Buffer.alloc(10));
  expect(await mux.closed).toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
});

test('an error of the socket has its cause', async () => {
  const mux = new Mux(near);
  const cause = Object.assign(new Error('no memory'), { code: 'ENOMEM' });
  near.destroy(cause);
  expect(await mux.closed).toMatchObject({ code: 'ERR_TTRPC_SOCKET', details: { cause } });
});

test('close has only its given reason, and only the first counts', async () => {
  const mux = new Mux(near);
  mux.close();
  mux.close(new Error('late') as never);
  expect(await mux.closed).toBeUndefined();
  mux.send(1, Buffer.alloc(10));
  expect(near.destroyed).toBe(true);
});

test('a peer that reads nothing is dropped after the deadline', async () => {
  const mux = new Mux(near, { stall: 50 });
  mux.send(1, Buffer.alloc(1 << 20));
  expect(await mux.closed).toMatchObject({
    code: 'ERR_TTRPC_STALLED',
    message: expect.stringContaining('50 ms'),
  });
});

test('a peer that leaves more unread than the queue holds is dropped at once', async () => {
  const mux = new Mux(near, { queue: 1 << 20 });
  for (let i = 0; i < 4; i += 1) mux.send(1, Buffer.alloc(512 << 10));
  expect(await mux.closed).toMatchObject({
    code: 'ERR_TTRPC_STALLED',
    details: { valid: 'at most 1048576 bytes' },
  });
});

test('a peer that reads late, but within the deadline each time, is kept', async () => {
  const mux = new Mux(near, { stall: 3000 });
  const size = 1 << 20;
  let unread = 0;
  far.on('data', (bytes: Buffer) => {
    unread -= bytes.length;
  });
  // Longer than the deadline as a whole.
  for (let turn = 0; turn < 4; turn += 1) {
    far.pause();
    unread = size + 16;
    mux.send(1, Buffer.alloc(size));
    await new Promise((resolve) => setTimeout(resolve, 800));
    far.resume();
    await expect.poll(() => unread).toBe(0);
  }
  mux.close();
  expect(await mux.closed).toBeUndefined();
});

test('reading stops while sent bytes wait, and resumes once the peer reads', async () => {
  const mux = new Mux(near);
  let received = 0;
  mux.listen(1, (bytes) => {
    received += bytes.length;
    // More than the kernel takes.
    if (received === 1) mux.send(1, Buffer.alloc(2 << 20));
  });
  far.pause();
  far.write(muxFrame(1, Buffer.alloc(1)));
  await expect.poll(() => near.isPaused()).toBe(true);
  far.write(muxFrame(1, Buffer.alloc(1)));
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(received).toBe(1);
  far.resume();
  await expect.poll(() => received).toBe(2);
});

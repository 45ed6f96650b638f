import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { TtrpcClient } from '../../lib/ttrpc/client.js';
import { Mux } from '../../lib/ttrpc/mux.js';
import { RawPeer, readRequest, refusal, response } from '../support/raw-peer.js';
import { socketPair } from '../support/socket-pair.js';

const [REQUEST, RESPONSE] = [1, 2];
const SOON = { timeout: 20 };
const LATE = { timeout: 60_000 };

let near: Socket;
let mux: Mux;
let client: TtrpcClient;
let peer: RawPeer;

beforeEach(async () => {
  const [socket, far] = await socketPair();
  near = socket;
  mux = new Mux(near);
  client = new TtrpcClient(mux, 2);
  peer = new RawPeer(far);
});

afterEach(() => {
  mux.close();
  peer.socket.destroy();
});

const call = (payload: string, options: { timeout: number; signal?: AbortSignal } = LATE) =>
  client.call('a.Service', 'Method', Buffer.from(payload), options);

test('a request has service, method, payload and the time limit; streams are odd and rise', async () => {
  const calls = [call('a'), call('b')];
  const [first, second] = [await peer.next(), await peer.next()];
  expect([first.connection, first.stream, first.type, first.flags]).toEqual([2, 1, REQUEST, 0]);
  expect(second.stream).toBe(3);
  expect(readRequest(first.message)).toEqual({
    service: 'a.Service',
    method: 'Method',
    payload: Buffer.from('a'),
    timeout_nano: 60e9,
  });
  for (const { stream } of [first, second]) peer.send(2, stream, RESPONSE, response(Buffer.alloc(0)));
  await Promise.all(calls);
});

test('answers in another order find their calls', async () => {
  const calls = ['a', 'b', 'c'].map((payload) => call(payload));
  const frames = [await peer.next(), await peer.next(), await peer.next()];
  for (const { stream, message } of frames.reverse()) {
    peer.send(2, stream, RESPONSE, response(readRequest(message).payload));
  }
  expect((await Promise.all(calls)).map(String)).toEqual(['a', 'b', 'c']);
});

test('an error of the peer is thrown with its status and message', async () => {
  const answer = call('a');
  peer.send(2, (await peer.next()).stream, RESPONSE, refusal(5, 'not here'));
  await expect(answer).rejects.toMatchObject({ code: 'ERR_TTRPC_STATUS', status: 5, message: 'not here' });
});

test('frames that answer no call are skipped: unknown, even and used streams, requests, unknown types', async () => {
  const first = call('a');
  const { stream } = await peer.next();
  for (const other of [0, 2, 3, 2 ** 32 - 1]) peer.send(2, other, RESPONSE, response(Buffer.from('wrong')));
  for (const type of [0, REQUEST, 3, 255]) peer.send(2, stream, type, response(Buffer.from('wrong')));
  peer.send(1, stream, RESPONSE, response(Buffer.from('wrong')));
  peer.send(2, stream, RESPONSE, response(Buffer.from('right')));
  peer.send(2, stream, RESPONSE, response(Buffer.from('again')));
  expect(String(await first)).toBe('right');
  const second = call('b');
  peer.send(2, (await peer.next()).stream, RESPONSE, response(Buffer.from('next')));
  expect(String(await second)).toBe('next');
});

test('a call without an answer ends after its time, and the late answer is skipped', async () => {
  const late = call('a', SOON);
  const { stream } = await peer.next();
  await expect(late).rejects.toMatchObject({ code: 'ERR_TTRPC_TIMEOUT', details: { value: 'Method' } });
  peer.send(2, stream, RESPONSE, response(Buffer.from('late')));
  const next = call('b');
  peer.send(2, (await peer.next()).stream, RESPONSE, response(Buffer.from('good')));
  expect(String(await next)).toBe('good');
});

test('a signal ends a call with its reason, before it is sent or after', async () => {
  const reason = new Error('enough');
  await expect(call('a', { ...LATE, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  const controller = new AbortController();
  const pending = call('b', { ...LATE, signal: controller.signal });
  expect(readRequest((await peer.next()).message).payload.toString()).toBe('b');
  controller.abort(reason);
  await expect(pending).rejects.toBe(reason);
});

test('an unreadable answer ends only its own call', async () => {
  const [first, second] = [call('a'), call('b')];
  const [{ stream }, other] = [await peer.next(), await peer.next()];
  peer.send(2, stream, RESPONSE, Buffer.from([0x0a, 0xff]));
  peer.send(2, other.stream, RESPONSE, response(Buffer.from('good')));
  await expect(first).rejects.toMatchObject({ code: 'ERR_TTRPC_ANSWER' });
  expect(String(await second)).toBe('good');
});

test('an answer of more than 4 MiB ends only its own call', async () => {
  const first = call('a');
  peer.send(2, (await peer.next()).stream, RESPONSE, response(Buffer.alloc(4 << 20)));
  await expect(first).rejects.toMatchObject({
    code: 'ERR_TTRPC_ANSWER',
    message: expect.stringContaining('4194304'),
  });
});

test('a request of more than 4 MiB is not sent', async () => {
  const large = client.call('a.Service', 'Method', Buffer.alloc(4 << 20), LATE);
  await expect(large).rejects.toMatchObject({ code: 'ERR_TTRPC_SIZE' });
});

test('the end of the connection ends every call with the reason, and each one after it', async () => {
  const calls = [call('a'), call('b')];
  await peer.next();
  peer.socket.destroy();
  for (const each of calls) await expect(each).rejects.toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
  await expect(call('c')).rejects.toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
});

test('a call on a connection that was closed here fails', async () => {
  mux.close();
  await expect(call('a')).rejects.toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
});

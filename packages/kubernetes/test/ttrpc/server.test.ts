import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Mux } from '../../lib/ttrpc/mux.js';
import { type Call, type Handler, TtrpcServer } from '../../lib/ttrpc/server.js';
import { StatusError } from '../../lib/ttrpc/status.js';
import { frame, mux as muxFrame, RawPeer, readResponse, request } from '../support/raw-peer.js';
import { socketPair } from '../support/socket-pair.js';

const [REQUEST, RESPONSE, DATA] = [1, 2, 3];

let mux: Mux;
let peer: RawPeer;
let handlers: Record<string, Handler>;
const echo: Handler = (payload) => payload;

beforeEach(async () => {
  const [near, far] = await socketPair();
  mux = new Mux(near);
  handlers = {};
  const dispatch = (name: string): [string, Handler] => [
    name,
    (payload, call) => handlers[name]!(payload, call),
  ];
  new TtrpcServer(mux, 1, { 'a.Service': Object.fromEntries(['One', 'Two'].map(dispatch)) });
  peer = new RawPeer(far);
});

afterEach(() => {
  mux.close();
  peer.socket.destroy();
});

/** The answer to the request that is sent, or to the one that was. */
async function answer(stream: number, message?: Buffer, type = REQUEST, flags = 0) {
  if (message) peer.send(1, stream, type, message, flags);
  const reply = await peer.next();
  expect([reply.connection, reply.stream, reply.type]).toEqual([1, stream, RESPONSE]);
  return readResponse(reply.message);
}

const one = (payload = '') => request('a.Service', 'One', Buffer.from(payload));

test('a request is answered on its stream by the handler of its service and method', async () => {
  handlers.One = echo;
  handlers.Two = () => Buffer.from('two');
  expect(await answer(1, one('x'))).toEqual({ payload: Buffer.from('x') });
  expect(await answer(3, request('a.Service', 'Two'))).toEqual({ payload: Buffer.from('two') });
});

test('requests are answered however the stream is cut', async () => {
  handlers.One = echo;
  let stream = -1;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string(), { maxLength: 4 }),
      fc.integer({ min: 1, max: 40 }),
      async (texts, size) => {
        const streams = texts.map(() => (stream += 2));
        const bytes = Buffer.concat(
          texts.map((text, i) => muxFrame(1, frame(streams[i]!, REQUEST, one(text)))),
        );
        for (let at = 0; at < bytes.length; at += size) peer.socket.write(bytes.subarray(at, at + size));
        for (const [i, text] of texts.entries()) {
          expect((await answer(streams[i]!)).payload.toString()).toBe(text);
        }
      },
    ),
    { numRuns: 50 },
  );
});

test('handlers are called in the order of the requests, and answer in their own', async () => {
  const order: string[] = [];
  let release!: () => void;
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  handlers.One = async (payload) => {
    order.push(String(payload));
    await gate;
    return payload;
  };
  handlers.Two = (payload) => {
    order.push(String(payload));
    release();
    return payload;
  };
  peer.send(1, 1, REQUEST, one('first'));
  peer.send(1, 3, REQUEST, request('a.Service', 'Two', Buffer.from('second')));
  expect(String((await answer(3)).payload)).toBe('second');
  expect(String((await answer(1)).payload)).toBe('first');
  expect(order).toEqual(['first', 'second']);
});

test.each([
  [
    'an Error has status UNKNOWN and its message',
    () => Promise.reject(new Error('full')),
    { code: 2, message: 'full' },
  ],
  [
    'an error may have a status of its own',
    () => Promise.reject(new StatusError(9, 'not yet')),
    { code: 9, message: 'not yet' },
  ],
  [
    'a status of success is none for an error',
    () => Promise.reject(new StatusError(0, 'odd')),
    { code: 2, message: 'odd' },
  ],
  [
    'what is thrown at once is answered',
    () => {
      throw new Error('at once');
    },
    { code: 2, message: 'at once' },
  ],
  ['what is no Error is answered', () => Promise.reject('text'), { code: 2, message: 'text' }],
] as [string, Handler, object][])('%s', async (_title, handler, status) => {
  handlers.One = handler;
  expect(await answer(1, one())).toEqual({ status, payload: Buffer.alloc(0) });
});

test.each([
  ['b.Service', 'One'],
  ['a.Service', 'Three'],
  ['a.Service', 'constructor'],
  ['__proto__', 'toString'],
  ['', ''],
])('%s/%s is not served', async (service, method) => {
  const { status } = await answer(1, request(service, method));
  expect(status).toEqual({ code: 12, message: `${service}/${method} is not served` });
});

test('a stream that is even, used or lower than an earlier one is refused, and the others are served', async () => {
  handlers.One = echo;
  expect((await answer(5, one())).status).toBeUndefined();
  for (const stream of [0, 6, 5, 3]) expect((await answer(stream, one())).status?.code).toBe(3);
  expect((await answer(7, one('x'))).payload.toString()).toBe('x');
});

test('streaming is refused: an open stream, and data', async () => {
  expect((await answer(1, one(), REQUEST, 2)).status?.code).toBe(12);
  expect((await answer(1, one(), DATA)).status?.code).toBe(3);
  handlers.One = echo;
  expect((await answer(3, one('closed by the caller'), REQUEST, 1)).payload.toString()).toBe(
    'closed by the caller',
  );
});

test('responses and frames of unknown types are skipped', async () => {
  handlers.One = echo;
  for (const type of [0, RESPONSE, 4, 255]) peer.send(1, 1, type, one('wrong'));
  expect((await answer(1, one('right'))).payload.toString()).toBe('right');
});

test('an unreadable request is refused', async () => {
  const { status } = await answer(1, Buffer.from([0x0a, 0xff]));
  expect(status).toMatchObject({ code: 3, message: expect.stringContaining('cannot be read') });
});

test('a request of more than 4 MiB is refused, and the next one is served', async () => {
  handlers.One = echo;
  expect((await answer(1, Buffer.alloc((4 << 20) + 1))).status?.code).toBe(8);
  expect((await answer(3, one('small'))).payload.toString()).toBe('small');
});

test('an answer of more than 4 MiB is an error in its place', async () => {
  handlers.One = () => Buffer.alloc(4 << 20);
  expect((await answer(1, one())).status).toMatchObject({
    code: 8,
    message: expect.stringContaining('4194304'),
  });
});

test('more than 256 requests at a time are refused, and served again once there are fewer', async () => {
  const release: (() => void)[] = [];
  handlers.One = () => new Promise((resolve) => release.push(() => resolve(Buffer.alloc(0))));
  for (let i = 0; i < 256; i += 1) peer.send(1, 2 * i + 1, REQUEST, one());
  expect((await answer(513, one())).status).toMatchObject({
    code: 8,
    message: expect.stringContaining('256 requests'),
  });
  for (const each of release) each();
  for (let i = 0; i < 256; i += 1) expect((await answer(2 * i + 1)).status).toBeUndefined();
  handlers.One = echo;
  expect((await answer(515, one())).status).toBeUndefined();
});

test('more than 16 MiB of requests at a time are refused', async () => {
  handlers.One = () => new Promise(() => {});
  for (let i = 0; i < 4; i += 1) peer.send(1, 2 * i + 1, REQUEST, one('x'.repeat((4 << 20) - 100)));
  expect((await answer(9, one('x'.repeat(1000)))).status).toMatchObject({
    code: 8,
    message: expect.stringContaining('bytes'),
  });
});

test('a handler knows the time limit of its request', async () => {
  const limits: (number | undefined)[] = [];
  handlers.One = (payload, call) => {
    limits.push(call.timeout);
    return payload;
  };
  for (const [i, nano] of [1_500_000_000, 0, -1].entries()) {
    await answer(2 * i + 1, request('a.Service', 'One', Buffer.alloc(0), nano));
  }
  expect(limits).toEqual([1500, undefined, undefined]);
});

test('the end of the connection aborts the signals of its requests, and drops their answers', async () => {
  let release!: (payload: Uint8Array) => void;
  const called = new Promise<Call>((resolve) => {
    handlers.One = (_payload, call) => {
      resolve(call);
      return new Promise((settle) => {
        release = settle;
      });
    };
  });
  peer.send(1, 1, REQUEST, one());
  const { signal } = await called;
  expect(signal.aborted).toBe(false);
  peer.socket.destroy();
  await expect.poll(() => signal.aborted).toBe(true);
  expect(signal.reason).toMatchObject({ code: 'ERR_TTRPC_CLOSED' });
  release(Buffer.alloc(0));
});

test('a long message of an error is cut', async () => {
  handlers.One = () => Promise.reject(new Error('x'.repeat(1 << 20)));
  expect((await answer(1, one())).status?.message.length).toBe(8192);
});

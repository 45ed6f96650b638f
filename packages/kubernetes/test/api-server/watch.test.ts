// Watches, against servers that break them.

import { rmSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { ApiError } from '../../lib/api-server/api-error.js';
import type { WatchEvent, WatchOptions } from '../../lib/api-server/watch.js';
import { FakeServer, json, makePki, type Pki, refuse, type Seen } from './fake-server.js';

const WIDGETS = { group: 'example.com', version: 'v1', plural: 'widgets' };

let pki: Pki;
beforeAll(() => {
  pki = makePki();
});
afterAll(() => rmSync(pki.folder, { recursive: true, force: true }));

const object = (name: string, resourceVersion: string) => ({ metadata: { name, resourceVersion } });
const line = (type: string, value: unknown) => `${JSON.stringify({ type, object: value })}\n`;

/** Lists at version 10, 20, … and plays one script for each watch. */
async function serve(...scripts: ((answer: ServerResponse, seen: Seen) => unknown)[]) {
  let [lists, watches] = [0, 0];
  const server = await FakeServer.open(pki, (seen, answer) => {
    if (seen.query.get('watch') === 'true') {
      return (scripts[watches++] ?? ((each: ServerResponse) => each.writeHead(200).flushHeaders()))(
        answer,
        seen,
      );
    }
    lists++;
    json(answer, { items: [object('a', `${lists}`)], metadata: { resourceVersion: `${10 * lists}` } });
  });
  return server;
}

/** The first events of a watch, and its failures. */
async function follow(server: FakeServer, count: number, options: WatchOptions = {}) {
  const end = new AbortController();
  onTestFinished(() => end.abort());
  const errors: ApiError[] = [];
  const events: WatchEvent[] = [];
  const failed = (error: ApiError) => errors.push(error);
  for await (const event of server.client().watch(WIDGETS, { ...options, signal: end.signal, failed })) {
    if (events.push(event) === count) break;
  }
  const texts = events.map((event) =>
    event.type === 'LISTED'
      ? `LISTED ${event.objects.map(({ metadata }) => metadata.name)}`
      : `${event.type} ${event.object.metadata.resourceVersion}`,
  );
  return { texts, errors };
}

const watchesOf = ({ seen }: FakeServer) =>
  seen.filter(({ query }) => query.get('watch') === 'true').map(({ query }) => query.get('resourceVersion'));

describe('a watch', () => {
  it('begins with a list, and requests later changes', async () => {
    const server = await serve((answer) => {
      answer.write(line('ADDED', object('b', '11')) + line('MODIFIED', object('b', '12')));
      answer.write(line('DELETED', object('b', '13')));
    });
    const { texts } = await follow(server, 4, { name: 'b' });
    expect(texts).toEqual(['LISTED a', 'ADDED 11', 'MODIFIED 12', 'DELETED 13']);
    expect(server.seen.map(({ query }) => query.get('fieldSelector'))).toEqual([
      'metadata.name=b',
      'metadata.name=b',
    ]);
    expect(Object.fromEntries(server.seen[1]!.query)).toMatchObject({
      ...{ watch: 'true', allowWatchBookmarks: 'true', resourceVersion: '10' },
    });
  });

  it('continues from a bookmark after the server has ended it, without a list', async () => {
    const server = await serve(
      (answer) => answer.end(line('BOOKMARK', { metadata: { resourceVersion: '15' } })),
      (answer) => answer.write(line('ADDED', object('c', '16'))),
    );
    const { texts, errors } = await follow(server, 2);
    expect(texts).toEqual(['LISTED a', 'ADDED 16']);
    expect(watchesOf(server)).toEqual(['10', '15']);
    expect(errors).toEqual([]);
  });

  it('continues from the last event if the connection breaks, even in the middle of a line', async () => {
    const server = await serve(
      (answer) => {
        answer.write(line('ADDED', object('b', '11')) + '{"type":"ADDED","object":{"meta');
        setTimeout(() => answer.destroy(), 20);
      },
      (answer) => answer.write(line('ADDED', object('c', '12'))),
    );
    const { texts, errors } = await follow(server, 3);
    expect(texts).toEqual(['LISTED a', 'ADDED 11', 'ADDED 12']);
    expect(watchesOf(server)).toEqual(['10', '11']);
    expect(errors.map(({ code }) => code)).toEqual(['ERR_API_UNREACHABLE']);
  });

  it.each([
    ['an event', (answer: ServerResponse) => answer.end(line('ERROR', { kind: 'Status', code: 410 }))],
    ['the status', (answer: ServerResponse) => refuse(answer, 410, 'too old')],
  ])(
    'lists again where %s says that its version is gone, and calls it no failure',
    async (_title, script) => {
      const server = await serve(script, (answer) => answer.write(line('ADDED', object('c', '21'))));
      const { texts, errors } = await follow(server, 3);
      expect(texts).toEqual(['LISTED a', 'LISTED a', 'ADDED 21']);
      expect(watchesOf(server)).toEqual(['10', '20']);
      expect(errors).toEqual([]);
    },
  );

  it.each([
    ['garbage', 'hello\n'],
    ['an event without an object', '{"type":"ADDED"}\n'],
    ['an event of no type that there is', line('CHANGED', object('b', '11'))],
    ['an object without a version', line('ADDED', { metadata: {} })],
    ['null', 'null\n'],
    ['a line without an end', 'x'.repeat(5 * 2 ** 20)],
  ])('lists again after %s, and reports it', async (_title, text) => {
    const server = await serve(
      (answer) => answer.write(text),
      (answer) => answer.write(line('ADDED', object('c', '21'))),
    );
    const { texts, errors } = await follow(server, 3);
    expect(texts).toEqual(['LISTED a', 'LISTED a', 'ADDED 21']);
    expect(errors.map(({ code }) => code)).toEqual(['ERR_API_ANSWER']);
  });

  it('reads lines that come in parts, also within a letter', async () => {
    const text = Buffer.from(line('ADDED', object('bär', '11')) + line('ADDED', object('c', '12')));
    const server = await serve(async (answer) => {
      for (const byte of text) {
        answer.write(Uint8Array.of(byte));
        await new Promise(setImmediate);
      }
    });
    const { texts } = await follow(server, 3);
    expect(texts).toEqual(['LISTED a', 'ADDED 11', 'ADDED 12']);
  });

  it('continues after a hanging server', async () => {
    const server = await serve(
      (answer) => answer.write(line('ADDED', object('b', '11'))),
      (answer) => answer.write(line('ADDED', object('c', '12'))),
    );
    const { texts, errors } = await follow(server, 3, { seconds: 0, graceMs: 3000 });
    expect(texts).toEqual(['LISTED a', 'ADDED 11', 'ADDED 12']);
    expect(watchesOf(server)).toEqual(['10', '11']);
    expect(errors.map(({ code }) => code)).toEqual(['ERR_API_TIMEOUT']);
  });

  it('reports that it is not allowed, and continues once it is', async () => {
    let refusals = 1;
    const server = await FakeServer.open(pki, (_seen, answer) =>
      refusals-- > 0
        ? refuse(answer, 403, 'widgets is forbidden')
        : json(answer, { items: [], metadata: { resourceVersion: '1' } }),
    );
    const { texts, errors } = await follow(server, 1);
    expect(texts).toEqual(['LISTED ']);
    expect(errors).toMatchObject([{ code: 'ERR_API_FORBIDDEN' }]);
  });

  it('waits longer after each failure in a row', async () => {
    const pauses: number[] = [];
    const server = await FakeServer.open(pki, (_seen, answer) => refuse(answer, 500, 'ill'));
    const end = new AbortController();
    const failed = (_error: ApiError, ms: number) => {
      if (pauses.push(ms) === 3) end.abort();
    };
    for await (const _event of server.client().watch(WIDGETS, { signal: end.signal, failed }));
    expect(pauses).toHaveLength(3);
    expect(pauses[1]!).toBeGreaterThanOrEqual(500);
    expect(pauses[2]!).toBeGreaterThanOrEqual(1000);
  });

  it('ends when the client is closed, and leaves no connection', async () => {
    const server = await serve();
    const client = server.client();
    const events: string[] = [];
    const done = (async () => {
      for await (const event of client.watch(WIDGETS)) events.push(event.type);
    })();
    await server.until(() => watchesOf(server).length === 1);
    client.close();
    await done;
    expect(events).toEqual(['LISTED']);
    await expect.poll(() => server.sockets.size).toBe(0);
  });
});

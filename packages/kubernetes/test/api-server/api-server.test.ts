// The client of the API server, with servers that misbehave.
import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiError } from '../../lib/api-server/api-error.js';
import { ApiServer } from '../../lib/api-server/api-server.js';
import { FakeServer, json, makePki, type Pki, refuse } from './fake-server.js';

const WIDGETS = { group: 'example.com', version: 'v1', plural: 'widgets' };
const OBJECT = { metadata: { name: 'a', resourceVersion: '7' }, size: 1 };

let pki: Pki;
let stranger: Pki;
beforeAll(() => {
  pki = makePki();
  stranger = makePki('DNS:elsewhere.example');
});
afterAll(() => {
  for (const { folder } of [pki, stranger]) rmSync(folder, { recursive: true, force: true });
});

const errorOf = (promise: Promise<unknown>) =>
  promise.then(
    () => {
      throw new Error('it succeeded');
    },
    (error: ApiError) => error,
  );

describe('requests', () => {
  it('send method, path, body, type and token of each verb', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) => json(answer, OBJECT));
    const client = server.client();
    expect(await client.get(WIDGETS, 'a')).toEqual(OBJECT);
    await client.create(WIDGETS, OBJECT);
    await client.replace({ ...WIDGETS, namespace: 'of me' }, OBJECT);
    await client.patch(WIDGETS, 'a', { size: 2 });
    await client.delete({ group: '', version: 'v1', plural: 'nodes' }, 'a/b');
    expect(
      server.seen.map(({ method, path, body, headers }) => [method, path, headers['content-type'], body]),
    ).toEqual([
      ['GET', '/apis/example.com/v1/widgets/a', undefined, ''],
      ['POST', '/apis/example.com/v1/widgets', 'application/json', JSON.stringify(OBJECT)],
      [
        'PUT',
        '/apis/example.com/v1/namespaces/of%20me/widgets/a',
        'application/json',
        JSON.stringify(OBJECT),
      ],
      ['PATCH', '/apis/example.com/v1/widgets/a', 'application/merge-patch+json', '{"size":2}'],
      ['DELETE', '/api/v1/nodes/a%2Fb', undefined, ''],
    ]);
    expect(new Set(server.seen.map(({ headers }) => headers.authorization))).toEqual(
      new Set(['Bearer first']),
    );
    expect(server.connections).toBe(1);
  });

  it.each([
    [401, 'ERR_API_UNAUTHORIZED'],
    [403, 'ERR_API_FORBIDDEN'],
    [404, 'ERR_API_NOT_FOUND'],
    [409, 'ERR_API_CONFLICT'],
    [410, 'ERR_API_GONE'],
    [422, 'ERR_API_INVALID'],
    [301, 'ERR_API_ANSWER'],
  ])('that are answered by %i fail at once, as %s with the server’s message', async (status, code) => {
    const server = await FakeServer.open(pki, (_seen, answer) => refuse(answer, status, 'because of this'));
    const error = await errorOf(server.client().get(WIDGETS, 'a'));
    expect(error).toMatchObject({ code, details: { value: status } });
    expect(error.message).toBe('GET /apis/example.com/v1/widgets/a: because of this');
    expect(server.seen).toHaveLength(1);
  });

  it.each([429, 500, 503, 504])('that are answered by %i are repeated', async (status) => {
    const server = await FakeServer.open(pki, (_seen, answer) =>
      server.seen.length < 2 ? refuse(answer, status, 'later') : json(answer, OBJECT),
    );
    expect(await server.client().get(WIDGETS, 'a')).toEqual(OBJECT);
    expect(server.seen).toHaveLength(2);
  });

  it('are repeated later each time', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) =>
      server.seen.length < 3 ? refuse(answer, 503, 'later') : json(answer, OBJECT),
    );
    await server.client().get(WIDGETS, 'a');
    const [first, second, third] = server.seen.map(({ at }) => at) as [number, number, number];
    expect(second - first).toBeGreaterThan(200);
    expect(third - second).toBeGreaterThan(400);
  });

  it('are not repeated before the time of Retry-After', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) =>
      server.seen.length === 1 ? refuse(answer, 429, 'busy', { 'retry-after': '1' }) : json(answer, OBJECT),
    );
    await server.client().get(WIDGETS, 'a');
    expect(server.seen[1]!.at - server.seen[0]!.at).toBeGreaterThan(990);
  });

  it('end with the last error after the time limit', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) =>
      refuse(answer, 429, 'busy', { 'retry-after': '30' }),
    );
    const error = await errorOf(server.client().get(WIDGETS, 'a'));
    expect(error).toMatchObject({ code: 'ERR_API_BUSY', retryAfterMs: 30_000 });
    expect(server.seen).toHaveLength(1);
  });

  it('find a server again that was absent', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) => json(answer, OBJECT));
    const client = server.client();
    await client.get(WIDGETS, 'a');
    await server.stop();
    const error = await errorOf(server.client({ patienceMs: 0 }).get(WIDGETS, 'a'));
    expect(error.code).toBe('ERR_API_UNREACHABLE');
    const asked = client.get(WIDGETS, 'a');
    await server.start();
    expect(await asked).toEqual(OBJECT);
  });

  it.each([
    ['never answers', () => {}],
    ['never ends its answer', (answer: { write(text: string): void }) => answer.write('{"meta')],
  ])('to a server that %s end after their deadline', async (_title, behave) => {
    const server = await FakeServer.open(pki, (_seen, answer) => behave(answer));
    const error = await errorOf(server.client({ deadlineMs: 200, patienceMs: 0 }).get(WIDGETS, 'a'));
    expect(error).toMatchObject({ code: 'ERR_API_TIMEOUT', details: { value: 200 } });
  });

  it.each([
    ['no JSON', 'hello'],
    ['half JSON', '{"metadata":'],
    ['a list', '[]'],
    ['an object without metadata', '{}'],
    ['nothing', ''],
  ])('answered by %s are ERR_API_ANSWER', async (_title, text) => {
    const server = await FakeServer.open(pki, (_seen, answer) => answer.end(text));
    expect(await errorOf(server.client().get(WIDGETS, 'a'))).toMatchObject({ code: 'ERR_API_ANSWER' });
    expect(server.seen).toHaveLength(1);
  });

  it('answered endlessly are given up', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) => {
      const more = () => {
        while (!answer.destroyed && answer.write(Buffer.alloc(2 ** 16, ' ')));
      };
      answer.on('drain', more);
      more();
    });
    const error = await errorOf(server.client().get(WIDGETS, 'a'));
    expect(error.message).toContain('more than 8388608 bytes');
  });

  it('whose connection breaks in the middle are ERR_API_UNREACHABLE', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) => {
      answer.writeHead(200, { 'content-length': 100 });
      answer.write('{');
      setImmediate(() => answer.destroy());
    });
    const error = await errorOf(server.client({ patienceMs: 0 }).get(WIDGETS, 'a'));
    expect(error.code).toBe('ERR_API_UNREACHABLE');
  });

  it('end when the client is closed, and when the caller aborts', async () => {
    const server = await FakeServer.open(pki, () => {});
    const client = server.client();
    const end = new AbortController();
    const [first, second] = [
      errorOf(client.get(WIDGETS, 'a', { signal: end.signal })),
      errorOf(client.get(WIDGETS, 'a')),
    ];
    await server.until(() => server.seen.length === 2);
    end.abort();
    expect((await first).code).toBe('ERR_API_UNREACHABLE');
    client.close();
    expect((await second).code).toBe('ERR_API_UNREACHABLE');
    expect((await errorOf(client.get(WIDGETS, 'a'))).code).toBe('ERR_API_UNREACHABLE');
    expect(server.seen).toHaveLength(2);
  });
});

describe('trust', () => {
  it('is refused to a server of another CA, and to one of another name', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) => json(answer, OBJECT));
    const others = await FakeServer.open(stranger, (_seen, answer) => json(answer, OBJECT));
    const clients = [server.client({ caFile: stranger.caFile }), others.client()];
    for (const client of clients) {
      const error = await errorOf(client.get(WIDGETS, 'a'));
      expect(error).toMatchObject({ code: 'ERR_API_TLS', details: { valid: expect.stringContaining('CA') } });
    }
    expect([...server.seen, ...others.seen]).toEqual([]);
  });

  it('follows the file of the CA', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) => json(answer, OBJECT));
    const caFile = join(dirname(server.tokenFile), 'ca.crt');
    symlinkSync(stranger.caFile, caFile);
    const client = server.client({ caFile });
    expect((await errorOf(client.get(WIDGETS, 'a'))).code).toBe('ERR_API_TLS');
    symlinkSync(pki.caFile, `${caFile}.new`);
    renameSync(`${caFile}.new`, caFile);
    expect(await client.get(WIDGETS, 'a')).toEqual(OBJECT);
  });

  it('needs HTTPS', () => {
    const options = { url: 'http://127.0.0.1:1', caFile: pki.caFile, tokenFile: pki.caFile };
    expect(() => new ApiServer(options)).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }));
  });
});

describe('the token', () => {
  it('is read again once its file has changed', async () => {
    const server = await FakeServer.open(pki, (_seen, answer) => json(answer, OBJECT));
    const client = server.client();
    await client.get(WIDGETS, 'a');
    writeFileSync(`${server.tokenFile}.new`, 'second');
    renameSync(`${server.tokenFile}.new`, server.tokenFile);
    await client.get(WIDGETS, 'a');
    expect(server.seen.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first',
      'Bearer second',
    ]);
  });

  it('that was rotated during a request is sent at once', async () => {
    const server = await FakeServer.open(pki, ({ headers }, answer) => {
      if (headers.authorization === 'Bearer second') return json(answer, OBJECT);
      writeFileSync(server.tokenFile, 'second');
      refuse(answer, 401, 'expired');
    });
    expect(await server.client().get(WIDGETS, 'a')).toEqual(OBJECT);
    expect(server.seen).toHaveLength(2);
  });

  it.each([
    ['is empty', (file: string) => writeFileSync(file, ' \n')],
    ['is gone', (file: string) => rmSync(file)],
    ['has several lines', (file: string) => writeFileSync(file, 'a\nb')],
  ])('whose file %s is ERR_API_CREDENTIALS, and nothing is sent', async (_title, spoil) => {
    const server = await FakeServer.open(pki, (_seen, answer) => json(answer, OBJECT));
    spoil(server.tokenFile);
    expect((await errorOf(server.client().get(WIDGETS, 'a'))).code).toBe('ERR_API_CREDENTIALS');
    expect(server.seen).toEqual([]);
  });
});

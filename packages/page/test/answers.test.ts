// needs: nothing
import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished } from 'vitest';
import { end, handlerOf, listen, PLAIN_TEXT, type Served } from '../lib/listening.js';

/** What a server of these answers says to a request. */
async function asked(served: Served, path: string, method = 'GET') {
  const { server, address } = await listen({ host: '127.0.0.1', port: 0 }, handlerOf(served), () => {});
  onTestFinished(() => end(server));
  return new Promise<{ status: number | undefined; text: string }>((resolve) => {
    const request = get({ ...address, path, method, agent: false }, async (response) =>
      resolve({ status: response.statusCode, text: await text(response) }),
    );
    request.end();
  });
}

const answers = {
  '/healthz': () => ({ status: 200, type: PLAIN_TEXT, text: 'ok\n' }) as const,
  '/readyz': () => {
    throw new Error('a bug');
  },
};

describe('A server of answers', () => {
  it('answers its paths, with any query', async () => {
    expect(await asked({ answers }, '/healthz?verbose')).toEqual({ status: 200, text: 'ok\n' });
    expect(await asked({ answers }, '/healthz', 'HEAD')).toEqual({ status: 200, text: '' });
  });

  it('names its paths to those who ask for others', async () => {
    expect(await asked({ answers }, '/')).toEqual({
      status: 404,
      text: 'not found: use /healthz or /readyz\n',
    });
    const page = { handler: () => {} };
    expect((await asked({ answers, page }, '/x')).text).toBe('not found: use /, /healthz or /readyz\n');
  });

  it('is read-only, and says what fails', async () => {
    expect(await asked({ answers }, '/healthz', 'POST')).toMatchObject({ status: 405 });
    expect(await asked({ answers }, '/readyz')).toEqual({ status: 500, text: 'a bug\n' });
  });
});

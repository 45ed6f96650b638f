// needs: nothing
// The page over HTTP, of a simulated machine.
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { type Manager, openManager } from 'numalign';
import { discover } from 'numalign/topology';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseXml } from '../../../test/support/xml.js';
import { machinePage, type PageOptions } from '../lib/index.js';
import { type Served, serve } from './served.js';

interface Asked {
  readonly method?: string;
  readonly headers?: Record<string, string>;
}

async function ask({ port }: Served, path: string, asked: Asked = {}): Promise<IncomingMessage> {
  const sent = request({ port, host: '127.0.0.1', path, agent: false, ...asked }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}

const statusOf = async (served: Served, path: string, asked?: Asked) => {
  const response = await ask(served, path, asked);
  response.destroy();
  return response.statusCode;
};

interface Update {
  readonly colors: number;
  readonly sections: Readonly<Record<string, string>>;
}

/** Reads the events of a response. */
class Events {
  readonly #lines: AsyncIterator<string>;
  readonly response: IncomingMessage;

  private constructor(response: IncomingMessage) {
    this.response = response;
    this.#lines = linesOf(response);
  }

  static async open(served: Served): Promise<Events> {
    return new Events(await ask(served, '/events'));
  }

  async next(): Promise<Update> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done) throw new Error('the events have ended');
      if (value.startsWith('data: ')) return JSON.parse(value.slice('data: '.length));
    }
  }

  /** The first update that has the section with this text, or without it. */
  async until(section: string, word: string, isThere = true): Promise<Update> {
    for (;;) {
      const update = await this.next();
      if (update.sections[section]?.includes(word) === isThere) return update;
    }
  }
}

async function* linesOf(response: IncomingMessage): AsyncGenerator<string> {
  let rest = '';
  for await (const part of response.setEncoding('utf8')) {
    const lines = (rest + part).split('\n');
    rest = lines.pop()!;
    yield* lines;
  }
}

/** What Node has under way: timers, sockets. */
const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

describe('the page', () => {
  it('is a whole document: the machine, the grants in a table, the state', async () => {
    const served = await serve();
    await served.manager.acquire({ cpu: 2, name: 'gateway <b>' });
    const html = await text(await ask(served, '/'));
    const [, svg] = /(<svg width.*?<\/svg>)<\/div>/s.exec(html)!;
    expect(parseXml(svg!).attributes.role).toBe('img');
    expect(html).toMatch(/<th scope="row">.*gateway &lt;b&gt;/);
    expect(html).toMatch(/<dt>Shared pool<\/dt><dd>CPUs /);
    expect(html.match(/<script|<style|style="|onclick|https?:/g)).toEqual(['<script']);
  });

  it('has headers that let it load nothing from elsewhere, and be kept nowhere', async () => {
    const { headers } = await ask(await serve(), '/');
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self'/);
    expect(headers['content-security-policy']).not.toContain('unsafe');
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    expect(Object.keys(headers)).not.toContain('access-control-allow-origin');
  });

  it('answers its own paths, to GET and HEAD', async () => {
    const served = await serve();
    for (const path of ['/', '/page.css?colors=40', '/page.js', '/events'])
      for (const method of ['GET', 'HEAD']) expect(await statusOf(served, path, { method })).toBe(200);
    expect(await statusOf(served, '/', { method: 'POST' })).toBe(405);
    for (const path of ['/metrics', '/page.js/', '//', '/../page.js'])
      expect(await statusOf(served, path)).toBe(404);
  });

  it('has a colour for each holder in its style sheet, whatever is asked for', async () => {
    const served = await serve();
    const colorsOf = async (query: string) =>
      (await text(await ask(served, `/page.css${query}`))).match(/\.holder-/g)!.length / 2;
    const queries = ['', '?colors=33', '?colors=1e9', '?colors=NaN', '?colors=-1', '?colors=Infinity'];
    const counts = [];
    for (const query of queries) counts.push(await colorsOf(query));
    expect(counts).toEqual([32, 64, 2048, 32, 32, 32]);
  });

  it('shows why the state cannot be read', async () => {
    const served = await serve();
    served.manager.close();
    const html = await text(await ask(served, '/'));
    expect(html).toMatch(/class="notice">The state cannot be read: .*closed/);
  });

  it('shows the rejections of its own manager, with their explanation', async () => {
    const served = await serve();
    const other = await openManager({ topology: await discover({ synthetic: 'core:2 pu:1' }) });
    onTestFinished(() => other.close());
    await expect(other.acquire({ cpu: 64, name: 'elsewhere' })).rejects.toThrow();
    await expect(served.manager.acquire({ cpu: 64, name: 'large' })).rejects.toThrow();
    const html = await text(await ask(served, '/'));
    expect(html).toMatch(/large<\/b> <code>ERR_INSUFFICIENT_CPUS<\/code>/);
    expect(html).toMatch(/<pre>UnexpectedAdmissionError.*\n.*free by NUMA node/s);
    expect(html).not.toContain('elsewhere');
  });

  it('refuses wrong options, and does not print a token', () => {
    const options = [
      { token: 'short' },
      { token: 'with a space in it' },
      { maxStreams: 0 },
      { intervalMs: 1 },
    ];
    for (const each of [...options, { memory: 1 }, { tokens: 1 }])
      expect(() => machinePage({} as Manager, each as PageOptions)).toThrow(/ERR_INVALID_OPTION|must be/);
  });
});

describe('without a token', () => {
  it.each([
    ['127.0.0.1', 200],
    ['127.0.0.1:9479', 200],
    ['localhost:80', 200],
    ['[::1]:1', 200],
    ['127.1', 200],
    ['evil.example', 421],
    ['127.0.0.1.evil.example', 421],
    ['localhost.evil.example', 421],
    ['10.0.0.1', 421],
    ['localhost@evil.example', 421],
    ['localhost/..', 421],
  ])('it answers the name %j with %i', async (host, status) => {
    expect(await statusOf(await serve(), '/', { headers: { host } })).toBe(status);
  });

  it('has no events for pages of other sites', async () => {
    const served = await serve();
    const of = (site: string) => statusOf(served, '/events', { headers: { 'sec-fetch-site': site } });
    expect([await of('cross-site'), await of('same-site'), await of('same-origin')]).toEqual([403, 403, 200]);
  });
});

describe('with a token', () => {
  const token = 'correct-horse-battery';
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });

  it('answers any name, if it is given as password or bearer token', async () => {
    const served = await serve({ token });
    const host = 'node-7.example';
    for (const headers of [basic(`any:${token}`), basic(`:${token}`), { authorization: `Bearer ${token}` }])
      expect(await statusOf(served, '/', { headers: { host, ...headers } })).toBe(200);
  });

  it.each([
    {},
    basic(`${token}:`),
    basic(`:${token}x`),
    basic(`:${token.slice(1)}`),
    { authorization: 'Bearer' },
    { authorization: 'Basic !' },
    { authorization: `Digest ${token}` },
  ])('refuses %j for all of its paths', async (headers) => {
    const served = await serve({ token });
    for (const path of ['/', '/page.js', '/events', '/nowhere'])
      expect(await statusOf(served, path, { headers: headers as Record<string, string> })).toBe(401);
    const response = await ask(served, '/');
    expect(response.headers['www-authenticate']).toMatch(/^Basic realm="numalign/);
  });
});

describe('its events', () => {
  it('begin with the whole page, and follow with what has changed', async () => {
    const served = await serve();
    const events = await Events.open(served);
    const first = await events.next();
    const names = ['grants', 'machine', 'notices', 'picture', 'rejections', 'summary', 'waiting'];
    expect(Object.keys(first.sections).sort()).toEqual(names);
    const grant = await served.manager.acquire({ cpu: 1, name: 'gateway' });
    const added = await events.until('grants', 'gateway');
    expect(added.sections).not.toHaveProperty('machine');
    expect(added.sections.picture).toContain('holder-0');
    await grant.release();
    const removed = await events.until('grants', 'gateway', false);
    expect(removed.sections.picture).not.toContain('holder-0');
  });

  it('keep the colours of holders as others come and go', async () => {
    const served = await serve();
    const events = await Events.open(served);
    const first = await served.manager.acquire({ cpu: 1, name: 'first' });
    await served.manager.acquire({ cpu: 1, name: 'second' });
    await events.until('grants', 'second');
    await first.release();
    const { sections } = await events.until('grants', 'first', false);
    expect(sections.grants).toMatch(/holder-1.*second/);
    await served.manager.acquire({ cpu: 1, name: 'third' });
    expect((await events.until('grants', 'third')).sections.grants).toMatch(/holder-0.*third/);
  });

  it('are for so many pages at a time', async () => {
    const served = await serve({ maxStreams: 2 });
    const streams = [await ask(served, '/events'), await ask(served, '/events')];
    const refused = await ask(served, '/events');
    expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '10']);
    streams[0]!.destroy();
    await expect.poll(() => statusOf(served, '/events'), { interval: 10 }).toBe(200);
  });

  it('end with the page', async () => {
    const served = await serve();
    const response = await ask(served, '/events');
    served.close();
    expect(await text(response)).toContain('data: ');
  });
});

describe('what the page costs', () => {
  it('is nothing while none is open: no timer, no listener, no look', async () => {
    const before = timers();
    const served = await serve();
    const { manager } = served;
    let looks = 0;
    const status = manager.status.bind(manager);
    manager.status = () => {
      looks++;
      return status();
    };
    const idle = () => [manager.listenerCount('change'), looks];
    expect(idle()).toEqual([0, 0]);
    expect(timers()).toBeLessThanOrEqual(before);
    const events = await Events.open(served);
    await events.next();
    expect(manager.listenerCount('change')).toBe(1);
    events.response.destroy();
    await expect.poll(() => manager.listenerCount('change'), { interval: 10 }).toBe(0);
    looks = 0;
    const grant = await manager.acquire({ cpu: 1 });
    await grant.release();
    expect(idle()).toEqual([0, 0]);
    // Another test's may have ended.
    expect(timers()).toBeLessThanOrEqual(before);
  });
});

// MachinePage: answers the requests of browsers.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hostname } from 'node:os';
import type { ManagerView } from 'numalign';
import { pageDocument } from './document.js';
import { Looks, type Section } from './look.js';
import { type PageOptions, parseOptions } from './options.js';
import { Rejections } from './sections/rejections.js';
import { isOfAnotherSite, refusalOf } from './serving/access.js';
import { isPagePath } from './serving/page-paths.js';
import { SCRIPT } from './serving/script.js';
import { Streams } from './serving/streams.js';
import { pageStyle, sheetColors } from './serving/style.js';

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const;

const TYPES = {
  html: 'text/html; charset=utf-8',
  style: 'text/css; charset=utf-8',
  script: 'text/javascript; charset=utf-8',
  events: 'text/event-stream; charset=utf-8',
  plain: 'text/plain; charset=utf-8',
} as const;

const isEvents = (url = '/') => url.split('?', 1)[0] === '/events';

interface Answer {
  readonly status?: number;
  readonly type?: keyof typeof TYPES;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A page that {@link machinePage} makes. `using` closes it. */
export class MachinePage {
  readonly #token: string | undefined;
  readonly #rejections: Rejections;
  readonly #looks: Looks;
  readonly #streams: Streams<Section>;

  /** Use {@link machinePage}. */
  constructor(manager: ManagerView, options: PageOptions) {
    const { token, memory, maxStreams, intervalMs } = parseOptions(options);
    this.#token = token;
    this.#rejections = new Rejections(manager.id);
    this.#looks = new Looks(manager, this.#rejections, memory);
    this.#streams = new Streams({
      max: maxStreams,
      intervalMs,
      look: (isNew) => this.#look(isNew),
      watch: (changed) => {
        manager.on('change', changed);
        return () => void manager.off('change', changed);
      },
    });
  }

  /**
   * Answers a request: `createServer(page.handler)`. It reads only, and answers 404 for other paths
   * than its own: `/`, `/page.css`, `/page.js` and `/events`.
   */
  readonly handler = (request: IncomingMessage, response: ServerResponse): void => {
    try {
      this.#answer(request, response);
    } catch (error) {
      const text = `${error instanceof Error ? error.message : String(error)}\n`;
      if (response.headersSent) response.destroy();
      else send(response, { status: 500, text });
    }
  };

  /** Ends the pages that follow, and forgets the rejections. */
  close(): void {
    this.#streams.close();
    this.#rejections.close();
  }

  /** As {@link close}. */
  [Symbol.dispose](): void {
    this.close();
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const answer = this.#refusalOf(request) ?? this.#contentOf(request.url ?? '/');
    if (answer) send(response, answer);
    else {
      response.writeHead(200, { ...HEADERS, 'content-type': TYPES.events });
      if (request.method === 'HEAD') response.end();
      else this.#streams.add(response);
    }
  }

  #refusalOf(request: IncomingMessage): Answer | undefined {
    const refusal = refusalOf(request, this.#token);
    if (refusal) return refusal;
    if (!isPagePath(request.url)) return { status: 404, text: 'not found: use /\n' };
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return { status: 405, text: 'read-only: use GET or HEAD\n', headers: { allow: 'GET, HEAD' } };
    if (!isEvents(request.url)) return undefined;
    if (isOfAnotherSite(request)) return { status: 403, text: 'This is for the page at / only.\n' };
    if (!this.#streams.isFull) return undefined;
    const text = 'As many pages follow as may: close one.\n';
    return { status: 503, text, headers: { 'retry-after': '10' } };
  }

  /** Undefined: events. */
  #contentOf(url: string): Answer | undefined {
    if (isEvents(url)) return undefined;
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    if (pathname === '/page.js') return { type: 'script', text: SCRIPT };
    if (pathname === '/page.css')
      return { type: 'style', text: pageStyle(Number(searchParams.get('colors'))) };
    return { type: 'html', text: pageDocument(hostname(), this.#look(false)) };
  }

  #look(isNew: boolean) {
    const look = this.#looks.look(isNew);
    return { ...look, colors: sheetColors(look.colors) };
  }
}

function send(response: ServerResponse, { status = 200, type = 'plain', text, headers }: Answer): void {
  const length = Buffer.byteLength(text);
  const own = { 'content-type': TYPES[type], 'content-length': length };
  response.writeHead(status, { ...HEADERS, ...headers, ...own });
  // Node leaves out the text for HEAD.
  response.end(text);
}

// What a server answers beside the page: GET and HEAD of some paths, such as /metrics and /healthz.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { isPagePath } from './page-paths.js';

/** The answer to a request. */
export interface Answer {
  readonly status: 200 | 503;
  /** Media type. */
  readonly type: string;
  readonly text: string;
}

/** The functions that answer, by path. */
export type Answers = Readonly<Record<string, () => Answer | Promise<Answer>>>;

/** What the server serves. */
export interface Served {
  readonly answers: Answers;
  /** Undefined: there is no page. */
  readonly page?: { readonly handler: RequestListener } | undefined;
}

export const PLAIN_TEXT = 'text/plain; charset=utf-8';

/** Answers the requests of one server. */
export function handlerOf({ answers, page }: Served): RequestListener {
  return (request, response) => {
    if (page && isPagePath(request.url)) page.handler(request, response);
    else void respond(request, response, answers, page ? ['/'] : []);
  };
}

async function respond(
  request: IncomingMessage,
  response: ServerResponse,
  answers: Answers,
  others: readonly string[],
): Promise<void> {
  const path = request.url!.split('?', 1)[0]!;
  const send = (status: number, type: string, text: string) => {
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
    // Node leaves out the text for HEAD.
    response.end(text);
  };
  if (!Object.hasOwn(answers, path)) {
    send(404, PLAIN_TEXT, `not found: use ${alternatives([...others, ...Object.keys(answers)])}\n`);
    return;
  }
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    send(405, PLAIN_TEXT, 'read-only: use GET or HEAD\n');
    return;
  }
  try {
    const { status, type, text } = await answers[path]!();
    send(status, type, text);
  } catch (error) {
    send(500, PLAIN_TEXT, `${error instanceof Error ? error.message : String(error)}\n`);
  }
}

const alternatives = (words: readonly string[]) =>
  words.length === 1 ? words[0] : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

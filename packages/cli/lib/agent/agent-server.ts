// The HTTP server of `numalign agent`: GET and HEAD of the page, /metrics and /healthz.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIPv6 } from 'node:net';
import { isPagePath, type MachinePage } from '@numalign/page';
import { NumalignError } from 'numalign';
import { kernelFacts } from 'numalign/tools';

export interface ListenAddress {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

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
  readonly page: Pick<MachinePage, 'handler'>;
}

export const PLAIN_TEXT = 'text/plain; charset=utf-8';

/** `127.0.0.1:9479`, `[::1]:9479`. */
export function addressText({ host, port }: ListenAddress): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}

/**
 * Starts to listen. Returns the server and its address with the actual port. `fail` receives later
 * errors, such as too few descriptors for a connection.
 * @throws ERR_SYSCALL if it cannot listen, for example because the port is in use
 */
export async function listen(
  address: ListenAddress,
  { answers, page }: Served,
  fail: (error: Error) => void,
): Promise<{ readonly server: Server; readonly address: ListenAddress }> {
  const server = createServer((request, response) => {
    if (isPagePath(request.url)) page.handler(request, response);
    else void respond(request, response, answers);
  });
  await new Promise<void>((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException) => reject(cannotListen(address, error));
    server.once('error', refuse);
    server.listen(address, () => {
      server.off('error', refuse);
      server.on('error', fail);
      resolve();
    });
  });
  const socket = server.address();
  const port = typeof socket === 'object' && socket !== null ? socket.port : address.port;
  return { server, address: { host: address.host, port } };
}

function cannotListen(address: ListenAddress, error: NodeJS.ErrnoException): NumalignError {
  const { code, message } = error;
  const why = code === 'EADDRINUSE' ? 'the port is in use' : message;
  return new NumalignError('ERR_SYSCALL', `cannot listen on ${addressText(address)}: ${why}`, {
    ...kernelFacts(error),
    value: addressText(address),
    syscall: 'listen',
  });
}

async function respond(request: IncomingMessage, response: ServerResponse, answers: Answers): Promise<void> {
  const path = request.url!.split('?', 1)[0]!;
  const send = (status: number, type: string, text: string) => {
    response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(text) });
    // Node leaves out the text for HEAD.
    response.end(text);
  };
  if (!Object.hasOwn(answers, path)) {
    send(404, PLAIN_TEXT, `not found: use /, ${Object.keys(answers).join(' or ')}\n`);
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

// The time for requests in progress.
const GRACE_MS = 500;

/** Ends the server and every connection. */
export async function end(server: Server): Promise<void> {
  const close = new Promise((resolve) => server.close(resolve));
  const timer = setTimeout(() => server.closeAllConnections(), GRACE_MS);
  await close;
  clearTimeout(timer);
}

// Connection: HTTPS to the API server, with a token or a certificate, and deadlines.
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Agent, RequestOptions } from 'node:https';
import { https } from '../base/late-packages.js';
import type { Access } from './access.js';
import { ApiError, connectionError, statusError } from './api-error.js';

export interface HttpRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path with its query. */
  readonly path: string;
  readonly body?: object | undefined;
  readonly contentType?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

// A connection that is idle for longer is closed: none is kept between rare publications.
const IDLE_MS = 15_000;
// The kernel detects a vanished peer with this, without a timer here.
const KEEPALIVE_MS = 30_000;
const LARGEST_BODY = 8 * 2 ** 20;

export class Connection {
  readonly #url: URL;
  readonly #access: Access;
  readonly #deadlineMs: number;
  // One agent for requests, and one for watches, which keep their connections.
  readonly #agent: Agent;
  readonly #streams: Agent;

  constructor(access: Access, deadlineMs: number) {
    this.#url = new URL(access.url);
    this.#access = access;
    this.#deadlineMs = deadlineMs;
    const { Agent } = https();
    this.#agent = new Agent({ keepAlive: true, maxSockets: 4, maxFreeSockets: 1, timeout: IDLE_MS });
    this.#streams = new Agent({ keepAlive: false });
  }

  /**
   * Sends a request, and returns the object in the answer.
   * @throws ApiError
   */
  async ask(request: HttpRequest): Promise<object> {
    return this.#authorized(request, async (token) => {
      const { response, end } = await this.#send(request, token, this.#agent);
      try {
        return await bodyOf(request, response);
      } finally {
        end();
      }
    });
  }

  /**
   * The bytes of the answer as they arrive. A server that has not ended the answer after
   * `longestMs` counts as hung.
   * @throws ApiError, also while it is read
   */
  async *stream(request: HttpRequest, longestMs: number): AsyncGenerator<Uint8Array, void, undefined> {
    const { response, end, fail } = await this.#authorized(request, async (token) => {
      const exchange = await this.#send(request, token, this.#streams);
      if (exchange.response.statusCode === 200) return exchange;
      try {
        throw await bodyOf(request, exchange.response).then(() => unexpected(request, exchange.response));
      } finally {
        exchange.end();
      }
    });
    response.socket.setKeepAlive(true, KEEPALIVE_MS);
    const timer = setTimeout(() => fail(late(request, longestMs)), longestMs).unref();
    try {
      yield* response as AsyncIterable<Uint8Array>;
    } catch (error) {
      throw error instanceof ApiError ? error : connectionError(nameOf(request), error as Error);
    } finally {
      clearTimeout(timer);
      end();
      response.destroy();
    }
  }

  close(): void {
    this.#agent.destroy();
    this.#streams.destroy();
  }

  // The file may already have a token that was just rotated.
  async #authorized<T>(request: HttpRequest, attempt: (token: string | undefined) => Promise<T>): Promise<T> {
    const token = this.#access.token?.read();
    try {
      return await attempt(token);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'ERR_API_UNAUTHORIZED') throw error;
      const other = this.#access.token?.readAgain();
      if (other === token || request.signal?.aborted) throw error;
      return attempt(other);
    }
  }

  // Resolves with the head of the answer. Call `end` once the body has been read, or is not needed.
  #send(request: HttpRequest, token: string | undefined, agent: Agent): Promise<Sent> {
    const { method, path, body, contentType = 'application/json', signal } = request;
    const text = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const { ca, client } = this.#access;
    const secrets = {
      ...(ca && { ca: ca.read() }),
      ...(client && { cert: client.certificate.read(), key: client.key.read() }),
    };
    return new Promise((resolve, reject) => {
      const headers = headersOf(token, text, contentType);
      const clientRequest = this.#request(path, { method, agent, ...secrets, headers });
      let answer: IncomingMessage | undefined;
      // The reader of the answer must see this error, not that of the connection that it ends.
      const fail = (error: ApiError) => {
        answer?.destroy(error);
        clientRequest.destroy(error);
      };
      const abort = () => fail(new ApiError('ERR_API_UNREACHABLE', `${nameOf(request)}: it was aborted`));
      const timer = setTimeout(() => fail(late(request, this.#deadlineMs)), this.#deadlineMs);
      const end = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      };
      signal?.addEventListener('abort', abort);
      clientRequest.on('error', (error) => {
        end();
        reject(error instanceof ApiError ? error : connectionError(nameOf(request), error));
      });
      clientRequest.on('response', (response) => {
        // A stream has its own deadline.
        if (agent === this.#streams) clearTimeout(timer);
        answer = response;
        resolve({ response, end, fail });
      });
      clientRequest.end(text);
      if (signal?.aborted) abort();
    });
  }

  // Throws immediately for what cannot be sent or used.
  #request(path: string, options: RequestOptions): ClientRequest {
    try {
      return https().request(new URL(path, this.#url), options);
    } catch (cause) {
      const message = `the token or the CA cannot be used: ${(cause as Error).message}`;
      const valid = 'a bearer token of one line, and certificates in PEM form';
      throw new ApiError('ERR_API_CREDENTIALS', message, { cause, valid });
    }
  }
}

const headersOf = (token: string | undefined, body: Buffer | undefined, contentType: string) => ({
  ...(token !== undefined && { authorization: `Bearer ${token}` }),
  accept: 'application/json',
  'user-agent': 'numalign-node',
  ...(body && { 'content-type': contentType, 'content-length': body.length }),
});

interface Sent {
  readonly response: IncomingMessage;
  readonly end: () => void;
  readonly fail: (error: ApiError) => void;
}

const nameOf = ({ method, path }: HttpRequest) => `${method} ${path.split('?')[0]}`;

const late = (request: HttpRequest, ms: number) =>
  new ApiError('ERR_API_TIMEOUT', `${nameOf(request)}: no answer in ${ms} ms`, { value: ms });

const unexpected = (request: HttpRequest, { statusCode }: IncomingMessage) =>
  new ApiError('ERR_API_ANSWER', `${nameOf(request)}: HTTP ${statusCode}`, { value: statusCode });

async function bodyOf(request: HttpRequest, response: IncomingMessage): Promise<object> {
  const { statusCode: status = 0, headers } = response;
  const text = await textOf(request, response);
  const value = objectOf(text);
  if (status < 200 || status > 299) throw statusError(nameOf(request), status, value, headers['retry-after']);
  if (value) return value;
  throw new ApiError('ERR_API_ANSWER', `${nameOf(request)}: the answer is not a JSON object`, {
    value: text.slice(0, 80),
  });
}

async function textOf(request: HttpRequest, response: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let length = 0;
  try {
    for await (const part of response as AsyncIterable<Buffer>) {
      length += part.length;
      if (length > LARGEST_BODY)
        throw new ApiError('ERR_API_ANSWER', `${nameOf(request)}: more than ${LARGEST_BODY} bytes`, {
          valid: LARGEST_BODY,
        });
      parts.push(part);
    }
  } catch (error) {
    throw error instanceof ApiError ? error : connectionError(nameOf(request), error as Error);
  }
  return Buffer.concat(parts).toString('utf8');
}

function objectOf(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

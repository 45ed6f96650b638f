// A server that answers as a test decides, over TLS with a throwaway CA.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { ApiServer, type ApiServerOptions } from '../../lib/api-server/api-server.js';

export interface Pki {
  readonly folder: string;
  readonly caFile: string;
  readonly key: Buffer;
  readonly certificate: Buffer;
}

const openssl = (...words: string[]) =>
  execFileSync('openssl', words, { stdio: ['ignore', 'ignore', 'pipe'] });

/** A CA, and a certificate of it for the names given. */
export function makePki(names = 'IP:127.0.0.1', folder = mkdtempSync(join(tmpdir(), 'numalign-pki-'))): Pki {
  const at = (name: string) => join(folder, name);
  const key = (name: string) => [
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-keyout',
    at(name),
  ];
  openssl('req', '-x509', ...key('ca.key'), '-subj', '/CN=ca', '-days', '2', '-out', at('ca.crt'));
  openssl('req', ...key('server.key'), '-subj', '/CN=server', '-out', at('server.csr'));
  writeFileSync(at('extensions'), `subjectAltName=${names}\n`);
  const ca = ['-CA', at('ca.crt'), '-CAkey', at('ca.key'), '-CAcreateserial'];
  openssl(
    'x509',
    '-req',
    '-in',
    at('server.csr'),
    ...ca,
    '-days',
    '2',
    '-extfile',
    at('extensions'),
    '-out',
    at('server.crt'),
  );
  const [serverKey, certificate] = [readFileSync(at('server.key')), readFileSync(at('server.crt'))];
  return { folder, caFile: at('ca.crt'), key: serverKey, certificate };
}

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly at: number;
}

export type Handler = (seen: Seen, answer: ServerResponse) => unknown;

export class FakeServer {
  readonly seen: Seen[] = [];
  readonly tokenFile: string;
  connections = 0;
  readonly sockets = new Set<Socket>();
  readonly #pki: Pki;
  #server: Server;
  #port = 0;
  #waiting: (() => void)[] = [];

  private constructor(
    pki: Pki,
    tokenFile: string,
    public handler: Handler,
  ) {
    this.#pki = pki;
    this.tokenFile = tokenFile;
    this.#server = this.#make();
  }

  static async open(pki: Pki, handler: Handler): Promise<FakeServer> {
    const folder = mkdtempSync(join(tmpdir(), 'numalign-token-'));
    const tokenFile = join(folder, 'token');
    writeFileSync(tokenFile, 'first\n');
    const fake = new FakeServer(pki, tokenFile, handler);
    onTestFinished(async () => {
      await fake.stop();
      rmSync(folder, { recursive: true, force: true });
    });
    await fake.start();
    return fake;
  }

  #make(): Server {
    const { key, certificate: cert } = this.#pki;
    return createServer({ key, cert }, async (request, answer) => {
      const url = new URL(request.url!, 'https://server');
      let body = '';
      try {
        for await (const part of request) body += part;
      } catch {
        return;
      }
      const { method = '', headers } = request;
      const seen = {
        method,
        path: url.pathname,
        query: url.searchParams,
        headers,
        body,
        at: performance.now(),
      };
      this.seen.push(seen);
      await this.handler(seen, answer);
      for (const wake of this.#waiting.splice(0)) wake();
    })
      .on('connection', (socket: Socket) => {
        this.connections++;
        this.sockets.add(socket);
        socket.on('close', () => this.sockets.delete(socket));
        socket.on('error', () => {});
      })
      .on('tlsClientError', () => {});
  }

  get url(): string {
    return `https://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    if (this.#server.listening) return;
    this.#server = this.#make();
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Like a killed server: connections break. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }

  /** Resolves once a condition holds, checked after each request. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** A client of this server. */
  client(options: ApiServerOptions = {}): ApiServer {
    const { url, tokenFile } = this;
    const client = new ApiServer({ url, caFile: this.#pki.caFile, tokenFile, ...options });
    onTestFinished(() => client.close());
    return client;
  }
}

/** Answers with JSON. */
export function json(
  answer: ServerResponse,
  value: unknown,
  status = 200,
  headers: Record<string, string> = {},
): void {
  answer.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
}

/** Answers with a refusal in Kubernetes' form. */
export function refuse(
  answer: ServerResponse,
  code: number,
  message: string,
  headers: Record<string, string> = {},
): void {
  json(answer, { kind: 'Status', apiVersion: 'v1', status: 'Failure', message, code }, code, headers);
}

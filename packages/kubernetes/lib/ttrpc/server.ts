// TtrpcServer: answers calls over one connection of a Mux. Only unary calls: NRI has no others.
import { Channel } from './channel.js';
import { decodeRequest, encodeAnswer, encodeStatus, type Request } from './codec.js';
import { DATA, type Frame, MESSAGE_LIMIT, REQUEST, RESPONSE } from './frame.js';
import type { Mux } from './mux.js';
import { Status, StatusError, statusOf } from './status.js';

export interface Call {
  /** The milliseconds in which the peer wants its answer; undefined if it did not say. */
  readonly timeout: number | undefined;
  /** Aborted when the connection ends: the answer is no longer needed. */
  readonly signal: AbortSignal;
}

/** Takes and returns a message's bytes. What it throws is the answer: see StatusError. */
export type Handler = (payload: Uint8Array, call: Call) => Promise<Uint8Array> | Uint8Array;

/** Handlers by the service's full name, then the method's. */
export type Services = Readonly<Record<string, Readonly<Record<string, Handler>>>>;

// Limits for requests without an answer. A runtime has a few; more are answered with
// RESOURCE_EXHAUSTED.
const CALLS = 256;
const CALL_BYTES = 16 << 20;

const REMOTE_OPEN = 2;

/**
 * Calls handlers in the order of the requests, without waiting for the one before. Like ttrpc's own
 * server, it answers a faulty request with an error, and skips a frame of an unknown type.
 */
export class TtrpcServer {
  private readonly channel: Channel;
  private readonly handlers: Map<string, Map<string, Handler>>;
  private readonly abort = new AbortController();
  private lastStream = 0;
  private calls = 0;
  private callBytes = 0;

  constructor(mux: Mux, connection: number, services: Services) {
    this.handlers = new Map(
      Object.entries(services).map(([name, methods]) => [name, new Map(Object.entries(methods))]),
    );
    this.channel = new Channel(mux, connection, (frame) => this.receive(frame));
    mux.closed.then((reason) => this.abort.abort(reason));
  }

  private receive(frame: Frame): void {
    if (frame.type !== REQUEST && frame.type !== DATA) return;
    try {
      const request = this.admit(frame);
      void this.answer(frame.stream, frame.message!.length, request);
    } catch (error) {
      this.refuse(frame.stream, error);
    }
  }

  private admit({ stream, type, flags, message }: Frame): Request {
    const invalid = (flaw: string) => new StatusError(Status.INVALID_ARGUMENT, flaw);
    if (stream % 2 === 0) throw invalid(`stream ${stream} is even: a caller's streams are odd`);
    if (type === DATA) throw invalid(`stream ${stream} takes no data: it is not open`);
    if (stream <= this.lastStream)
      throw invalid(`stream ${stream} comes after ${this.lastStream}: streams must rise`);
    this.lastStream = stream;
    if (!message) throw exhausted(`a request is larger than ${MESSAGE_LIMIT} bytes`);
    if (flags & REMOTE_OPEN) throw new StatusError(Status.UNIMPLEMENTED, 'streams are not served');
    if (this.calls >= CALLS) throw exhausted(`${this.calls} requests are waiting for their answers`);
    if (this.callBytes + message.length > CALL_BYTES)
      throw exhausted(`requests of ${this.callBytes} bytes are waiting for their answers`);
    try {
      return decodeRequest(message);
    } catch (error) {
      throw invalid(`the request cannot be read: ${(error as Error).message}`);
    }
  }

  private async answer(stream: number, size: number, request: Request): Promise<void> {
    this.calls += 1;
    this.callBytes += size;
    try {
      const payload = await this.handle(request);
      this.channel.send(stream, RESPONSE, encodeAnswer(payload));
    } catch (error) {
      this.refuse(stream, error);
    } finally {
      this.calls -= 1;
      this.callBytes -= size;
    }
  }

  private handle({ service, method, payload, timeout_nano }: Request): Promise<Uint8Array> | Uint8Array {
    const handler = this.handlers.get(service)?.get(method);
    if (!handler) throw new StatusError(Status.UNIMPLEMENTED, `${service}/${method} is not served`);
    const timeout = timeout_nano > 0 ? timeout_nano / 1e6 : undefined;
    return handler(payload, { timeout, signal: this.abort.signal });
  }

  private refuse(stream: number, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    this.channel.send(stream, RESPONSE, encodeStatus(statusOf(error), message));
  }
}

function exhausted(flaw: string): StatusError {
  return new StatusError(Status.RESOURCE_EXHAUSTED, flaw);
}

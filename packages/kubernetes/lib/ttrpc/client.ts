// TtrpcClient: makes calls over one connection of a Mux.
import { NodeError } from '../base/errors.js';
import { Channel } from './channel.js';
import { decodeResponse, encodeRequest, type Response } from './codec.js';
import { type Frame, MESSAGE_LIMIT, REQUEST, RESPONSE } from './frame.js';
import type { Mux } from './mux.js';
import { StatusError } from './status.js';

export interface CallOptions {
  /** In milliseconds; also sent to the peer. */
  readonly timeout: number;
  readonly signal?: AbortSignal;
}

interface Caller {
  readonly resolve: (payload: Uint8Array) => void;
  readonly reject: (error: unknown) => void;
}

const STREAM_END = 2 ** 32;

/**
 * Answers may arrive in any order. An answer without a call is skipped: the peer may answer a call
 * that has timed out here.
 */
export class TtrpcClient {
  private readonly channel: Channel;
  private readonly callers = new Map<number, Caller>();
  private stream = 1;
  private end: NodeError | undefined;

  constructor(mux: Mux, connection: number) {
    this.channel = new Channel(mux, connection, (frame) => this.receive(frame));
    mux.closed.then((reason) => {
      this.end = reason ?? new NodeError('ERR_TTRPC_CLOSED', 'ttrpc: the connection is closed');
      for (const caller of [...this.callers.values()]) caller.reject(this.end);
    });
  }

  /**
   * @returns the answer's payload
   * @throws StatusError ERR_TTRPC_STATUS if the peer answers with one; NodeError ERR_TTRPC_TIMEOUT,
   *   ERR_TTRPC_SIZE (a request larger than a message may be), ERR_TTRPC_ANSWER (an unreadable
   *   answer), or why the mux is closed; the signal's reason
   */
  call(service: string, method: string, payload: Uint8Array, options: CallOptions): Promise<Uint8Array> {
    const { timeout, signal } = options;
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      if (this.end) throw this.end;
      const timeout_nano = Math.ceil(timeout * 1e6);
      const request = encodeRequest({ service, method, payload, timeout_nano });
      if (request.length > MESSAGE_LIMIT) throw tooLarge(method, request.length);
      const stream = this.nextStream();
      const abort = () => caller.reject(signal?.reason);
      const timer = setTimeout(() => caller.reject(timedOut(method, timeout)), timeout);
      const settle = () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        this.callers.delete(stream);
      };
      const caller: Caller = {
        resolve: (bytes) => {
          settle();
          resolve(bytes);
        },
        reject: (error) => {
          settle();
          reject(error);
        },
      };
      signal?.addEventListener('abort', abort, { once: true });
      this.callers.set(stream, caller);
      this.channel.send(stream, REQUEST, request);
    });
  }

  private nextStream(): number {
    const stream = this.stream;
    if (stream >= STREAM_END) {
      const end = new NodeError('ERR_TTRPC_STREAMS', 'ttrpc: the connection has no stream left');
      this.channel.mux.close(end);
      throw end;
    }
    this.stream += 2;
    return stream;
  }

  private receive({ stream, type, message }: Frame): void {
    const caller = this.callers.get(stream);
    if (!caller || type !== RESPONSE) return;
    try {
      const { status, payload } = message ? decodeResponse(message) : oversized();
      if (status && status.code !== 0) caller.reject(new StatusError(status.code, status.message));
      else caller.resolve(payload);
    } catch (cause) {
      const flaw = `ttrpc: an answer cannot be read: ${(cause as Error).message}`;
      caller.reject(new NodeError('ERR_TTRPC_ANSWER', flaw, { cause }));
    }
  }
}

function oversized(): Response {
  throw new RangeError(`it is larger than ${MESSAGE_LIMIT} bytes`);
}

function tooLarge(method: string, size: number): NodeError {
  const valid = `at most ${MESSAGE_LIMIT} bytes`;
  return new NodeError('ERR_TTRPC_SIZE', `ttrpc: the request ${method} has ${size} bytes`, {
    value: size,
    valid,
  });
}

function timedOut(method: string, timeout: number): NodeError {
  const message = `ttrpc: no answer to ${method} within ${timeout} ms`;
  return new NodeError('ERR_TTRPC_TIMEOUT', message, {
    value: method,
    valid: `an answer within ${timeout} ms`,
  });
}

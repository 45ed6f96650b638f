// Mux: several connections over one socket, as NRI uses them.
import type { Socket } from 'node:net';
import { NodeError } from '../base/errors.js';
import { MUX_HEADER, MuxReader } from './mux-reader.js';

// containerd's reader reads the first frame of a message whole into a buffer of 4096 bytes, and
// ends the connection if the frame is larger. It reads the rest of a message into place.
const FIRST_FRAME = 4096;
const NEXT_FRAME = 4 << 20;

export interface MuxLimits {
  /** The most bytes that may wait for the peer to read them; more close the connection. */
  readonly queue: number;
  /** The milliseconds that the peer has to read what waits. */
  readonly stall: number;
}

const LIMITS: MuxLimits = { queue: 16 << 20, stall: 5000 };

/**
 * Owns the socket. Frames for a connection without a listener are skipped. While answers wait for a
 * slow peer, nothing more is read from it.
 */
export class Mux {
  /**
   * Why the connection has ended: undefined after `close()`, else a NodeError: ERR_TTRPC_MUX or
   * ERR_TTRPC_FRAME (bytes outside of the protocol), ERR_TTRPC_CLOSED (the peer closed it),
   * ERR_TTRPC_SOCKET (an error of the socket, in `cause`), ERR_TTRPC_STALLED (the peer does not
   * read), or the argument of `close`.
   */
  readonly closed: Promise<NodeError | undefined>;
  private readonly limits: MuxLimits;
  private readonly reader = new MuxReader((id, bytes) => this.listeners.get(id)?.(bytes));
  private readonly listeners = new Map<number, (bytes: Buffer) => void>();
  private resolveClosed!: (reason: NodeError | undefined) => void;
  private isClosed = false;
  private writes = 0;
  private stall: NodeJS.Timeout | undefined;

  constructor(
    private readonly socket: Socket,
    limits: Partial<MuxLimits> = {},
  ) {
    this.limits = { ...LIMITS, ...limits };
    this.closed = new Promise((resolve) => {
      this.resolveClosed = resolve;
    });
    socket.on('data', (bytes: Buffer) => this.read(bytes));
    socket.on('drain', () => socket.resume());
    socket.on('error', (error) => this.endOfSocket(error));
    socket.on('close', () => this.endOfPeer());
    socket.on('end', () => this.endOfPeer());
  }

  /** `receive` gets the connection's bytes as they arrive. If it throws, the socket is closed. */
  listen(id: number, receive: (bytes: Buffer) => void): void {
    this.listeners.set(id, receive);
  }

  /** Sends a message of the connection. A closed connection drops it. */
  send(id: number, message: Buffer): void {
    if (this.isClosed) return;
    if (this.socket.writableLength + message.length > this.limits.queue) {
      const waiting = this.socket.writableLength;
      this.fail('ERR_TTRPC_STALLED', `the peer leaves ${waiting} bytes unread`, {
        value: waiting,
        valid: `at most ${this.limits.queue} bytes`,
      });
      return;
    }
    this.socket.cork();
    for (let at = 0; at < message.length || at === 0; ) {
      const part = message.subarray(at, at + (at === 0 ? FIRST_FRAME : NEXT_FRAME));
      this.write(id, part);
      at += part.length;
    }
    this.socket.uncork();
    if (this.socket.writableNeedDrain) this.socket.pause();
  }

  /** Ends the connection at once; waiting bytes are lost. */
  close(reason?: NodeError): void {
    if (this.isClosed) return;
    this.isClosed = true;
    clearTimeout(this.stall);
    this.socket.destroy();
    this.listeners.clear();
    this.resolveClosed(reason);
  }

  private write(id: number, part: Buffer): void {
    const header = Buffer.alloc(MUX_HEADER);
    header.writeUInt32BE(id, 0);
    header.writeUInt32BE(part.length, 4);
    this.writes += 2;
    this.stall ??= setTimeout(() => this.stalled(), this.limits.stall).unref();
    const onWritten = () => this.written();
    this.socket.write(header, onWritten);
    this.socket.write(part, onWritten);
  }

  private written(): void {
    this.writes -= 1;
    if (this.writes > 0) {
      this.stall?.refresh();
    } else {
      clearTimeout(this.stall);
      this.stall = undefined;
    }
  }

  private stalled(): void {
    this.fail('ERR_TTRPC_STALLED', `the peer has not read what waits for ${this.limits.stall} ms`, {
      value: this.socket.writableLength,
      valid: `a peer that reads within ${this.limits.stall} ms`,
    });
  }

  private read(bytes: Buffer): void {
    try {
      if (!this.isClosed) this.reader.push(bytes);
    } catch (error) {
      if (error instanceof NodeError) this.close(error);
      else
        this.fail('ERR_TTRPC_FRAME', `a frame cannot be handled: ${(error as Error).message}`, {
          cause: error,
        });
    }
  }

  private endOfSocket(cause: NodeJS.ErrnoException): void {
    if (cause.code === 'EPIPE' || cause.code === 'ECONNRESET') this.endOfPeer();
    else this.fail('ERR_TTRPC_SOCKET', `the connection failed: ${cause.message}`, { cause });
  }

  private endOfPeer(): void {
    const place = this.reader.isWithinFrame ? 'in the middle of a frame' : 'the connection';
    this.fail('ERR_TTRPC_CLOSED', `the peer closed ${place}`);
  }

  private fail(
    code: string,
    message: string,
    details: ConstructorParameters<typeof NodeError>[2] = {},
  ): void {
    this.close(new NodeError(code, `ttrpc: ${message}`, details));
  }
}

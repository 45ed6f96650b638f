// Frame: the frames of ttrpc: 10 bytes (length, stream, type, flags; big endian), then the message.
import { NodeError } from '../base/errors.js';
import { MessageBuffer } from './message-buffer.js';

export const REQUEST = 1;
export const RESPONSE = 2;
export const DATA = 3;

/** A larger message is refused, and not read. */
export const MESSAGE_LIMIT = 4 << 20;

export const FRAME_HEADER = 10;
// The protocol reserves the first byte of a frame: bytes that have it set are not ttrpc.
const LENGTH_END = 1 << 24;

/** `message` is undefined if it is larger than MESSAGE_LIMIT: its bytes are skipped. */
export interface Frame {
  readonly stream: number;
  readonly type: number;
  readonly flags: number;
  readonly message: Buffer | undefined;
}

export function frameHeader(length: number, stream: number, type: number): Buffer {
  const header = Buffer.alloc(FRAME_HEADER);
  header.writeUInt32BE(length, 0);
  header.writeUInt32BE(stream, 4);
  header[8] = type;
  return header;
}

/** Cuts a stream of bytes into frames, whatever its parts. */
export class FrameReader {
  private readonly header = Buffer.alloc(FRAME_HEADER);
  private headerLength = 0;
  private message: MessageBuffer | undefined;
  private skipped = 0;

  /** `receive` gets each frame once it is complete, in the stream's order. */
  constructor(private readonly receive: (frame: Frame) => void) {}

  /** Whether a frame has begun but not ended. */
  get isWithinFrame(): boolean {
    return this.headerLength > 0;
  }

  /**
   * @throws NodeError ERR_TTRPC_FRAME: the peer does not speak ttrpc, and nothing more can be read
   */
  push(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      rest = this.headerLength < FRAME_HEADER ? this.readHeader(rest) : this.readMessage(rest);
    }
  }

  private readHeader(bytes: Buffer): Buffer {
    const count = Math.min(bytes.length, FRAME_HEADER - this.headerLength);
    bytes.copy(this.header, this.headerLength, 0, count);
    this.headerLength += count;
    if (this.headerLength === FRAME_HEADER) this.begin();
    return bytes.subarray(count);
  }

  private begin(): void {
    const length = this.header.readUInt32BE(0);
    if (length >= LENGTH_END) {
      throw new NodeError('ERR_TTRPC_FRAME', `ttrpc: a frame has a length of ${length} bytes`, {
        value: length,
        valid: `at most ${MESSAGE_LIMIT} bytes`,
      });
    }
    if (length > MESSAGE_LIMIT) this.skipped = length;
    else if (length === 0) this.end(Buffer.alloc(0));
    else this.message = new MessageBuffer(length);
  }

  private readMessage(bytes: Buffer): Buffer {
    if (!this.message) return this.skip(bytes);
    const rest = this.message.push(bytes);
    if (this.message.isComplete) this.end(this.message.bytes);
    return rest;
  }

  private skip(bytes: Buffer): Buffer {
    const count = Math.min(bytes.length, this.skipped);
    this.skipped -= count;
    if (this.skipped === 0) this.end(undefined);
    return bytes.subarray(count);
  }

  private end(message: Buffer | undefined): void {
    this.headerLength = 0;
    this.message = undefined;
    const [stream, type, flags] = [this.header.readUInt32BE(4), this.header[8]!, this.header[9]!];
    this.receive({ stream, type, flags, message });
  }
}

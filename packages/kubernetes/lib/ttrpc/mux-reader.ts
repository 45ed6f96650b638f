// MuxReader: splits a multiplexed stream. A frame is 8 bytes (connection, length; big endian), then
// bytes of that connection. The limits of frames say nothing about messages.
import { NodeError } from '../base/errors.js';

export const MUX_HEADER = 8;
/** A larger frame is refused. */
export const MUX_PAYLOAD_LIMIT = 16 << 20;

/** Keeps only the header: each part is passed on as it arrives. */
export class MuxReader {
  private readonly header = Buffer.alloc(MUX_HEADER);
  private headerLength = 0;
  private missing = 0;

  constructor(private readonly receive: (connection: number, bytes: Buffer) => void) {}

  /** Whether a frame has begun but not ended. */
  get isWithinFrame(): boolean {
    return this.headerLength > 0;
  }

  /** @throws NodeError ERR_TTRPC_MUX if the length exceeds the protocol's limit */
  push(bytes: Buffer): void {
    let rest = bytes;
    while (rest.length > 0) {
      rest = this.headerLength < MUX_HEADER ? this.readHeader(rest) : this.readPayload(rest);
    }
  }

  private readHeader(bytes: Buffer): Buffer {
    const count = Math.min(bytes.length, MUX_HEADER - this.headerLength);
    bytes.copy(this.header, this.headerLength, 0, count);
    this.headerLength += count;
    if (this.headerLength === MUX_HEADER) this.begin();
    return bytes.subarray(count);
  }

  private begin(): void {
    this.missing = this.header.readUInt32BE(4);
    if (this.missing > MUX_PAYLOAD_LIMIT) {
      throw new NodeError('ERR_TTRPC_MUX', `ttrpc: a multiplexed frame has ${this.missing} bytes`, {
        value: this.missing,
        valid: `at most ${MUX_PAYLOAD_LIMIT} bytes`,
      });
    }
    if (this.missing === 0) this.headerLength = 0;
  }

  private readPayload(bytes: Buffer): Buffer {
    const part = bytes.subarray(0, this.missing);
    this.missing -= part.length;
    if (this.missing === 0) this.headerLength = 0;
    this.receive(this.header.readUInt32BE(0), part);
    return bytes.subarray(part.length);
  }
}

// MessageBuffer: a message of known length, collected from parts.

// The cost of a message before its bytes arrive: a peer that only announces a length gets no more.
const INITIAL_SIZE = 64 << 10;

/**
 * Copies every byte at most twice, however small the parts are. Reserves at most twice what has
 * arrived, or 64 KiB. Does not copy a message within one part at all.
 */
export class MessageBuffer {
  private buffer: Buffer = Buffer.alloc(0);
  private size = 0;

  constructor(private readonly length: number) {}

  get isComplete(): boolean {
    return this.size === this.length;
  }

  /** The message, once it is complete. */
  get bytes(): Buffer {
    return this.buffer;
  }

  /** Takes the bytes that belong to the message, and returns the rest. */
  push(part: Buffer): Buffer {
    const count = Math.min(part.length, this.length - this.size);
    if (count === this.length) {
      this.buffer = part.subarray(0, count);
    } else {
      this.reserve(this.size + count);
      part.copy(this.buffer, this.size, 0, count);
    }
    this.size += count;
    return part.subarray(count);
  }

  private reserve(least: number): void {
    if (least <= this.buffer.length) return;
    const size = Math.min(this.length, Math.max(least, INITIAL_SIZE, 2 * this.buffer.length));
    const larger = Buffer.allocUnsafeSlow(size);
    this.buffer.copy(larger, 0, 0, this.size);
    this.buffer = larger;
  }
}

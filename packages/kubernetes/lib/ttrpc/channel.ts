// Channel: ttrpc's frames on one connection of a Mux.
import { FRAME_HEADER, type Frame, FrameReader, frameHeader } from './frame.js';
import type { Mux } from './mux.js';

export class Channel {
  /**
   * @param receive gets each frame in the order of arrival
   * Bytes that are not frames close the mux with ERR_TTRPC_FRAME.
   */
  constructor(
    readonly mux: Mux,
    private readonly id: number,
    receive: (frame: Frame) => void,
  ) {
    const reader = new FrameReader(receive);
    mux.listen(id, (bytes) => reader.push(bytes));
  }

  /** `message`: at most MESSAGE_LIMIT bytes. */
  send(stream: number, type: number, message: Uint8Array): void {
    const header = frameHeader(message.length, stream, type);
    this.mux.send(this.id, Buffer.concat([header, message], FRAME_HEADER + message.length));
  }
}

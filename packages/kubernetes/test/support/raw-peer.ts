// A peer that writes any bytes: frames of ttrpc in frames of the mux.
import type { Socket } from 'node:net';
import protobuf from 'protobufjs';

const { root } = protobuf.parse(
  `syntax = "proto3";
  message Request { string service = 1; string method = 2; bytes payload = 3; int64 timeout_nano = 4; }
  message Response { Status status = 1; bytes payload = 2; }
  message Status { int32 code = 1; string message = 2; }`,
  { keepCase: true },
);

export interface RawFrame {
  connection: number;
  stream: number;
  type: number;
  flags: number;
  message: Buffer;
}

export function request(
  service: string,
  method: string,
  payload = Buffer.alloc(0),
  timeout_nano = 0,
): Buffer {
  return Buffer.from(root.lookupType('Request').encode({ service, method, payload, timeout_nano }).finish());
}

export function response(payload: Uint8Array): Buffer {
  return Buffer.from(root.lookupType('Response').encode({ payload }).finish());
}

export function refusal(code: number, message: string): Buffer {
  return Buffer.from(root.lookupType('Response').encode({ status: { code, message } }).finish());
}

export function readResponse(message: Buffer): {
  status?: { code: number; message: string };
  payload: Buffer;
} {
  const read = root.lookupType('Response').decode(message);
  return { payload: Buffer.alloc(0), ...root.lookupType('Response').toObject(read, { longs: Number }) };
}

export function readRequest(message: Buffer): Record<string, any> {
  return root.lookupType('Request').toObject(root.lookupType('Request').decode(message), { longs: Number });
}

export function mux(connection: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(connection, 0);
  header.writeUInt32BE(payload.length, 4);
  return Buffer.concat([header, payload]);
}

export function frame(stream: number, type: number, message: Uint8Array, flags = 0): Buffer {
  const header = Buffer.alloc(10);
  header.writeUInt32BE(message.length, 0);
  header.writeUInt32BE(stream, 4);
  header[8] = type;
  header[9] = flags;
  return Buffer.concat([header, message]);
}

/** Splits a whole stream by the lengths at `offset` of headers of `size` bytes. */
export function split(bytes: Buffer, size: number, offset: number): { frames: Buffer[]; rest: Buffer } {
  const frames: Buffer[] = [];
  let rest = bytes;
  while (rest.length >= size && rest.length >= size + rest.readUInt32BE(offset)) {
    const end = size + rest.readUInt32BE(offset);
    frames.push(rest.subarray(0, end));
    rest = rest.subarray(end);
  }
  return { frames, rest };
}

/** Reads only on request. */
export class RawPeer {
  /** Sizes of the mux frames that came, by the payload. */
  readonly muxFrames: number[] = [];
  private readonly frames: RawFrame[] = [];
  private readonly waiting: ((frame: RawFrame) => void)[] = [];
  private bytes = Buffer.alloc(0);
  private readonly streams = new Map<number, Buffer>();

  constructor(readonly socket: Socket) {
    socket.on('error', () => {});
    socket.pause();
  }

  /** Frames in the order in which they came. */
  next(): Promise<RawFrame> {
    if (this.socket.listenerCount('data') === 0) this.socket.on('data', (bytes: Buffer) => this.read(bytes));
    this.socket.resume();
    const known = this.frames.shift();
    if (known) return Promise.resolve(known);
    return new Promise((resolve) => this.waiting.push(resolve));
  }

  send(connection: number, stream: number, type: number, message: Uint8Array, flags = 0): void {
    this.socket.write(mux(connection, frame(stream, type, message, flags)));
  }

  private read(bytes: Buffer): void {
    const { frames, rest } = split(Buffer.concat([this.bytes, bytes]), 8, 4);
    this.bytes = Buffer.from(rest);
    for (const each of frames) {
      const connection = each.readUInt32BE(0);
      this.muxFrames.push(each.length - 8);
      const before = this.streams.get(connection) ?? Buffer.alloc(0);
      const messages = split(Buffer.concat([before, each.subarray(8)]), 10, 0);
      this.streams.set(connection, Buffer.from(messages.rest));
      for (const found of messages.frames) this.deliver(connection, found);
    }
  }

  private deliver(connection: number, bytes: Buffer): void {
    const found = {
      connection,
      stream: bytes.readUInt32BE(4),
      type: bytes[8]!,
      flags: bytes[9]!,
      message: Buffer.from(bytes.subarray(10)),
    };
    const next = this.waiting.shift();
    if (next) next(found);
    else this.frames.push(found);
  }
}

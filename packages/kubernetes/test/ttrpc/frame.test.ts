import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Frame, FrameReader, frameHeader, MESSAGE_LIMIT } from '../../lib/ttrpc/frame.js';
import { MessageBuffer } from '../../lib/ttrpc/message-buffer.js';
import { frame } from '../support/raw-peer.js';

/** A reader's result for these parts. */
function framesOf(parts: Buffer[]): { frames: Frame[]; reader: FrameReader } {
  const frames: Frame[] = [];
  const reader = new FrameReader((each) =>
    frames.push({ ...each, message: each.message && Buffer.from(each.message) }),
  );
  for (const part of parts) reader.push(part);
  return { frames, reader };
}

/** The bytes, cut at these places. */
function cut(bytes: Buffer, places: number[]): Buffer[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...ends].map((start, i) => bytes.subarray(start, ends[i] ?? bytes.length));
}

const anyFrame = fc.record({
  stream: fc.nat({ max: 2 ** 32 - 1 }),
  type: fc.nat({ max: 255 }),
  flags: fc.nat({ max: 255 }),
  message: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
});

test('frames are the same however the stream is cut', () => {
  fc.assert(
    fc.property(
      fc.array(anyFrame, { maxLength: 8 }),
      fc.array(fc.nat(), { maxLength: 60 }),
      (sent, places) => {
        const bytes = Buffer.concat(
          sent.map((each) => frame(each.stream, each.type, each.message, each.flags)),
        );
        const { frames, reader } = framesOf(cut(bytes, places));
        expect(frames).toEqual(sent);
        expect(reader.isWithinFrame).toBe(false);
      },
    ),
  );
});

test('a header that is written is read as it was', () => {
  const message = Buffer.from('abc');
  const { frames } = framesOf([frameHeader(3, 0xfffffffe, 2), message]);
  expect(frames).toEqual([{ stream: 0xfffffffe, type: 2, flags: 0, message }]);
});

test('a message of 4 MiB is read', () => {
  const message = Buffer.alloc(MESSAGE_LIMIT, 7);
  const { frames } = framesOf([frame(1, 1, message)]);
  expect(frames.length).toBe(1);
  expect(frames[0]!.message!.equals(message)).toBe(true);
});

test('a larger message is skipped, and the next one is read', () => {
  const large = frame(1, 1, Buffer.alloc(MESSAGE_LIMIT + 1));
  const { frames } = framesOf([large.subarray(0, 1000), large.subarray(1000), frame(3, 1, Buffer.from('x'))]);
  expect(frames).toEqual([
    { stream: 1, type: 1, flags: 0, message: undefined },
    { stream: 3, type: 1, flags: 0, message: Buffer.from('x') },
  ]);
});

test('a length of 16 MiB or more is no ttrpc', () => {
  const header = frameHeader(1 << 24, 1, 1);
  expect(() => framesOf([header])).toThrow(
    expect.objectContaining({
      code: 'ERR_TTRPC_FRAME',
      details: expect.objectContaining({ value: 1 << 24 }),
    }),
  );
});

test('a reader says whether a frame has begun', () => {
  expect(framesOf([frame(1, 1, Buffer.alloc(5)).subarray(0, 3)]).reader.isWithinFrame).toBe(true);
  expect(framesOf([frame(1, 1, Buffer.alloc(5)).subarray(0, 12)]).reader.isWithinFrame).toBe(true);
});

test('a message in single bytes is moved a few times, and never reserves more than twice the received bytes', () => {
  const message = new MessageBuffer(MESSAGE_LIMIT);
  const byte = Buffer.from([1]);
  const buffers = new Set<Buffer>();
  for (let size = 1; size <= MESSAGE_LIMIT; size += 1) {
    message.push(byte);
    buffers.add(message.bytes);
    if (message.bytes.length > Math.max(2 * size, 64 << 10))
      throw new Error(`${message.bytes.length} at ${size}`);
  }
  expect(message.isComplete).toBe(true);
  expect(buffers.size).toBe(7);
  expect(message.bytes.every((each) => each === 1)).toBe(true);
});

test('a message that is promised and does not come reserves 64 KiB', () => {
  const message = new MessageBuffer(MESSAGE_LIMIT);
  message.push(Buffer.from([1]));
  expect(message.bytes.length).toBe(64 << 10);
});

// Fields of a message, counted before anything is made of them.
import protobuf from 'protobufjs';

/**
 * How many fields the message has at its top, repeated ones one by one.
 * @throws Error, RangeError where the bytes are no message
 */
export function countFields(bytes: Uint8Array): number {
  const reader = protobuf.Reader.create(bytes);
  let count = 0;
  for (; reader.pos < reader.len; count += 1) {
    const tag = reader.uint32();
    reader.skipType(tag & 7, 0, tag >>> 3);
  }
  return count;
}

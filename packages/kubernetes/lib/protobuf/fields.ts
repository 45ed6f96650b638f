// Fields: counts the fields of a message before it is decoded.
import protobuf from 'protobufjs';

/**
 * The number of top-level fields in the message; each repeated one counts.
 * @throws Error, RangeError if the bytes are not a message
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

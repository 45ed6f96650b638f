// SaturatingWriter: 64-bit numbers beyond a field's range become the end of the range.
import protobuf from 'protobufjs';

const [INT64_MIN, INT64_END, UINT64_END] = [-(2 ** 63), 2 ** 63, 2 ** 64];

type Int64 = Parameters<protobuf.Writer['int64']>[0];

const LARGEST_INT64 = { low: -1, high: 0x7fffffff, unsigned: false } as Int64;
const LARGEST_UINT64 = { low: -1, high: -1, unsigned: true } as Int64;

/**
 * protobufjs would wrap a number of 2^63 around to -2^63. But a reader gets 2^63, the nearest
 * double, for 2^63 - 1, which means unlimited to runtimes.
 */
export class SaturatingWriter extends protobuf.BufferWriter {
  override int64(value: Int64): protobuf.Writer {
    if (typeof value !== 'number') return super.int64(value);
    return super.int64(value >= INT64_END ? LARGEST_INT64 : Math.max(value, INT64_MIN));
  }

  override uint64(value: Int64): protobuf.Writer {
    if (typeof value !== 'number') return super.uint64(value);
    return super.uint64(value >= UINT64_END ? LARGEST_UINT64 : Math.max(value, 0));
  }
}

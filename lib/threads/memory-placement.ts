// MemoryPlacement: the NUMA nodes that memory is on. See move_pages(2) and numa_maps in proc(5).
import { types } from 'node:util';
import { invalidOption } from '../base/check-options.js';
import { errnoName } from '../base/codes/errno.js';
import { native } from '../base/native.js';

/** The NUMA nodes that memory is on. Amounts are bytes. */
export interface MemoryPlacement {
  /** Bytes by node id. */
  readonly byNode: Readonly<Record<number, number>>;
  /** Bytes of a buffer that are on no node: not touched yet, or swapped out. */
  readonly absent: number;
  /** Bytes of a buffer for which the kernel names no node. */
  readonly unknown: number;
  /**
   * Where the answer comes from. `numa_maps` knows only whole mappings. null: no source answers.
   */
  readonly source: 'move_pages' | 'numa_maps' | null;
  /** Why there is no better source, such as `EPERM`; null if the best one answered. */
  readonly reason: string | null;
}

/** The bytes of a buffer, of any view or type. */
function bytesOf(buffer: ArrayBufferView | ArrayBufferLike): Uint8Array {
  try {
    if (ArrayBuffer.isView(buffer))
      return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
    if (types.isAnyArrayBuffer(buffer)) return new Uint8Array(buffer);
  } catch {
    // The buffer has been detached.
  }
  return invalidOption('buffer', buffer, 'an ArrayBuffer or a view of one');
}

/**
 * Says on which NUMA nodes memory is, as the kernel reports it: of a buffer (move_pages(2), else
 * /proc/self/numa_maps), or of the whole process (numa_maps, where memory that is mapped twice
 * counts twice). The time grows with the memory.
 * @throws ERR_INVALID_OPTION for a value that is not a buffer
 */
export function memoryPlacement(buffer?: ArrayBufferView | ArrayBufferLike): MemoryPlacement {
  const { byNode, absent, unknown, source, errno } = native.memoryPlacement(
    buffer === undefined ? undefined : bytesOf(buffer),
  );
  const entries = Array.from(
    { length: byNode.length / 2 },
    (_, i) => [byNode[2 * i]!, byNode[2 * i + 1]!] as const,
  );
  return {
    byNode: Object.fromEntries(entries),
    absent,
    unknown,
    source: source === '' ? null : source,
    reason: errno === 0 ? null : errnoName(errno),
  };
}

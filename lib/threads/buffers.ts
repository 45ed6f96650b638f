// Buffers in memory of NUMA nodes, and in hugepages. See mmap(2), mbind(2) and hwloc_alloc_membind.
import { constants } from 'node:buffer';
import { freemem } from 'node:os';
import { checkNames, invalidOption } from '../base/check-options.js';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { kernelText, NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { parseQuantity, type Quantity, wholeValue } from '../input/values/quantity.js';
import { NodeSet } from '../machine/cpu-set.js';
import {
  countFreeHugepages,
  countUnreservedHugepages,
  hugepageSizes,
  readNumber,
} from '../machine/hugepages.js';

/** The options of {@link Grant.buffer}. */
export interface BufferOptions {
  /**
   * The size of the hugepages to use, such as `'2Mi'`.
   * @default ordinary pages
   */
  pageSize?: Quantity;
  /**
   * One of the grant's memory nodes for the whole buffer, or an error.
   * @default the grant's memory nodes are preferred
   */
  node?: number;
}

/** The bytes available on the machine, and in the memory cgroup if that has a limit. */
function availableBytes(): number {
  const available = process.availableMemory();
  // Node has 0 if it cannot open the file.
  if (available === 0) kernelText('/proc/meminfo');
  return Math.min(freemem(), available);
}

/** The free bytes on a node or on the machine; null if unknown. */
function freeBytes(hugepageBytes: number, node: number | undefined): number | null {
  if (hugepageBytes === 0) {
    const meminfo = `/sys/devices/system/node/node${node}/meminfo`;
    const kib = node === undefined ? undefined : readNumber(meminfo, /MemFree:\s*(\d+)/);
    return Math.min(availableBytes(), kib === undefined ? Number.POSITIVE_INFINITY : kib * 1024);
  }
  const free = countUnreservedHugepages(hugepageBytes);
  const onNode = countFreeHugepages(hugepageBytes, node);
  return free === undefined || onNode === undefined ? null : Math.min(free, onNode) * hugepageBytes;
}

type BufferRequest = ReturnType<typeof parseBuffer>;

/** @throws ERR_INVALID_OPTION */
export function checkBuffer(options: BufferOptions): BufferOptions {
  return checkNames(options, ['pageSize', 'node'], 'buffer');
}

/** `hugepageBytes`: 0 for ordinary pages. @throws ERR_INVALID_QUANTITY, ERR_INVALID_OPTION */
export function parseBuffer(size: Quantity, pageSize: Quantity | undefined) {
  const bytes = wholeValue(parseQuantity(size, 'bytes'), 'bytes');
  if (bytes < 1 || bytes > constants.MAX_LENGTH) {
    invalidOption('bytes', size, `from 1 to ${constants.MAX_LENGTH}, the longest Buffer`);
  }
  if (pageSize === undefined) return { bytes, hugepageBytes: 0 };
  const hugepageBytes = wholeValue(parseQuantity(pageSize, 'pageSize'), 'pageSize');
  const sizes = hugepageSizes();
  if (!sizes.includes(hugepageBytes)) {
    const valid = `the size of a hugepage of this machine in bytes: ${sizes.join(', ') || 'it has none'}`;
    invalidOption('pageSize', pageSize, valid);
  }
  return { bytes, hugepageBytes };
}

/**
 * A Buffer on NUMA nodes: all of it on `node`, or `nodes` preferred. All its pages exist when it
 * returns, which takes as long as clearing the memory.
 * @throws ERR_MEMORY_SHORTAGE if there are too few pages, ERR_SYSCALL if the node cannot be
 *   requested
 */
export function nodeBuffer(request: BufferRequest, nodes: NodeSet, node: number | undefined): Buffer {
  const { bytes, hugepageBytes } = request;
  // On a full machine the kernel would kill a process. Hugepages come from a pool, which can just
  // be empty.
  if (hugepageBytes === 0 && bytes > availableBytes()) throw shortage(request, node);
  try {
    const target = node === undefined ? nodes : NodeSet.of(node);
    return native.nodeBuffer(bytes, hugepageBytes, target.words, node !== undefined);
  } catch (error) {
    const isShortage = error instanceof NumalignError && error.errnoName === 'ENOMEM';
    throw isShortage ? shortage(request, node, error) : error;
  }
}

/** A buffer of a grant that may still be in use. */
interface GrantBuffer {
  /** Its complete memory. */
  readonly memory: WeakRef<ArrayBufferLike>;
  readonly hugepageBytes: number;
  readonly isStrict: boolean;
}

// Keyed by the grant's id.
const buffers = () => new Map<string, GrantBuffer[]>();

/** Records a buffer, which moves with the grant's memory. */
export function noteBuffer(uid: string, { buffer }: Buffer, hugepageBytes: number, isStrict: boolean): void {
  const all = ENVIRONMENT.of(buffers);
  const alive = (all.get(uid) ?? []).filter(({ memory }) => memory.deref());
  all.set(uid, [...alive, { memory: new WeakRef(buffer), hugepageBytes, isStrict }]);
}

export function forgetBuffers(uid: string): void {
  ENVIRONMENT.of(buffers).delete(uid);
}

/**
 * Moves the buffers of a grant to other nodes. Returns the name of the first refusal; null if there
 * was none.
 */
export function moveBuffers(uid: string, nodes: NodeSet): string | null {
  let refusal: string | null = null;
  for (const { memory, hugepageBytes, isStrict } of ENVIRONMENT.of(buffers).get(uid) ?? []) {
    const found = memory.deref();
    // The buffer is unused, or its memory was transferred.
    if (!found || found.byteLength === 0) continue;
    try {
      native.moveBuffer(new Uint8Array(found), hugepageBytes, nodes.words, isStrict);
    } catch (error) {
      if (!(error instanceof NumalignError) || error.errnoName === undefined) throw error;
      refusal ??= error.errnoName;
    }
  }
  return refusal;
}

function shortage({ bytes, hugepageBytes }: BufferRequest, node?: number, cause?: unknown): NumalignError {
  const pages = hugepageBytes === 0 ? 'ordinary pages' : `hugepages of ${hugepageBytes} bytes`;
  const size = hugepageBytes === 0 ? bytes : Math.ceil(bytes / hugepageBytes) * hugepageBytes;
  const free = freeBytes(hugepageBytes, node);
  const where = node === undefined ? 'this machine' : `NUMA node ${node}`;
  const more = hugepageBytes === 0 ? '' : ': raise vm.nr_hugepages';
  return new NumalignError(
    'ERR_MEMORY_SHORTAGE',
    `a buffer needs ${size} bytes in ${pages}; ${where} has ${free ?? 'an unknown number'} free${more}`,
    { node: node ?? null, pageSize: hugepageBytes === 0 ? null : hugepageBytes, free, needed: size, cause },
  );
}

// Booked memory: the bytes of each memory type taken on each NUMA node, and the groups of nodes
// that hold them. Pure.

/**
 * Bytes by NUMA node and memory type. Nodes of a group share an allocation, and which of them gets
 * a freed byte back depends on history. So the record holds it; it cannot be derived.
 */
export type BookedMemory = Readonly<Record<number, Readonly<Record<string, number>>>>;

/** The memory of a type on a NUMA node, in bytes. */
export type TotalOn = (node: number, type: string) => number;

export const NOTHING_BOOKED: BookedMemory = Object.freeze({});

export function bookedOn(booked: BookedMemory, node: number, type: string): number {
  const types = booked[node];
  return types && Object.hasOwn(types, type) ? types[type]! : 0;
}

// A type may have this name, and a plain assignment would set the prototype.
const PROTO = '__proto__';

function put<Value>(to: Record<string, Value>, name: string, value: Value): void {
  if (name !== PROTO) to[name] = value;
  else Object.defineProperty(to, name, { value, writable: true, enumerable: true, configurable: true });
}

// A copy that members can be added to. Much faster than rest destructuring, or than `put` for each
// member.
function without<Value>(members: Readonly<Record<string, Value>>, name: string): Record<string, Value> {
  const copy: Record<string, Value> = {};
  for (const key of Object.keys(members)) {
    if (key === name) continue;
    if (key !== PROTO) copy[key] = members[key]!;
    else put(copy, key, members[key]!);
  }
  return copy;
}

function withBytes(booked: BookedMemory, node: number, type: string, bytes: number): BookedMemory {
  const types = without(booked[node] ?? {}, type);
  if (bytes > 0) put(types, type, bytes);
  else if (Object.keys(types).length === 0) return without(booked, String(node));
  const next: Record<number, Readonly<Record<string, number>>> = { ...booked };
  next[node] = types;
  return next;
}

type Shares = readonly (readonly [node: number, bytes: number])[];

// Divides a block: its nodes give as much as each has, ascending; those of an even block alike.
function sharesOf({ nodes, bytes, evenBy }: MemoryBlock, amountOn: (node: number) => number): Shares {
  let left = bytes;
  const take = (node: number, most: number): readonly [number, number] => {
    const share = Math.min(left, most, Math.max(0, amountOn(node)));
    left -= share;
    return [node, share];
  };
  if (evenBy === undefined) return nodes.map((node) => take(node, left));
  // The node with the least gives first, so that the others make up for it.
  const ascending = [...nodes].sort((a, b) => amountOn(a) - amountOn(b));
  const last = ascending.length - 1;
  return ascending.map((node, i) => {
    const rest = last - i;
    return take(node, rest === 0 ? left : Math.floor(left / (rest + 1) / evenBy) * evenBy);
  });
}

/**
 * Takes a block's bytes from its nodes, as much as each has free. REQUIRES: the nodes have enough
 * together.
 */
export function bookMemory(
  booked: BookedMemory,
  block: MemoryBlock,
  freeOn: (node: number) => number,
): BookedMemory {
  let next = booked;
  for (const [node, taken] of sharesOf(block, freeOn)) {
    if (taken > 0) next = withBytes(next, node, block.type, bookedOn(next, node, block.type) + taken);
  }
  return next;
}

/**
 * Takes a block that is already held, even beyond the free room. `allocatableOn`: what grants can
 * have.
 */
export function bookHeldMemory(
  booked: BookedMemory,
  block: MemoryBlock,
  allocatableOn: TotalOn,
): BookedMemory {
  const { nodes, type, bytes } = block;
  const sum = (of: BookedMemory) => nodes.reduce((total, node) => total + bookedOn(of, node, type), 0);
  const freeOn = (node: number) => allocatableOn(node, type) - bookedOn(booked, node, type);
  const next = bookMemory(booked, block, freeOn);
  // Books the rest even though the nodes do not have it.
  const left = bytes - (sum(next) - sum(booked));
  return left > 0 ? bookMemory(next, { nodes, type, bytes: left }, () => left) : next;
}

/**
 * Gives a block back to its nodes, ascending, as much as each has booked. The kubelet does the
 * same. An even block goes back to all of them alike.
 */
export function releaseMemory(booked: BookedMemory, block: MemoryBlock): BookedMemory {
  let next = booked;
  const takenOn = (node: number) => bookedOn(booked, node, block.type);
  for (const [node, returned] of sharesOf(block, takenOn)) {
    if (returned > 0) next = withBytes(next, node, block.type, takenOn(node) - returned);
  }
  return next;
}

interface WithMemory {
  readonly memory: readonly MemoryBlock[];
}

/** The memory of a pod. */
interface PodMemory {
  readonly booking: WithMemory | null;
  readonly containers: readonly WithMemory[];
}

/** The units that book a pod's memory: the pod as a whole, or its containers. */
export const memoryBookings = ({ booking, containers }: PodMemory): readonly WithMemory[] =>
  booking ? [booking] : containers;

/** All blocks that are booked for some pods. */
export function memoryBlocks(pods: readonly PodMemory[]): MemoryBlock[] {
  const blocks: MemoryBlock[] = [];
  for (const pod of pods) for (const { memory } of memoryBookings(pod)) blocks.push(...memory);
  return blocks;
}

/** Booked memory of one type, on NUMA nodes that share it. */
export interface MemoryBlock {
  /** Ids of the NUMA nodes that share the block, ascending. */
  readonly nodes: readonly number[];
  /** `memory`, or a hugepage type like `hugepages-2Mi`. */
  readonly type: string;
  /** Size in bytes, over all of these nodes together. */
  readonly bytes: number;
  /**
   * Set by {@link RequestPlacementOptions.evenMemory}: these nodes hold it in equal parts, of
   * multiples of this many bytes.
   */
  readonly evenBy?: number;
}

// Booked memory: how many bytes of each memory type are taken on each NUMA node, and by which
// groups of nodes. Pure.

/**
 * Bytes by NUMA node and memory type. Nodes of a group share what is allocated on them, and which
 * of them gives a freed byte back depends on what came before: hence it is recorded and not
 * derived.
 */
export type BookedMemory = Readonly<Record<number, Readonly<Record<string, number>>>>;

/** What a NUMA node has of a type of memory, in bytes. */
export type TotalOn = (node: number, type: string) => number;

export const NOTHING_BOOKED: BookedMemory = Object.freeze({});

export function bookedOn(booked: BookedMemory, node: number, type: string): number {
  const types = booked[node];
  return types && Object.hasOwn(types, type) ? types[type]! : 0;
}

// A type may have any name, and an assignment to this one would set the prototype.
const PROTO = '__proto__';

function put<Value>(to: Record<string, Value>, name: string, value: Value): void {
  if (name !== PROTO) to[name] = value;
  else Object.defineProperty(to, name, { value, writable: true, enumerable: true, configurable: true });
}

// A copy that members can be added to. Much faster than a rest of destructuring, or than `put` for
// each.
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

/**
 * Takes bytes from the block's nodes, each as far as it goes, ascending. REQUIRES: they have as
 * much between them.
 */
export function bookMemory(
  booked: BookedMemory,
  { nodes, type, bytes }: MemoryBlock,
  freeOn: (node: number) => number,
): BookedMemory {
  let [next, left] = [booked, bytes];
  for (const node of nodes) {
    const taken = Math.min(left, Math.max(0, freeOn(node)));
    if (taken > 0) next = withBytes(next, node, type, bookedOn(next, node, type) + taken);
    left -= taken;
  }
  return next;
}

/**
 * Takes a block that somebody has, whether or not there is room for it. `allocatableOn`: what grants
 * can have.
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
  // What the nodes do not have is booked all the same.
  const left = bytes - (sum(next) - sum(booked));
  return left > 0 ? bookMemory(next, { nodes, type, bytes: left }, () => left) : next;
}

/** Gives a block back: from its nodes, each as far as it goes, ascending, as the kubelet does. */
export function releaseMemory(booked: BookedMemory, { nodes, type, bytes }: MemoryBlock): BookedMemory {
  let [next, left] = [booked, bytes];
  for (const node of nodes) {
    const taken = bookedOn(next, node, type);
    const given = Math.min(left, taken);
    if (given > 0) next = withBytes(next, node, type, taken - given);
    left -= given;
  }
  return next;
}

interface WithMemory {
  readonly memory: readonly MemoryBlock[];
}

/** A pod, as far as its memory goes. */
interface PodMemory {
  readonly booking: WithMemory | null;
  readonly containers: readonly WithMemory[];
}

/** What a pod's memory is booked by: the pod as a whole, or its containers. */
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
  readonly nodes: readonly number[];
  /** `memory`, or a hugepage type such as `hugepages-2Mi`. */
  readonly type: string;
  readonly bytes: number;
}

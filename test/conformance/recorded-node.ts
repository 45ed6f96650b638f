// What scenarios record of operations, and the node that these add up to.
import type { MemoryBlock } from '../../lib/index.js';
import type { RecordedHint } from './hint.js';
import { type BytesByNode, groupsOfNodes } from './memory.js';
import type { Bookings } from './placement.js';
import type { RecordedPod } from './pod.js';

/** What one container has. */
export interface RecordedHolding {
  /** null: it runs in the shared pool. */
  readonly cpus: string | null;
  /** Of pods that say nothing of the whole, its CPUs tell it. */
  readonly isolation?: 'container' | 'pod' | 'host';
  readonly hint: RecordedHint;
  readonly memoryBlocks:
    | readonly { readonly numaAffinity: readonly number[]; readonly type: string; readonly size: number }[]
    | null;
  /** By resource. Which of equal devices they are may not be known. */
  readonly devices: Readonly<
    Record<
      string,
      { readonly ids?: readonly string[] | null; readonly perNuma: Readonly<Record<string, number>> }
    >
  >;
}

/** By container name. */
export type RecordedHoldings = Readonly<Record<string, RecordedHolding>>;

export interface Operation {
  readonly op: 'admit' | 'remove' | 'start' | 'restart' | 'readmit';
  readonly podUid?: string;
  readonly pod?: RecordedPod;
}

export interface RecordedResult {
  readonly admitted?: boolean;
  readonly reason?: string;
  readonly message?: string;
  readonly containers?: RecordedHoldings;
  /** Of pods with resources as a whole: what is booked so; null: nothing. */
  readonly podCpus?: string | null;
  readonly podMemoryBlocks?: RecordedHolding['memoryBlocks'];
  readonly cpuIsolation?: Readonly<Record<string, NonNullable<RecordedHolding['isolation']>>>;
  /** Of containers that could not start. */
  readonly deviceErrors?: Readonly<Record<string, string>>;
  readonly defaultCpuSet?: string;
  readonly memoryFree?: BytesByNode;
  /** The state files, in the last step and after restarts; null where upstream's text is random. */
  readonly cpuCheckpoint?: string | null;
  readonly memoryCheckpoint?: string | null;
  /** After a restart: upstream does not come back. */
  readonly error?: string;
  readonly hang?: boolean;
  readonly panic?: unknown;
}

export interface Step extends Operation {
  readonly result: RecordedResult;
}

/** A node as upstream has it. */
export interface RecordedNode {
  /** Who has what, by pod uid. */
  readonly pods: ReadonlyMap<string, RecordedHoldings>;
  readonly bookings: Bookings;
  /** The pods whose containers have started. */
  readonly started: ReadonlySet<string>;
  readonly sharedPool: string;
  readonly memoryFree: BytesByNode;
}

/** The memory of a container in the package's terms. */
export function blocksOf({ memoryBlocks }: Pick<RecordedHolding, 'memoryBlocks'>): MemoryBlock[] {
  return (memoryBlocks ?? []).map(({ numaAffinity, type, size }) => ({
    nodes: numaAffinity,
    type,
    bytes: size,
  }));
}

/** Upstream gave no answer that could be followed. */
export function hasNoAnswer({ error, hang, panic }: RecordedResult): boolean {
  return error !== undefined || hang === true || panic !== undefined;
}

function withSharing(holdings: RecordedHoldings, { cpuIsolation }: RecordedResult): RecordedHoldings {
  if (!cpuIsolation) return holdings;
  const entries = Object.entries(holdings).map(([name, holding]) => {
    const isolation = cpuIsolation[name];
    return [name, isolation ? { ...holding, isolation } : holding] as const;
  });
  return Object.fromEntries(entries);
}

/** The node after one more operation. */
export function follow(
  node: RecordedNode,
  { op, podUid = '' }: Operation,
  result: RecordedResult,
): RecordedNode {
  const [pods, started] = [new Map(node.pods), new Set(node.started)];
  const bookings = new Map(node.bookings);
  const isPlaced = op === 'start' ? pods.has(podUid) : result.admitted === true;
  if (op !== 'restart' && !isPlaced) pods.delete(podUid);
  if (isPlaced && result.containers) {
    pods.set(podUid, withSharing(result.containers, result));
    const { podCpus, podMemoryBlocks } = result;
    if (podCpus || podMemoryBlocks)
      bookings.set(podUid, {
        cpus: podCpus ?? '',
        memory: blocksOf({ memoryBlocks: podMemoryBlocks ?? [] }),
      });
  }
  if (op === 'start') started.add(podUid);
  if (!pods.has(podUid)) {
    started.delete(podUid);
    bookings.delete(podUid);
  }
  const { defaultCpuSet: sharedPool = node.sharedPool, memoryFree = node.memoryFree } = result;
  return { pods, bookings, started, sharedPool, memoryFree };
}

/** A5: memory is given away on groups of NUMA nodes that overlap. */
export function hasOverlappingGroups(node: RecordedNode): boolean {
  return groupsOfNodes(recordedBlocks(node)) === undefined;
}

/** All memory that is booked, a pod's that is booked as a whole once. */
export const recordedBlocks = ({ pods, bookings }: RecordedNode): MemoryBlock[] =>
  [...pods].flatMap(
    ([uid, containers]) => bookings.get(uid)?.memory ?? Object.values(containers).flatMap(blocksOf),
  );

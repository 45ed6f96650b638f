// What scenarios record of operations, and the node that these add up to.
import type { MemoryBlock } from '../../lib/index.js';
import type { RecordedHint } from './hint.js';
import { type BytesByNode, groupsOfNodes } from './memory.js';
import type { RecordedPod } from './pod.js';

/** What one container has. */
export interface RecordedHolding {
  /** null: it runs in the shared pool. */
  readonly cpus: string | null;
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
  /** The pods whose containers have started. */
  readonly started: ReadonlySet<string>;
  readonly sharedPool: string;
  readonly memoryFree: BytesByNode;
}

/** The memory of a container in the package's terms. */
export function blocksOf({ memoryBlocks }: RecordedHolding): MemoryBlock[] {
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

/** The node after one more operation. */
export function follow(
  node: RecordedNode,
  { op, podUid = '' }: Operation,
  result: RecordedResult,
): RecordedNode {
  const [pods, started] = [new Map(node.pods), new Set(node.started)];
  const isPlaced = op === 'start' ? pods.has(podUid) : result.admitted === true;
  if (op !== 'restart' && !isPlaced) pods.delete(podUid);
  if (isPlaced && result.containers) pods.set(podUid, result.containers);
  if (op === 'start') started.add(podUid);
  if (!pods.has(podUid)) started.delete(podUid);
  const { defaultCpuSet: sharedPool = node.sharedPool, memoryFree = node.memoryFree } = result;
  return { pods, started, sharedPool, memoryFree };
}

/** A5: memory is given away on groups of NUMA nodes that overlap. */
export function hasOverlappingGroups({ pods }: RecordedNode): boolean {
  const holdings = [...pods.values()].flatMap((containers) => Object.values(containers));
  return groupsOfNodes(holdings.flatMap(blocksOf)) === undefined;
}

// The hints of the Memory Manager for memory and hugepages. Follows the kubelet's policies None and
// Static (v1.32). Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import type { HintQuestion } from '../../base/native-hints.js';
import { homesOf } from '../../machine/cpu-nodes.js';
import { maskOf } from '../../machine/hint-masks.js';
import type { Draft } from '../draft/draft.js';
import { groupMasks, groupsOf } from './memory-groups.js';
import type { MemoryRequests } from './memory-requests.js';
import { isTiered, offeredRow } from './memory-tiers.js';

export type MemoryQuestion = Extract<HintQuestion, { readonly kind: 'memory' }>;

const NO_NODES: readonly number[] = [];
const NO_GROUPS: ReadonlyMap<number, readonly number[]> = new Map();
const NO_ROWS: readonly number[] = [];

/**
 * The hints for a container, or for the whole pod: all sets of NUMA nodes that can book the request,
 * with those that a resized container keeps; undefined: no preference. They are the same for all
 * types, because all must fit on the same nodes.
 */
export function memoryHints(draft: Draft, requests: MemoryRequests): MemoryQuestion | undefined {
  if (requests.length === 0) return undefined;
  const { topology, memory } = draft;
  const kept = keptNodes(draft);
  const { numaNodes } = topology;
  const { length } = numaNodes;
  const tiered = isTiered(draft);
  const must = tiered ? homesOf(topology, kept) : kept;
  const { words, closed } = groupMasks(tiered ? NO_GROUPS : groupsOf(draft), numaNodes);
  const amounts = new Array<number>(requests.length * (1 + 2 * length));
  let next = 0;
  for (let at = 0; at < requests.length; at++) {
    const { type, bytes } = requests[at]!;
    const { allocatable, free } = offeredRow(draft, type, bytes);
    amounts[next++] = bytes;
    for (let i = 0; i < length; i++) amounts[next++] = free[i]!;
    for (let i = 0; i < length; i++) amounts[next++] = allocatable[i]!;
  }
  return {
    kind: 'memory',
    call: {
      nodes: numaNodes.length,
      types: requests.length,
      amounts,
      groups: words,
      reusable:
        memory.reusable.length > 0 && !tiered ? reusableRows(memory.reusable, requests, numaNodes) : NO_ROWS,
      must: must.length > 0 ? maskOf(must, numaNodes) : NO_NODES,
      closed,
    },
  };
}

function reusableRows(
  blocks: readonly MemoryBlock[],
  requests: MemoryRequests,
  numaNodes: readonly number[],
): readonly number[] {
  return blocks.flatMap(({ nodes, type, bytes }) => [
    ...maskOf(nodes, numaNodes),
    ...requests.map((request) => (request.type === type ? bytes : 0)),
  ]);
}

/** The nodes where a resized container keeps its memory. */
export function keptNodes({ kept }: Draft): readonly number[] {
  return kept ? [...new Set(kept.memory.flatMap(({ nodes }) => nodes))].sort((a, b) => a - b) : NO_NODES;
}

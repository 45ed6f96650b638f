// Chooses the NUMA nodes that book a container's memory. Follows the kubelet's Memory Manager
// (v1.32). Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import { native } from '../../base/native.js';
import { Refusal } from '../../base/refusal.js';
import { formatBytes } from '../../input/values/quantity.js';
import { NodeSet } from '../../machine/cpu-set.js';
import { HintFamily, type TopologyHint } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';
import type { Draft } from '../draft/draft.js';
import { mergeOffered } from '../hints/merge-hints.js';
import { groupsOf, isSame } from './memory-groups.js';
import { candidates, keptNodes, type MemoryQuestion } from './memory-hints.js';
import type { MemoryRequests } from './memory-requests.js';
import { memoryRow } from './memory-tables.js';

const NO_BLOCKS: readonly MemoryBlock[] = [];

const keptBytes = ({ kept }: Draft, type: string) =>
  kept?.memory.find((block) => block.type === type)?.bytes ?? 0;

function isGrowing(draft: Draft, requests: MemoryRequests): boolean {
  return requests.some(({ type, bytes }) => bytes > keptBytes(draft, type));
}

// True if a resize leaves the memory alone: it stays booked, even on lost nodes.
function isKept(draft: Draft, requests: MemoryRequests): boolean {
  return draft.kept !== undefined && requests.every(({ type, bytes }) => bytes === keptBytes(draft, type));
}

/** The best candidate: preferred first, then the fewest nodes, then the lowest. */
function bestOf(
  { numaNodes }: Topology,
  question: MemoryQuestion,
): { nodes: number[]; preferred: boolean } | undefined {
  // One question for all types, because all must fit on the same nodes.
  const family = new HintFamily(native.memoryHints(question.call), numaNodes);
  if (family.isEmpty) return undefined;
  const rules = { numaNodes, policy: 'best-effort', distances: undefined } as const;
  const { nodes, preferred } = mergeOffered([family], rules).merged.hint;
  return { nodes: nodes!.toArray(), preferred };
}

/**
 * Books what a container requests: on the hint's NUMA nodes, and on more if these do not have
 * enough.
 * @throws ERR_INSUFFICIENT_MEMORY
 */
export function allocateMemory(
  draft: Draft,
  requests: MemoryRequests,
  hint: TopologyHint,
): readonly MemoryBlock[] {
  if (requests.length === 0 || isKept(draft, requests)) return NO_BLOCKS;
  const nodes = chooseNodes(draft, requests, hint);
  return requests.map(({ type, bytes }) => ({ nodes, type, bytes }));
}

function chooseNodes(draft: Draft, requests: MemoryRequests, hint: TopologyHint): readonly number[] {
  const groups = groupsOf(draft);
  const kept = keptNodes(draft);
  if (draft.kept && !isGrowing(draft, requests)) {
    if (haveEnough(draft, requests, kept)) return kept;
    throw insufficient(draft, requests, `NUMA nodes ${NodeSet.from(kept)}, which hold it, have lost some`);
  }
  let chosen: { readonly nodes: readonly number[]; readonly preferred: boolean } = {
    nodes: hint.nodes?.toArray() ?? kept,
    preferred: hint.preferred,
  };
  // The policy relies on `preferred`, so a preferred hint must stay preferred.
  const replace = (message: string) => {
    const best = bestOf(draft.topology, candidates(draft, requests, chosen.nodes));
    if (!best) throw insufficient(draft, requests, message);
    if (chosen.preferred && !best.preferred) {
      throw insufficient(draft, requests, `${message} as narrowly as possible`);
    }
    chosen = best;
  };
  if (hint.nodes === null) replace('no set of NUMA nodes that can share it has this much free');
  const only = chosen.nodes[0];
  // Unlike the kubelet, keeps a node in its group. The kubelet takes a single node out of a group
  // that shares memory, and cannot read its own state afterwards.
  const breaksGroup = chosen.nodes.length === 1 && (groups.get(only!)?.length ?? 1) > 1;
  if (breaksGroup || !haveEnough(draft, requests, chosen.nodes)) {
    replace(
      `no set of NUMA nodes that can share it and includes ${NodeSet.from(chosen.nodes)} has this much free`,
    );
  }
  const { nodes } = chosen;
  const clash =
    groups.size === 0 ? undefined : nodes.find((node) => !isSame(groups.get(node) ?? nodes, nodes));
  if (clash !== undefined) {
    const message = `memory of NUMA node ${clash} is allocated alone or with other nodes than ${NodeSet.from(nodes)}`;
    throw insufficient(draft, requests, message);
  }
  return nodes;
}

// Like the kubelet, ignores what init containers left behind.
function haveEnough(draft: Draft, requests: MemoryRequests, ids: readonly number[]): boolean {
  const { numaNodes } = draft.topology;
  for (const { type, bytes } of requests) {
    const { free } = memoryRow(draft, type, bytes);
    let sum = 0;
    for (let i = 0; i < numaNodes.length; i++) if (ids.includes(numaNodes[i]!)) sum += free[i]!;
    if (sum < bytes) return false;
  }
  return true;
}

function insufficient(draft: Draft, requests: MemoryRequests, why: string): Refusal {
  const request = requests.map(({ type, bytes }) => `${formatBytes(bytes)} of ${type}`).join(' and ');
  const details = {
    value: Object.fromEntries(requests.map(({ type, bytes }) => [type, bytes])),
    free: Object.fromEntries(
      draft.topology.numaNodes.map((node, i) => [
        node,
        Object.fromEntries(requests.map(({ type }) => [type, memoryRow(draft, type).free[i]!])),
      ]),
    ),
  };
  const counted = requests.some(({ type }) => draft.hugepages?.has(type))
    ? '; numalign counts no more hugepages as free than the kernel has'
    : '';
  const message = `${request} requested: ${why}${counted}`;
  return new Refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_MEMORY', message, details);
}

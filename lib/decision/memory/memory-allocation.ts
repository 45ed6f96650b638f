// Chooses the NUMA nodes that book a container's memory. Follows the kubelet's Memory Manager
// (v1.32). Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import { type Refusal, refusal } from '../../base/refusal.js';
import type { AnswerReader } from '../../base/words.js';
import { pageBytes } from '../../input/values/memory-types.js';
import { formatBytes } from '../../input/values/quantity.js';
import { NodeSet } from '../../machine/cpu-set.js';
import { hintAt, type TopologyHint } from '../../machine/hints.js';
import type { Draft } from '../draft/draft.js';
import { keptNodes } from './memory-hints.js';
import type { MemoryRequests } from './memory-requests.js';
import { memoryRow } from './memory-tables.js';
import { blocksByTier, isTiered } from './memory-tiers.js';

const NO_BLOCKS: readonly MemoryBlock[] = [];

const keptBytes = ({ kept }: Draft, type: string) =>
  kept?.memory.reduce((sum, block) => (block.type === type ? sum + block.bytes : sum), 0) ?? 0;

function isGrowing(draft: Draft, requests: MemoryRequests): boolean {
  return requests.some(({ type, bytes }) => bytes > keptBytes(draft, type));
}

// True if a resize leaves the memory alone: it stays booked, even on lost nodes.
function isKept(draft: Draft, requests: MemoryRequests): boolean {
  return draft.kept !== undefined && requests.every(({ type, bytes }) => bytes === keptBytes(draft, type));
}

/** True if NUMA nodes are to be chosen for the requests. */
export const needsNodes = (draft: Draft, requests: MemoryRequests): boolean =>
  requests.length > 0 && (!draft.kept || isGrowing(draft, requests));

/** The core's choice of NUMA nodes near a hint, or why there is none. */
export interface MemoryChoice {
  readonly outcome: 'chosen' | 'too little' | 'too wide' | 'other group';
  /** The nodes that were chosen, or that every set had to include. */
  readonly nodes: readonly number[];
  /** The node with another group. */
  readonly clash: number | undefined;
}

// As the core numbers them.
const OUTCOMES = ['chosen', 'too little', 'too wide', 'other group'] as const;

export function readChoice(answer: AnswerReader, numaNodes: readonly number[]): MemoryChoice {
  const outcome = OUTCOMES[answer.word()]!;
  const { nodes } = hintAt([answer.word(), answer.word()], false, numaNodes);
  return { outcome, nodes: nodes!.toArray(), clash: numaNodes[answer.word()] };
}

/**
 * Books what a container requests: on the hint's NUMA nodes, and on more if these do not have
 * enough. `choice`: made if {@link needsNodes}.
 * @throws ERR_INSUFFICIENT_MEMORY
 */
export function allocateMemory(
  draft: Draft,
  requests: MemoryRequests,
  hint: TopologyHint,
  choice: MemoryChoice | undefined,
): readonly MemoryBlock[] {
  if (requests.length === 0 || isKept(draft, requests)) return NO_BLOCKS;
  if (isTiered(draft)) return onTiers(draft, requests, hint, choice);
  const nodes = choice ? chosenNodes(draft, requests, hint, choice) : keptAll(draft, requests);
  const isEven = draft.placement.evenMemory && nodes.length > 1;
  return requests.map(({ type, bytes }) =>
    isEven ? { nodes, type, bytes, evenBy: pageBytes(type) ?? 1 } : { nodes, type, bytes },
  );
}

function onTiers(
  draft: Draft,
  requests: MemoryRequests,
  hint: TopologyHint,
  choice: MemoryChoice | undefined,
): readonly MemoryBlock[] {
  const near = NodeSet.from(choice ? chosenNodes(draft, requests, hint, choice) : []);
  return requests.flatMap((request) => {
    const blocks = blocksByTier(draft, request, near);
    if (blocks) return blocks;
    throw insufficient(draft, requests, `no memory of its tiers near NUMA nodes ${near} is left`);
  });
}

function keptAll(draft: Draft, requests: MemoryRequests): readonly number[] {
  const kept = keptNodes(draft);
  if (haveEnough(draft, requests, kept)) return kept;
  throw insufficient(draft, requests, `NUMA nodes ${NodeSet.from(kept)}, which hold it, have lost some`);
}

function chosenNodes(
  draft: Draft,
  requests: MemoryRequests,
  hint: TopologyHint,
  { outcome, nodes, clash }: MemoryChoice,
): readonly number[] {
  if (outcome === 'chosen') return nodes;
  const set = NodeSet.from(nodes);
  if (outcome === 'other group') {
    const message = `memory of NUMA node ${clash} is allocated alone or with other nodes than ${set}`;
    throw insufficient(draft, requests, message);
  }
  const including = hint.nodes ? ` and includes ${set}` : '';
  const message = `no set of NUMA nodes that can share it${including} has this much free`;
  // The policy relies on `preferred`, so a preferred hint must stay preferred.
  throw insufficient(
    draft,
    requests,
    message + (outcome === 'too wide' ? ' as narrowly as possible' : inAll(draft, requests)),
  );
}

// What a caller can ask for at most if no set of NUMA nodes could do.
function inAll(draft: Draft, requests: MemoryRequests): string {
  for (const { type, bytes } of requests) {
    const free = memoryRow(draft, type).free.reduce((sum, each) => sum + each, 0);
    if (free < bytes) return `, nor have all together, with ${formatBytes(free)} of ${type}`;
  }
  return '';
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
  return refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_MEMORY', message, details);
}

// The Memory Manager: hints for memory and hugepages, and the NUMA nodes on which a container's are
// booked. Follows the kubelet's policies None and Static (v1.32). Pure.
import { bookMemory, type MemoryBlock, memoryGroups } from '../account/booked-memory.js';
import { groupsOfPods } from '../account/memory-of-pods.js';
import { native } from '../base/native.js';
import { Refusal } from '../base/refusal.js';
import { isMemoryType } from '../input/memory-types.js';
import type { Placement } from '../input/placement.js';
import { amountFor, type PodRequest } from '../input/pod-request.js';
import { formatBytes } from '../input/quantity.js';
import type { ContainerRequest } from '../input/resource-amounts.js';
import { NodeSet } from '../machine/cpu-set.js';
import { maskOf } from '../machine/hint-masks.js';
import { HintFamily, type TopologyHint } from '../machine/hints.js';
import type { Topology } from '../machine/topology.js';
import type { Draft } from './draft.js';
import { mergeFamilies } from './hints/merge-hints.js';
import { allocatableOn, freeOf, freeOn, isMemoryKnown } from './memory-tables.js';

/** By type; what is not in it is not asked for. */
type MemoryRequests = ReadonlyMap<string, number>;

const NO_REQUESTS: MemoryRequests = new Map();

function isManaged({ qosClass }: PodRequest, { memoryPolicy }: Placement, topology: Topology): boolean {
  return memoryPolicy !== 'None' && qosClass === 'Guaranteed' && isMemoryKnown(topology);
}

const typesOf = ({ requests }: ContainerRequest) => Object.keys(requests).filter(isMemoryType);

/**
 * What is asked of the Memory Manager for a container, or for the whole pod: of that, as the
 * kubelet, only types that its app containers ask for.
 */
export function memoryRequests(
  { pod, placement, topology }: Pick<Draft, 'pod' | 'placement' | 'topology'>,
  container: ContainerRequest | undefined,
): MemoryRequests {
  if (!isManaged(pod, placement, topology)) return NO_REQUESTS;
  const types = container
    ? typesOf(container)
    : new Set(pod.containers.filter(({ kind }) => kind === 'app').flatMap(typesOf));
  const amounts = new Map<string, number>();
  for (const type of types) {
    const bytes = amountFor(pod, container, type);
    if (bytes > 0) amounts.set(type, bytes);
  }
  return amounts;
}

function groupsOf({ state, memory }: Draft): ReadonlyMap<number, readonly number[]> {
  const groups = groupsOfPods(state.pods);
  if (memory.blocks.size === 0) return groups;
  return new Map([...groups, ...memoryGroups([...memory.blocks.values()].flat())]);
}

// A mask: low and high.
const NO_NODES = [0, 0] as const;

const isSame = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((node, i) => node === b[i]);

/** All sets of NUMA nodes on which the request can be booked, those with `must` in them only. */
function candidates(draft: Draft, requests: MemoryRequests, must: readonly number[] = []): HintFamily {
  const { topology, state, memory } = draft;
  const { nodes, numaNodes } = topology;
  const types = [...requests.keys()];
  const groups = groupsOf(draft);
  // A group that has lost a node takes nothing more: it is to be as it was when the node comes
  // back.
  const isThere = (node: number) => numaNodes.includes(node);
  const isClosed = (node: number) => groups.get(node)?.every(isThere) === false;
  const groupWords: number[] = [];
  for (const node of numaNodes) {
    const group = groups.get(node);
    const [low, high] = group ? maskOf(group.filter(isThere), numaNodes) : NO_NODES;
    groupWords.push(low, high);
  }
  const amounts: number[] = [];
  for (const type of types) {
    const allocatable = nodes.map((node) => allocatableOn(node, type, state.settings));
    amounts.push(requests.get(type)!);
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i]!;
      amounts.push(isClosed(node.id) ? 0 : freeOf(draft, node, type, allocatable[i]!));
    }
    amounts.push(...allocatable);
  }
  const reusable: number[] = [];
  for (const block of memory.reusable) {
    reusable.push(...maskOf(block.nodes, numaNodes));
    for (const type of types) reusable.push(type === block.type ? block.bytes : 0);
  }
  const words = native.memoryHints({
    nodes: nodes.length,
    types: types.length,
    amounts,
    groups: groupWords,
    reusable,
    must: must.length > 0 ? maskOf(must, numaNodes) : NO_NODES,
  });
  return new HintFamily(words, numaNodes);
}

/**
 * The hints for a container, or for the whole pod, by type: all types must fit on the same nodes.
 * Empty: no preference.
 */
export function memoryHints(
  draft: Draft,
  container: ContainerRequest | undefined,
): Record<string, HintFamily> {
  const requests = memoryRequests(draft, container);
  if (requests.size === 0) return {};
  const family = candidates(draft, requests, keptNodes(draft));
  const hints: Record<string, HintFamily> = {};
  for (const type of requests.keys()) hints[type] = family;
  return hints;
}

// Where a container that is resized has memory: it keeps that.
function keptNodes({ kept }: Draft): readonly number[] {
  return kept ? [...new Set(kept.memory.flatMap(({ nodes }) => nodes))].sort((a, b) => a - b) : [];
}

const keptBytes = ({ kept }: Draft, type: string) =>
  kept?.memory.find((block) => block.type === type)?.bytes ?? 0;

function isGrowing(draft: Draft, requests: MemoryRequests): boolean {
  return [...requests].some(([type, bytes]) => bytes > keptBytes(draft, type));
}

// A container that is resized in something else: its memory stays as it is, whatever has become of
// the nodes.
function isKept(draft: Draft, requests: MemoryRequests): boolean {
  return draft.kept !== undefined && [...requests].every(([type, bytes]) => bytes === keptBytes(draft, type));
}

/** The best of the candidates: preferred ones first, then the fewest nodes, then the lowest. */
function bestOf(family: HintFamily): { nodes: number[]; preferred: boolean } | undefined {
  if (family.isEmpty) return undefined;
  const { hint } = mergeFamilies([family], {
    numaNodes: family.numaNodes,
    policy: 'best-effort',
    distances: undefined,
  });
  return { nodes: hint.nodes!.toArray(), preferred: hint.preferred };
}

/**
 * Books what a container asks for: on the hint's NUMA nodes, on more than these where they have not
 * enough.
 * @throws ERR_INSUFFICIENT_MEMORY
 */
export function allocateMemory(
  draft: Draft,
  container: ContainerRequest,
  hint: TopologyHint,
): readonly MemoryBlock[] {
  const requests = memoryRequests(draft, container);
  if (requests.size === 0 || isKept(draft, requests)) return [];
  const nodes = chooseNodes(draft, requests, hint);
  return [...requests].map(([type, bytes]) => ({ nodes, type, bytes }));
}

function chooseNodes(draft: Draft, requests: MemoryRequests, hint: TopologyHint): readonly number[] {
  const groups = groupsOf(draft);
  const kept = keptNodes(draft);
  if (!isGrowing(draft, requests)) {
    if (haveEnough(draft, requests, kept)) return kept;
    throw insufficient(draft, requests, `NUMA nodes ${NodeSet.from(kept)}, where it is, have lost some`);
  }
  let chosen: { readonly nodes: readonly number[]; readonly preferred: boolean } = {
    nodes: hint.nodes?.toArray() ?? kept,
    preferred: hint.preferred,
  };
  // The policy has its word through `preferred`: what it took for preferred must stay so.
  const replace = (message: string) => {
    const best = bestOf(candidates(draft, requests, chosen.nodes));
    if (!best) throw insufficient(draft, requests, message);
    if (chosen.preferred && !best.preferred) {
      throw insufficient(draft, requests, `${message} as narrowly as ever possible`);
    }
    chosen = best;
  };
  if (hint.nodes === null) replace('no set of NUMA nodes that can share it has as much free');
  const [only] = chosen.nodes;
  // Unlike the kubelet, which takes a single node out of a group that shares its memory, and cannot
  // read its own state after that.
  const breaksGroup = chosen.nodes.length === 1 && (groups.get(only!)?.length ?? 1) > 1;
  if (breaksGroup || !haveEnough(draft, requests, chosen.nodes)) {
    replace(
      `no set of NUMA nodes that can share it, ${NodeSet.from(chosen.nodes)} among them, has as much free`,
    );
  }
  const { nodes } = chosen;
  const clash = nodes.find((node) => !isSame(groups.get(node) ?? nodes, nodes));
  if (clash !== undefined) {
    const message = `memory of NUMA node ${clash} is allocated alone or with other nodes than ${NodeSet.from(nodes)}`;
    throw insufficient(draft, requests, message);
  }
  return nodes;
}

// As the kubelet: what init containers leave behind does not count here.
function haveEnough(draft: Draft, requests: MemoryRequests, ids: readonly number[]): boolean {
  for (const [type, bytes] of requests) {
    let free = 0;
    for (const node of draft.topology.nodes) if (ids.includes(node.id)) free += freeOn(draft, node, type);
    if (free < bytes) return false;
  }
  return true;
}

function insufficient(draft: Draft, requests: MemoryRequests, why: string): Refusal {
  const asked = [...requests].map(([type, bytes]) => `${formatBytes(bytes)} of ${type}`).join(' and ');
  const details = {
    value: Object.fromEntries(requests),
    free: Object.fromEntries(
      draft.topology.nodes.map((node) => [
        node.id,
        Object.fromEntries([...requests.keys()].map((type) => [type, freeOn(draft, node, type)])),
      ]),
    ),
  };
  const message = `${asked} asked for: ${why}`;
  return new Refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_MEMORY', message, details);
}

function amountIn(blocks: readonly MemoryBlock[], { nodes, type }: MemoryBlock): number {
  return blocks.find((block) => block.type === type && isSame(block.nodes, nodes))?.bytes ?? 0;
}

function replaceAmount(
  blocks: readonly MemoryBlock[],
  block: MemoryBlock,
  bytes: number,
): readonly MemoryBlock[] {
  const others = blocks.filter((each) => each.type !== block.type || !isSame(each.nodes, block.nodes));
  return bytes > 0 ? [...others, { ...block, bytes }] : others;
}

/** The draft once a container has been given its memory. */
export function withMemory(
  draft: Draft,
  { name, kind }: ContainerRequest,
  given: readonly MemoryBlock[],
): Draft {
  if (given.length === 0) return draft;
  const { nodes } = draft.topology;
  let { booked, reusable } = draft.memory;
  const blocks = new Map(draft.memory.blocks);
  for (const block of given) {
    const reused = amountIn(reusable, block);
    const more = { ...block, bytes: Math.max(0, block.bytes - reused) };
    booked = bookMemory(booked, more, (id) => {
      // A resized container's may be on one that is gone.
      const node = nodes.find((each) => each.id === id);
      return node ? freeOn(draft, node, block.type) : 0;
    });
    // An init container leaves all of its own to those that come later; of what others have left,
    // these take.
    const left = kind === 'init' ? Math.max(reused, block.bytes) : Math.max(0, reused - block.bytes);
    reusable = replaceAmount(reusable, block, left);
    handOver(blocks, draft.pod, block);
  }
  blocks.set(name, given);
  return { ...draft, memory: { booked, blocks, reusable } };
}

// What is taken over from init containers counts once, and with the container that has it now.
function handOver(
  blocks: Map<string, readonly MemoryBlock[]>,
  { containers }: PodRequest,
  taken: MemoryBlock,
): void {
  let left = taken.bytes;
  for (const { name, kind } of containers) {
    const held = blocks.get(name);
    if (kind !== 'init' || !held) continue;
    const rest = held.map((block) => {
      if (block.type !== taken.type || !isSame(block.nodes, taken.nodes)) return block;
      const over = Math.min(left, block.bytes);
      left -= over;
      return { ...block, bytes: block.bytes - over };
    });
    blocks.set(name, rest);
  }
}

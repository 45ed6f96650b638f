// The Memory Manager: hints for memory and hugepages, and the NUMA nodes on which a container's are
// booked. Follows the kubelet's policies None and Static (v1.32). Pure.
import { type BookedMemory, bookMemory, type MemoryBlock } from '../account/booked-memory.js';
import { groupsOfPods } from '../account/memory-of-pods.js';
import { withLast } from '../base/collections/lists.js';
import { native } from '../base/native.js';
import type { HintQuestion } from '../base/native-surface.js';
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
import type { Draft, MemoryDraft } from './draft.js';
import { mergeOffered } from './hints/merge-hints.js';
import { isMemoryKnown, memoryRow } from './memory-tables.js';

/** So many bytes of a type. */
export interface MemoryRequest {
  readonly type: string;
  readonly bytes: number;
}

/** Each type once; what is not in it is not asked for. */
export type MemoryRequests = readonly MemoryRequest[];

const NO_REQUESTS: MemoryRequests = [];

type MemoryQuestion = Extract<HintQuestion, { readonly kind: 'memory' }>;

function isManaged({ qosClass }: PodRequest, { memoryPolicy }: Placement, topology: Topology): boolean {
  return memoryPolicy !== 'None' && qosClass === 'Guaranteed' && isMemoryKnown(topology);
}

const typesOf = ({ requests }: ContainerRequest) => Object.keys(requests).filter(isMemoryType);

// As the kubelet, only types that its app containers ask for.
const typesOfPod = ({ containers }: PodRequest) => [
  ...new Set(containers.filter(({ kind }) => kind === 'app').flatMap(typesOf)),
];

/** What is asked of the Memory Manager for a container, or for the whole pod. */
export function memoryRequests(
  { pod, placement, topology }: Pick<Draft, 'pod' | 'placement' | 'topology'>,
  container: ContainerRequest | undefined,
): MemoryRequests {
  if (!isManaged(pod, placement, topology)) return NO_REQUESTS;
  const types = container ? Object.keys(container.requests) : typesOfPod(pod);
  let requests = NO_REQUESTS;
  for (let i = 0; i < types.length; i++) {
    const type = types[i]!;
    if (!isMemoryType(type)) continue;
    const bytes = amountFor(pod, container, type);
    if (bytes > 0) requests = withLast(requests, { type, bytes });
  }
  return requests;
}

type Groups = ReadonlyMap<number, readonly number[]>;

const groupsOf = ({ state, memory }: Draft): Groups => memory.groups ?? groupsOfPods(state.pods);

// With what a container was given. Most are given memory of nodes that are grouped so already.
function groupsWith(groups: Groups, given: readonly MemoryBlock[]): Groups {
  let next: Map<number, readonly number[]> | undefined;
  for (const { nodes } of given) {
    for (const node of nodes) {
      const known = (next ?? groups).get(node);
      if (known && isSame(known, nodes)) continue;
      next ??= new Map(groups);
      next.set(node, nodes);
    }
  }
  return next ?? groups;
}

/** Groups as the core asks for them. */
interface GroupMasks {
  readonly numaNodes: readonly number[];
  /** By node, low and high; empty where it is in no group. */
  readonly words: readonly number[];
  /** By node whether its group takes nothing more. */
  readonly closed: readonly boolean[];
}

// Of groups on record, which many pods are placed beside.
const masksOfGroups = new WeakMap<Groups, GroupMasks>();

function groupMasks(groups: Groups, numaNodes: readonly number[]): GroupMasks {
  let masks = masksOfGroups.get(groups);
  if (masks?.numaNodes !== numaNodes) {
    const isThere = (node: number) => numaNodes.includes(node);
    masks = {
      numaNodes,
      words: numaNodes.flatMap((node) => maskOf(groups.get(node)?.filter(isThere) ?? [], numaNodes)),
      // A group that has lost a node is to be as it was when the node comes back.
      closed: numaNodes.map((node) => groups.get(node)?.every(isThere) === false),
    };
    masksOfGroups.set(groups, masks);
  }
  return masks;
}

const NO_BLOCKS: readonly MemoryBlock[] = [];

const NO_NODES: readonly number[] = [];
const NO_ROWS: readonly number[] = [];
// Low and high.
const NO_MASK = [0, 0] as const;

const isSame = (a: readonly number[], b: readonly number[]) =>
  a.length === b.length && a.every((node, i) => node === b[i]);

/** For all sets of NUMA nodes on which the request can be booked, those with `must` in them only. */
function candidates(draft: Draft, requests: MemoryRequests, must = NO_NODES): MemoryQuestion {
  const { topology, memory } = draft;
  const { numaNodes } = topology;
  const { length } = numaNodes;
  const { words, closed } = groupMasks(groupsOf(draft), numaNodes);
  const amounts = new Array<number>(requests.length * (1 + 2 * length));
  let next = 0;
  for (let at = 0; at < requests.length; at++) {
    const { type, bytes } = requests[at]!;
    const { allocatable, free } = memoryRow(draft, type);
    amounts[next++] = bytes;
    for (let i = 0; i < length; i++) amounts[next++] = closed[i] ? 0 : free[i]!;
    for (let i = 0; i < length; i++) amounts[next++] = allocatable[i]!;
  }
  return {
    kind: 'memory',
    call: {
      nodes: numaNodes.length,
      types: requests.length,
      amounts,
      groups: words,
      reusable: memory.reusable.length > 0 ? reusableRows(memory.reusable, requests, numaNodes) : NO_ROWS,
      must: must.length > 0 ? maskOf(must, numaNodes) : NO_MASK,
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

/**
 * The hints for a container, or for the whole pod, by what is asked for, the same for each type: all
 * must fit on the same nodes. Undefined: no preference.
 */
export function memoryHints(draft: Draft, requests: MemoryRequests): MemoryQuestion | undefined {
  return requests.length === 0 ? undefined : candidates(draft, requests, keptNodes(draft));
}

// Where a container that is resized has memory: it keeps that.
function keptNodes({ kept }: Draft): readonly number[] {
  return kept ? [...new Set(kept.memory.flatMap(({ nodes }) => nodes))].sort((a, b) => a - b) : NO_NODES;
}

const keptBytes = ({ kept }: Draft, type: string) =>
  kept?.memory.find((block) => block.type === type)?.bytes ?? 0;

function isGrowing(draft: Draft, requests: MemoryRequests): boolean {
  return requests.some(({ type, bytes }) => bytes > keptBytes(draft, type));
}

// A container that is resized in something else: its memory stays as it is, whatever has become of
// the nodes.
function isKept(draft: Draft, requests: MemoryRequests): boolean {
  return draft.kept !== undefined && requests.every(({ type, bytes }) => bytes === keptBytes(draft, type));
}

/** The best of the candidates: preferred ones first, then the fewest nodes, then the lowest. */
function bestOf(
  { numaNodes }: Topology,
  question: MemoryQuestion,
): { nodes: number[]; preferred: boolean } | undefined {
  // Once, whatever the number of types: all of them must fit on the same nodes.
  const family = new HintFamily(native.memoryHints(question.call), numaNodes);
  if (family.isEmpty) return undefined;
  const site = { numaNodes, policy: 'best-effort', distances: undefined } as const;
  const { nodes, preferred } = mergeOffered([family], site).merged.hint;
  return { nodes: nodes!.toArray(), preferred };
}

/**
 * Books what a container asks for: on the hint's NUMA nodes, on more than these where they have not
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
    throw insufficient(draft, requests, `NUMA nodes ${NodeSet.from(kept)}, where it is, have lost some`);
  }
  let chosen: { readonly nodes: readonly number[]; readonly preferred: boolean } = {
    nodes: hint.nodes?.toArray() ?? kept,
    preferred: hint.preferred,
  };
  // The policy has its word through `preferred`: what it took for preferred must stay so.
  const replace = (message: string) => {
    const best = bestOf(draft.topology, candidates(draft, requests, chosen.nodes));
    if (!best) throw insufficient(draft, requests, message);
    if (chosen.preferred && !best.preferred) {
      throw insufficient(draft, requests, `${message} as narrowly as ever possible`);
    }
    chosen = best;
  };
  if (hint.nodes === null) replace('no set of NUMA nodes that can share it has as much free');
  const only = chosen.nodes[0];
  // Unlike the kubelet, which takes a single node out of a group that shares its memory, and cannot
  // read its own state after that.
  const breaksGroup = chosen.nodes.length === 1 && (groups.get(only!)?.length ?? 1) > 1;
  if (breaksGroup || !haveEnough(draft, requests, chosen.nodes)) {
    replace(
      `no set of NUMA nodes that can share it, ${NodeSet.from(chosen.nodes)} among them, has as much free`,
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

// As the kubelet: what init containers leave behind does not count here.
function haveEnough(draft: Draft, requests: MemoryRequests, ids: readonly number[]): boolean {
  const { numaNodes } = draft.topology;
  for (const { type, bytes } of requests) {
    const { free } = memoryRow(draft, type);
    let sum = 0;
    for (let i = 0; i < numaNodes.length; i++) if (ids.includes(numaNodes[i]!)) sum += free[i]!;
    if (sum < bytes) return false;
  }
  return true;
}

function insufficient(draft: Draft, requests: MemoryRequests, why: string): Refusal {
  const asked = requests.map(({ type, bytes }) => `${formatBytes(bytes)} of ${type}`).join(' and ');
  const details = {
    value: Object.fromEntries(requests.map(({ type, bytes }) => [type, bytes])),
    free: Object.fromEntries(
      draft.topology.numaNodes.map((node, i) => [
        node,
        Object.fromEntries(requests.map(({ type }) => [type, memoryRow(draft, type).free[i]!])),
      ]),
    ),
  };
  const message = `${asked} asked for: ${why}`;
  return new Refusal('UnexpectedAdmissionError', 'ERR_INSUFFICIENT_MEMORY', message, details);
}

function amountIn(blocks: readonly MemoryBlock[], { nodes, type }: MemoryBlock): number {
  if (blocks.length === 0) return 0;
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

/** What is left once a container has been given its memory. */
export function memoryLeft(
  draft: Draft,
  { name, kind }: ContainerRequest,
  given: readonly MemoryBlock[],
): MemoryDraft {
  if (given.length === 0) return draft.memory;
  const before = draft.memory;
  let { reusable, containers } = before;
  for (const block of given) {
    const reused = amountIn(before.reusable, block);
    // An init container leaves all of its own to those that come later; of what others have left,
    // these take.
    const left = kind === 'init' ? Math.max(reused, block.bytes) : Math.max(0, reused - block.bytes);
    if (left !== reused) reusable = replaceAmount(reusable, block, left);
    containers = afterHandOver(containers, block);
  }
  const own = { name, kind, blocks: given };
  containers = containers.length === 0 ? [own] : [...containers, own];
  // Of a last container only who keeps the state wants to know.
  let known: BookedMemory | undefined;
  const booked = () => {
    known ??= given
      .map((block) => ({ ...block, bytes: Math.max(0, block.bytes - amountIn(before.reusable, block)) }))
      .reduce((sum, block) => bookOn(draft, sum, block), before.booked());
    return known;
  };
  return { booked, containers, groups: groupsWith(groupsOf(draft), given), reusable };
}

// Blocks of one container are of different types, and do not take from each other.
function bookOn(draft: Draft, booked: BookedMemory, block: MemoryBlock): BookedMemory {
  const { free } = memoryRow(draft, block.type);
  // A resized container's may be on a node that is gone.
  return bookMemory(booked, block, (id) => free[draft.topology.numaNodes.indexOf(id)] ?? 0);
}

// What is taken over from init containers counts once, and with the container that has it now.
function afterHandOver(containers: MemoryDraft['containers'], taken: MemoryBlock): MemoryDraft['containers'] {
  if (containers.length === 0 || !containers.some(({ kind }) => kind === 'init')) return containers;
  let left = taken.bytes;
  return containers.map((container) => {
    if (container.kind !== 'init') return container;
    const blocks = container.blocks.map((block) => {
      if (block.type !== taken.type || !isSame(block.nodes, taken.nodes)) return block;
      const over = Math.min(left, block.bytes);
      left -= over;
      return { ...block, bytes: block.bytes - over };
    });
    return { ...container, blocks };
  });
}

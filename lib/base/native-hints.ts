// The addon's questions about CPUs, hints and their merge.
import type { TopologyHandle, Words } from './words.js';

/** Asks for the best fit of `count` CPUs. */
export interface BestFitCall {
  readonly topology: TopologyHandle;
  readonly available: Words;
  readonly count: number;
  /** CPUs to take first; they need not be available. */
  readonly near: Words;
  /** The number of NUMA nodes of the hint; 0: there is none, or the core finds it. */
  readonly nearNodes: number;
  readonly cpuGroupSize: number;
  /** Of {@link FIT}. */
  readonly flags: number;
  /** With `wholeCores`: what later containers of the pod want of the rest. */
  readonly later: CoreClaims;
}

/** How a best fit takes CPUs: bits, in the order in which read_best_fit() of the core has them. */
export const FIT = {
  /** With `wholeCores`: as many near CPUs as there are, or none at all. */
  onlyMost: 1 << 0,
  /** With `wholeCores`: what is taken near leaves cores that add up to the rest. */
  leavesRest: 1 << 1,
  /** A distribution goes over as many NUMA nodes as a hint has, like the kubelet v1.37 and newer. */
  keepsNodes: 1 << 2,
  /** As many CPUs of each NUMA node, but in the fewest L3 groups, where that costs nothing. */
  fewestL3: 1 << 3,
  spread: 1 << 4,
  alignByL3: 1 << 5,
  distributeAcrossNuma: 1 << 6,
  wholeCores: 1 << 7,
  /** With `alignByL3`: choose the rest like the kubelet v1.34 and newer. */
  anyRestInL3: 1 << 8,
  /** A distribution stays on a socket that holds it, like the kubelet v1.37 and newer. */
  keepsSocket: 1 << 9,
} as const;

/**
 * The exclusive CPUs of each container in turn, as count << 1, with 1 added for an init container,
 * which leaves its CPUs to later ones.
 */
export type CoreClaims = readonly number[];

/** Asks for hints for `count` CPUs. */
export interface CpuHintsCall extends Pick<BestFitCall, 'topology' | 'available' | 'count'> {
  readonly reusable: Words;
  readonly alignBySocket: boolean;
  /** Counts the cores that add up to `count`: true only where sizes of cores differ. */
  readonly wholeCores: boolean;
  /** With `wholeCores`: all of `reusable` are among the `count`. */
  readonly keepsReusable: boolean;
  /** With `wholeCores`: the containers that need the `count`; empty: one. */
  readonly claims: CoreClaims;
}

/** Asks for hints for all types of memory of one request. */
export interface MemoryHintsCall {
  /** The number of NUMA nodes. */
  readonly nodes: number;
  /** The number of memory types. */
  readonly types: number;
  /** For each type [request, free by node..., allocatable by node...]. */
  readonly amounts: readonly number[];
  /** For each node the mask of the nodes that share its allocations, [low, high]; none: no node has any. */
  readonly groups: readonly number[];
  /** Rows of [low, high, bytes by type...]. */
  readonly reusable: readonly number[];
  /** The nodes that every hint includes, [low, high], or none. */
  readonly must: readonly number[];
  /** Nodes whose group takes no more, [low, high], or none. */
  readonly closed: readonly number[];
}

/** Asks for a part of the hints of a family. */
export interface ListHintsCall {
  readonly family: Words;
  /** The part starts after this mask, [low, high]; at the first hint if the mask is empty. */
  readonly after: readonly number[];
  readonly limit: number;
  /** True if fewer hints are enough when finding the next one takes some milliseconds. */
  readonly isBounded: boolean;
}

/** Asks for hints for devices of one resource. */
export interface DeviceHintsCall {
  /** The number of NUMA nodes. */
  readonly nodes: number;
  readonly request: number;
  /** Only sets of NUMA nodes that have devices, like the kubelet v1.36 and newer. */
  readonly onlyNearDevices: boolean;
  /** All registered devices, in rows of [low, high, available | reusable << 1]. */
  readonly devices: readonly number[];
}

/** Hints that the core makes while it merges them, so that they need not come back in between. */
export type HintQuestion =
  | { readonly kind: 'cpus'; readonly call: CpuHintsCall }
  /** Makes the same family for each type of memory. */
  | { readonly kind: 'memory'; readonly call: MemoryHintsCall }
  | { readonly kind: 'devices'; readonly call: DeviceHintsCall };

/** The words of a family of hints. */
export interface PackedHints {
  readonly words: Words;
}

/**
 * A family of hints for each resource, or the question that makes it: at most one for CPUs and one for
 * memory, which is that of each type of memory in turn.
 */
export type HintsToMerge = readonly { readonly hints: PackedHints | HintQuestion }[];

/** How hints are merged. */
export interface MergeRules {
  /** Ascending. */
  readonly numaNodes: readonly number[];
  /** An index of TOPOLOGY_MANAGER_POLICIES. */
  readonly policy: number;
  /** The distances of nodes, row by row; undefined if they do not count. */
  readonly distances: Words | undefined;
  /** Asks for the core's joint choice; undefined: for the kubelet's merge. */
  readonly joint?: JointCall | undefined;
}

/** The inputs of a joint choice besides the hints. */
export interface JointCall {
  /** The only nodes that it may choose, [low, high]. */
  readonly within: readonly number[];
  /** The free share of each resource by node, as a fraction of the machine. */
  readonly rooms: readonly number[];
  /** The number of requested devices near each node, or empty: CPUs and memory go near the most. */
  readonly devices: readonly number[];
}

/** Asks for CPUs and NUMA nodes for memory near a hint. */
export interface DecideCall {
  readonly asked: HintsToMerge;
  readonly rules: MergeRules;
  /** The hint that was merged before; undefined: the hints are merged. */
  readonly hint: { readonly mask: readonly number[] | null; readonly preferred: boolean } | undefined;
  /** Returns the hints that are merged, too. */
  readonly lists: boolean;
  /** All nodes of a socket count as near CPUs. */
  readonly bySocket: boolean;
  /** Distributes CPUs and memory over the nodes of a joint choice. */
  readonly isNarrowed: boolean;
  /** The CPUs to take; `near` of these counts only if the hint has no nodes. */
  readonly cpus: BestFitCall | undefined;
  /** Chooses nodes for the memory of the question. */
  readonly takesMemory: boolean;
}

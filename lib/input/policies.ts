// The words of placement: the kubelet's policies, and the choices that numalign adds.
import type { MemoryTier } from '../base/native-tables.js';

/** The policies of the Topology Manager, in the order of the core's enumerators. */
export const TOPOLOGY_MANAGER_POLICIES = ['none', 'best-effort', 'restricted', 'single-numa-node'] as const;

/**
 * The policy of the Topology Manager. `none` uses no hints. `best-effort` uses the best hint.
 * `restricted` admits only with a preferred hint, `single-numa-node` only with a preferred hint of
 * one NUMA node. More than 64 NUMA nodes need `none`.
 */
export type TopologyManagerPolicy = (typeof TOPOLOGY_MANAGER_POLICIES)[number];

export const TOPOLOGY_MANAGER_SCOPES = ['container', 'pod'] as const;

/**
 * What hints are merged for: `container`, each container by itself; `pod`, once for the whole pod.
 */
export type TopologyManagerScope = (typeof TOPOLOGY_MANAGER_SCOPES)[number];

/** The policies of the CPU Manager; the kubelet has no `dynamic`. */
export const CPU_MANAGER_POLICIES = ['none', 'static', 'dynamic'] as const;

/**
 * The policy of the CPU Manager. `none` makes no CPUs exclusive. `static` gives exclusive CPUs to
 * Guaranteed containers that ask for whole CPUs. `dynamic` does the same, and moves grants that
 * consent if a request fits only then: see docs/dynamic.md.
 */
export type CpuManagerPolicy = (typeof CPU_MANAGER_POLICIES)[number];

export const MEMORY_MANAGER_POLICIES = ['None', 'Static', 'BestEffort'] as const;

/**
 * The policy of the Memory Manager. `None` books no memory. `Static` books memory and hugepages of
 * Guaranteed pods on NUMA nodes. `BestEffort` decides like `Static`, but promises no enforcement;
 * the kubelet has it on Windows.
 */
export type MemoryManagerPolicy = (typeof MEMORY_MANAGER_POLICIES)[number];

/** The modes of {@link RequestPlacementOptions.isolation}. */
export const ISOLATION_CHOICES = ['never', 'prefer', 'require'] as const;
/**
 * Whether a request takes isolated CPUs: `never`, `prefer` (if these are enough for the whole pod)
 * or `require` (no others). See {@link RequestPlacementOptions.isolation}.
 */
export type IsolationPolicy = (typeof ISOLATION_CHOICES)[number];

export const CORE_KIND_CHOICES = ['best', 'performance', 'efficiency', 'any'] as const;

/** Which kinds of cores a request takes. See {@link RequestPlacementOptions.coreKind}. */
export type CoreKindPolicy = (typeof CORE_KIND_CHOICES)[number];

export const PREFERENCES = ['packed', 'spread'] as const;

/** Which of equally good NUMA nodes a joint choice takes. See {@link RequestPlacementOptions.prefer}. */
export type NodePreference = (typeof PREFERENCES)[number];

export const ALLOCATION_STRATEGIES = ['none', 'most-allocated', 'least-allocated'] as const;

/**
 * The tiers of memory that a request accepts, in order, or `any` node like the kubelet. See {@link
 * RequestPlacementOptions.memoryTiers}.
 */
export type MemoryTiers = 'any' | readonly MemoryTier[];

/** The modes of {@link RequestPlacementOptions.placement}. */
export const PLACEMENT_CHOICES = ['kubelet', 'joint'] as const;
/**
 * How NUMA nodes are chosen: as the `kubelet` does, or `joint`, for all resources together. See
 * {@link RequestPlacementOptions.placement}.
 */
export type PlacementPolicy = (typeof PLACEMENT_CHOICES)[number];

// The CPU Manager: hints for CPUs, and the CPUs of a container. Follows the kubelet's policies none
// and static (v1.32 to v1.37). Pure.
import { kubeletCpus } from '../../account/kubelet-record.js';
import { oncePer } from '../../base/collections/once-per.js';
import { isNumalignError } from '../../base/errors.js';
import { isSince } from '../../base/kubelet-features.js';
import { native } from '../../base/native.js';
import { type BestFitCall, type CoreClaims, FIT } from '../../base/native-hints.js';
import { isStrict, type Placement } from '../../input/placement.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import { CpuSet, type NodeSet } from '../../machine/cpu-set.js';
import { HintFamily } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';
import type { CpusLeft, Draft } from '../draft/draft.js';
import { isBookedWhole } from '../draft/partition.js';
import type { Hints } from '../hints/merge-hints.js';
import {
  candidates,
  claimsAfter,
  coreClaims,
  cpuClaims,
  cpuCount,
  machineFor,
  podExclusiveCount,
  siblings,
} from './cpu-choices.js';
import { checkMultiple, checkSmtAlignment, insufficient, mustBeWhole, UnevenCores } from './cpu-limits.js';

/** All CPUs that the pod has taken after this allocation. */
export const cpusTaken = ({ taken }: Pick<CpusLeft, 'taken'>, { cpus, held }: CpuAllocation): CpuSet =>
  taken.union(cpus).union(held);

/** The CPUs left after a container got its allocation. */
export function cpusLeft(draft: CpusLeft, { kind }: ContainerRequest, allocation: CpuAllocation): CpusLeft {
  const all = allocation.cpus.union(allocation.held);
  if (all.isEmpty) return draft;
  return {
    free: draft.free.difference(all),
    taken: cpusTaken(draft, allocation),
    reusable: kind === 'init' ? draft.reusable.union(all) : draft.reusable.difference(all),
  };
}

/** CPUs that a container runs on, and held siblings that no other may use. */
export interface CpuAllocation {
  readonly cpus: CpuSet;
  readonly held: CpuSet;
}

const NOTHING: CpuAllocation = Object.freeze({ cpus: CpuSet.EMPTY, held: CpuSet.EMPTY });

/** The hints for a container, or for the whole pod; undefined: no preference. */
export function cpuHints(draft: Draft, container: ContainerRequest | undefined): Hints | undefined {
  const { placement, free, reusable } = draft;
  const count = cpuCount(draft, container);
  if (count === 0) return undefined;
  const { machine, from: chosen } = candidates(draft, count);
  if (count > machine.cpus.size) return HintFamily.from([], machine.numaNodes);
  // Like the kubelet, leaves a lack of whole cores to the allocation, which reports it better.
  const from = chosen.size >= count || placement.holdSiblings ? chosen : free.union(reusable);
  const isWhole = mustAddUp(machine, placement);
  return {
    kind: 'cpus',
    call: {
      topology: machine.handle,
      available: from.words,
      reusable: reusable.intersection(from).words,
      count,
      alignBySocket: placement.alignBySocket,
      wholeCores: isWhole,
      keepsReusable: draft.kept !== undefined,
      claims: isWhole && !container ? podClaims(draft) : NO_CLAIMS,
    },
  };
}

/** True if whole cores are required and may not add up to every amount, because their sizes differ. */
export const mustAddUp = ({ isUniform }: Topology, placement: Placement): boolean =>
  mustBeWhole(placement) && !isUniform;

const NO_CLAIMS: CoreClaims = [];

/** What the containers of a pod want in turn, if cores must add up to it. */
export const podClaims = (draft: Pick<Draft, 'pod' | 'placement'>): CoreClaims =>
  coreClaims(
    cpuClaims(draft),
    isBookedWhole(draft.pod, draft.placement) ? podExclusiveCount(draft.pod, draft.placement) : 0,
  );

/** The CPUs of these NUMA nodes. `alignBySocket`: the CPUs of all their sockets. */
export function cpusOfNodes({ nodes, packages }: Topology, wanted: NodeSet, alignBySocket: boolean): CpuSet {
  let near = CpuSet.EMPTY;
  // By index: iterating over a frozen array allocates for each member.
  for (let i = 0; i < nodes.length; i++) if (wanted.has(nodes[i]!.id)) near = near.union(nodes[i]!.cpus);
  if (!alignBySocket) return near;
  return packages
    .filter(({ cpus }) => cpus.intersects(near))
    .reduce((cpus, socket) => cpus.union(socket.cpus), CpuSet.EMPTY);
}

/** What a container, or the whole pod (undefined), takes CPUs from; undefined if it takes none. */
export function cpuFit(draft: Draft, container: ContainerRequest | undefined): CpuFit | undefined {
  const { topology, placement, pod } = draft;
  const count = cpuCount(draft, container);
  if (!container || !mustAddUp(topology, placement)) return fitOf(draft, count);
  const at = pod.containers.findIndex(({ name }) => name === container.name);
  return fitOf(draft, count, claimsAfter(cpuClaims(draft), at));
}

/** The same for `count` CPUs. `later`: claims that the rest should add up to. */
export function fitOf(draft: Draft, count: number, later: CoreClaims = NO_CLAIMS): CpuFit | undefined {
  const { topology, placement, kept } = draft;
  if (count === 0) return undefined;
  const missing = kept ? count - kept.cpus.size : count;
  const { machine, from } = candidates(kept ? { ...draft, reusable: CpuSet.EMPTY } : draft, missing);
  // Without a hint, prefer nodes of the kept CPUs.
  const near = kept && cpusOfNodes(machine, topology.nodesOf(kept.cpus), placement.alignBySocket);
  const fastest = fastestFirst(machine, placement, from, missing);
  const claims = kept ? NO_CLAIMS : later;
  return { machine, placement, from: fastest, count: missing, later: claims, near, total: count };
}

// Of several kinds of cores: the CPUs of the fastest kind that has enough, or those of the faster kinds
// and only as many others as needed. Hints for several nodes, and whole cores that must add up, go first.
function fastestFirst(machine: Topology, placement: Placement, from: CpuSet, count: number): CpuSet {
  const { coreKinds } = machine;
  const isOther = coreKinds.length === 1 || placement.coreKind === 'any' || mustAddUp(machine, placement);
  if (isOther || machine.nodesOf(from).size > 1 || from.size <= count) return from;
  const rooms = coreKinds.map(({ cpus }) => cpus.intersection(from));
  const one = rooms.find(({ size }) => size >= count);
  const take = (taken: CpuSet, room: CpuSet) => {
    const fit = { machine, placement, from: room, count: count - taken.size };
    return taken.union(room.size > fit.count ? takeNearFirst(fit) : room);
  };
  return one ?? rooms.reduce(take, CpuSet.EMPTY);
}

/**
 * The CPUs that were taken for a container, with those that it keeps.
 * @throws ERR_SMT_ALIGNMENT, ERR_INSUFFICIENT_CPUS, with the kubelet's reason in the details
 */
export function allocateCpus(draft: Draft, fit: CpuFit | undefined, taken: TakenCpus): CpuAllocation {
  const { topology, placement, kept } = draft;
  if (!fit) return NOTHING;
  const { machine, from, count } = fit;
  if (kept) checkMultiple(draft, fit.total!);
  if (kept && count <= 0) return kept;
  checkSmtAlignment(draft, count);
  if (from.size < count) throw insufficient(draft, count, from);
  const { nodes } = taken;
  const near = nodes && !taken.cpus ? cpusOfNodes(machine, nodes, placement.alignBySocket) : fit.near;
  const cpus = taken.cpus ?? takeNearFirst({ ...fit, near, nodes });
  const held = placement.holdSiblings ? siblings(topology, cpus) : CpuSet.EMPTY;
  return kept ? { cpus: kept.cpus.union(cpus), held: kept.held.union(held) } : { cpus, held };
}

/** What was taken near a hint. */
export interface TakenCpus {
  /** The NUMA nodes whose CPUs come first; null: any. */
  readonly nodes: NodeSet | null;
  /** Undefined if they are still to be taken, or do not suffice. */
  readonly cpus?: CpuSet | undefined;
}

/**
 * Takes some CPUs of an allocation, on any node. `later`: claims to the rest of it.
 * @throws ERR_SMT_ALIGNMENT if they must be whole cores and do not add up
 */
export function takeOf(
  draft: Pick<Draft, 'topology' | 'placement'>,
  from: CpuSet,
  count: number,
  later: CoreClaims = NO_CLAIMS,
): CpuSet {
  checkMultiple(draft, count);
  return takeNearFirst({ machine: machineFor(draft), placement: draft.placement, from, count, later });
}

/**
 * The CPUs that a resized container keeps: all of them, or the new number by best fit. CPUs that
 * the kubelet has taken go first, unless cores must be whole.
 * @throws ERR_SMT_ALIGNMENT if whole cores do not add up to the number
 */
export function keptCpus(
  { topology, placement, state }: Pick<Draft, 'topology' | 'placement' | 'state'>,
  { cpus, held }: CpuAllocation,
  count: number,
): CpuAllocation {
  if (count >= cpus.size) return { cpus, held };
  const machine = machineFor({ topology, placement });
  const unclaimed = cpus.difference(kubeletCpus(state.kubelet));
  const isEnough = unclaimed.size >= count && !mustBeWhole(placement) && !placement.holdSiblings;
  const left = takeNearFirst({ machine, placement, from: isEnough ? unclaimed : cpus, count });
  return {
    cpus: left,
    held: placement.holdSiblings ? siblings(topology, left).intersection(held) : CpuSet.EMPTY,
  };
}

/**
 * The CPUs that a container keeps when some go offline: the online ones, in whole cores if
 * required. It keeps held siblings.
 */
export function onlineCpusKept(
  { topology, present, state, placement }: Pick<Draft, 'topology' | 'present' | 'state' | 'placement'>,
  { cpus, held }: CpuAllocation,
): CpuAllocation {
  const { online } = present;
  const here = cpus.intersection(online);
  if (placement.holdSiblings) {
    // An offline sibling is still held when it comes back. Only the record knows the cores of
    // offline CPUs.
    const coreOf = new Map(state.cpus.map(([cpu, core]) => [cpu, core]));
    const lost = new Set([...cpus.difference(here)].map((cpu) => coreOf.get(cpu)));
    const away = [...held.difference(online)].filter((cpu) => !lost.has(coreOf.get(cpu)));
    return { cpus: here, held: siblings(topology, here).intersection(held).union(CpuSet.from(away)) };
  }
  return { cpus: mustBeWhole(placement) ? topology.wholeCores(here) : here, held };
}

/** CPUs to take by best fit. */
export interface CpuFit {
  readonly machine: Topology;
  readonly placement: Placement;
  readonly from: CpuSet;
  readonly count: number;
  /** Claims that the rest should add up to. */
  readonly later?: CoreClaims;
  /** CPUs to prefer without a hint; they need not be in `from`. */
  readonly near?: CpuSet | undefined;
  /** The NUMA nodes of the hint that `near` follows. */
  readonly nodes?: NodeSet | null | undefined;
  /** With the CPUs that are kept. */
  readonly total?: number;
  /** Takes whole cores, whatever their sizes. */
  readonly isWhole?: boolean;
}

const mustBeWholeIn = ({ machine, placement, isWhole = mustAddUp(machine, placement) }: CpuFit) => isWhole;

// The flags of a fit, and those of one in whole cores. Most requests have the placement of their manager.
const flagsOf = oncePer((placement: Placement) => {
  const { kubeletVersion, distributeAcrossNuma, distributeAcrossCores } = placement;
  const isKubelet = placement.nodeChoice === 'kubelet';
  const keepsNodes = isKubelet && isSince(kubeletVersion, 'v1.37');
  const isSpread = distributeAcrossNuma || distributeAcrossCores;
  const flags =
    (keepsNodes ? FIT.keepsNodes : 0) |
    (keepsNodes && placement.alignBySocket ? FIT.keepsSocket : 0) |
    (!isKubelet && placement.prefer === 'packed' && !isSpread ? FIT.fewestL3 : 0) |
    (distributeAcrossCores ? FIT.spread : 0) |
    (placement.preferAlignByUncoreCache ? FIT.alignByL3 : 0) |
    (distributeAcrossNuma ? FIT.distributeAcrossNuma : 0) |
    (isKubelet && kubeletVersion === 'v1.32' ? 0 : FIT.anyRestInL3);
  const whole = flags | FIT.wholeCores | FIT.leavesRest | (isStrict(placement) ? FIT.onlyMost : 0);
  return { flags, whole };
});

/** The same as the core takes it. */
export function fitCall(fit: CpuFit): BestFitCall {
  const { machine, placement, from, count, near = CpuSet.EMPTY, nodes, later = NO_CLAIMS } = fit;
  const { flags, whole } = flagsOf(placement);
  return {
    topology: machine.handle,
    available: from.words,
    count,
    near: near.words,
    nearNodes: nodes?.size ?? 0,
    cpuGroupSize: placement.fullPhysicalCpusOnly ? machine.cpusPerCore : 1,
    flags: mustBeWholeIn(fit) ? whole : flags,
    later,
  };
}

/** @throws ERR_SMT_ALIGNMENT, ERR_INSUFFICIENT_CPUS */
export function takeNearFirst(fit: CpuFit): CpuSet {
  const { placement, from, count, near = CpuSet.EMPTY } = fit;
  if (count === 0) return CpuSet.EMPTY;
  try {
    return new CpuSet(native.bestFit(fitCall(fit)));
  } catch (error) {
    const isUneven = isNumalignError(error, 'ERR_INSUFFICIENT_CPUS');
    if (!isUneven || !mustBeWholeIn(fit)) throw error;
    throw new UnevenCores(count, isStrict(placement) && !near.isEmpty ? from.intersection(near) : from);
  }
}

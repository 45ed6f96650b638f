// The CPU Manager: hints for CPUs, and the CPUs of a container. Follows the kubelet's policies none
// and static (v1.32 and v1.36). Pure.
import { kubeletCpus } from '../../account/kubelet-record.js';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { CoreClaims } from '../../base/native-hints.js';
import { isStrict, type Placement } from '../../input/placement.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import { CpuSet, type NodeSet } from '../../machine/cpu-set.js';
import { HintFamily, type TopologyHint } from '../../machine/hints.js';
import type { Topology } from '../../machine/topology.js';
import type { CpusLeft, Draft } from '../draft/draft.js';
import { isBookedWhole } from '../draft/partition.js';
import type { Hints } from '../hints/merge-hints.js';
import {
  candidates,
  claimsAfter,
  coreClaims,
  cpuClaims,
  exclusiveCount,
  oneThreadACore,
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

// Like the kubelet, leaves a lack of whole cores to the allocation, which reports it better.
function hintCandidates(draft: Draft, count: number): ReturnType<typeof candidates> {
  const chosen = candidates(draft, count);
  if (chosen.from.size >= count || draft.placement.holdSiblings) return chosen;
  return { machine: chosen.machine, from: draft.free.union(draft.reusable) };
}

/** The hints for a container, or for the whole pod; undefined: no preference. */
export function cpuHints(draft: Draft, container: ContainerRequest | undefined): Hints | undefined {
  const { pod, placement, reusable } = draft;
  const count = container ? exclusiveCount(pod, container, placement) : podExclusiveCount(pod, placement);
  if (count === 0) return undefined;
  const { machine, from } = hintCandidates(draft, count);
  if (count > machine.cpus.size) return HintFamily.from([], machine.numaNodes);
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

/**
 * Takes CPUs for one container: those of the hint's NUMA nodes first, then any.
 * @throws ERR_SMT_ALIGNMENT, ERR_INSUFFICIENT_CPUS, with the kubelet's reason in the details
 */
export function allocateCpus(draft: Draft, container: ContainerRequest, hint: TopologyHint): CpuAllocation {
  const { topology, placement, pod } = draft;
  const at = () => pod.containers.findIndex(({ name }) => name === container.name);
  const later = mustAddUp(topology, placement) ? claimsAfter(cpuClaims(draft), at()) : NO_CLAIMS;
  return allocateCount(draft, exclusiveCount(pod, container, placement), hint, later);
}

/**
 * Like {@link allocateCpus}, for `count` CPUs. `later`: claims that the rest should add up to.
 * @throws the same codes
 */
export function allocateCount(
  draft: Draft,
  count: number,
  hint: TopologyHint,
  later: CoreClaims = NO_CLAIMS,
): CpuAllocation {
  const { topology, placement } = draft;
  if (count === 0) return NOTHING;
  if (draft.kept) return grownCpus(draft, draft.kept, hint, count);
  checkSmtAlignment(draft, count);
  const { machine, from } = candidates(draft, count);
  if (from.size < count) throw insufficient(draft, count, from);
  const near = nearCpus(machine, placement, hint.nodes);
  const cpus = takeNearFirst({ machine, placement, from, count, later }, near);
  return { cpus, held: placement.holdSiblings ? siblings(topology, cpus) : CpuSet.EMPTY };
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
  const { topology, placement } = draft;
  checkMultiple(draft, count);
  const machine = placement.holdSiblings ? oneThreadACore(topology) : topology;
  return takeNearFirst({ machine, placement, from, count, later });
}

function nearCpus(machine: Topology, { alignBySocket }: Placement, nodes: NodeSet | null): CpuSet {
  return nodes === null ? CpuSet.EMPTY : cpusOfNodes(machine, nodes, alignBySocket);
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
  const machine = placement.holdSiblings ? oneThreadACore(topology) : topology;
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
  {
    topology,
    present: { online },
    state,
    placement,
  }: Pick<Draft, 'topology' | 'present' | 'state' | 'placement'>,
  { cpus, held }: CpuAllocation,
): CpuAllocation {
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

// The kept CPUs, and as many free CPUs as are missing.
function grownCpus(draft: Draft, kept: CpuAllocation, hint: TopologyHint, count: number): CpuAllocation {
  const { topology, placement } = draft;
  const missing = count - kept.cpus.size;
  checkMultiple(draft, count);
  if (missing <= 0) return kept;
  checkSmtAlignment(draft, missing);
  const { machine, from } = candidates({ ...draft, reusable: CpuSet.EMPTY }, missing);
  if (from.size < missing) throw insufficient(draft, missing, from);
  // Without a hint, prefer nodes of the kept CPUs.
  const nodes = hint.nodes ?? topology.nodesOf(kept.cpus);
  const near = nearCpus(machine, placement, nodes);
  const added = takeNearFirst({ machine, placement, from, count: missing }, near);
  const held = placement.holdSiblings ? siblings(topology, added) : CpuSet.EMPTY;
  return { cpus: kept.cpus.union(added), held: kept.held.union(held) };
}

/** CPUs to take by best fit. */
interface BestFit {
  readonly machine: Topology;
  readonly placement: Placement;
  readonly from: CpuSet;
  readonly count: number;
  /** Claims that the rest should add up to. */
  readonly later?: CoreClaims;
  /** Takes whole cores, whatever their sizes. */
  readonly isWhole?: boolean;
}

/**
 * Takes `count` of `from` by best fit. `near`: CPUs to prefer; they need not be in `from`.
 * @throws ERR_SMT_ALIGNMENT, ERR_INSUFFICIENT_CPUS
 */
export function takeNearFirst(
  { machine, placement, from, count, later = NO_CLAIMS, isWhole = mustAddUp(machine, placement) }: BestFit,
  near: CpuSet = CpuSet.EMPTY,
): CpuSet {
  if (count === 0) return CpuSet.EMPTY;
  const onlyMost = isWhole && !near.isEmpty && isStrict(placement);
  try {
    const words = native.bestFit({
      topology: machine.handle,
      available: from.words,
      count,
      near: near.words,
      onlyMost,
      leavesRest: isWhole,
      spread: placement.distributeAcrossCores,
      alignByL3: placement.preferAlignByUncoreCache,
      distributeAcrossNuma: placement.distributeAcrossNuma,
      cpuGroupSize: placement.fullPhysicalCpusOnly ? machine.cpusPerCore : 1,
      wholeCores: isWhole,
      anyRestInL3: placement.kubeletVersion !== 'v1.32' || placement.nodeChoice === 'joint',
      later,
    });
    return new CpuSet(words);
  } catch (error) {
    if (isWhole && error instanceof NumalignError && error.code === 'ERR_INSUFFICIENT_CPUS')
      throw new UnevenCores(count, onlyMost ? from.intersection(near) : from);
    throw error;
  }
}

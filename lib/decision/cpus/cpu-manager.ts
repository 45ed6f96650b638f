// The CPU Manager: hints for CPUs, and which CPUs a container gets. Follows the kubelet's policies
// none and static (v1.32 and v1.36). Pure.
import { kubeletCpus } from '../../account/kubelet-record.js';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import type { Placement } from '../../input/placement.js';
import type { ContainerRequest } from '../../input/pods/resource-amounts.js';
import { CpuSet, type NodeSet } from '../../machine/cpu-set.js';
import { HintFamily, type TopologyHint } from '../../machine/hints.js';
import { sizeOfBoth } from '../../machine/id-set.js';
import type { Topology } from '../../machine/topology.js';
import type { Hints } from '../hints/merge-hints.js';
import { choices, exclusiveCount, oneThreadACore, podExclusiveCount, siblings } from './cpu-choices.js';
import { checkMultiple, checkSmtAlignment, insufficient, mustBeWhole, UnevenCores } from './cpu-limits.js';
import type { CpusLeft, Draft } from './draft.js';

/** What the pod has taken once a container has been given these. */
export const cpusTaken = ({ taken }: Pick<CpusLeft, 'taken'>, { cpus, held }: CpuAllocation): CpuSet =>
  taken.union(cpus).union(held);

/** What is left once a container has been given its CPUs. */
export function cpusLeft(draft: CpusLeft, { kind }: ContainerRequest, given: CpuAllocation): CpusLeft {
  const all = given.cpus.union(given.held);
  if (all.isEmpty) return draft;
  return {
    free: draft.free.difference(all),
    taken: cpusTaken(draft, given),
    reusable: kind === 'init' ? draft.reusable.union(all) : draft.reusable.difference(all),
  };
}

/** CPUs that a container runs on, and those that it keeps others off. */
export interface CpuAllocation {
  readonly cpus: CpuSet;
  readonly held: CpuSet;
}

const NOTHING: CpuAllocation = Object.freeze({ cpus: CpuSet.EMPTY, held: CpuSet.EMPTY });

// Too few whole cores are found out by those who take them, whose reason it is: as the kubelet's.
function hintChoices(draft: Draft, count: number): ReturnType<typeof choices> {
  const chosen = choices(draft, count);
  if (chosen.from.size >= count || draft.placement.holdSiblings) return chosen;
  return { machine: chosen.machine, from: draft.free.union(draft.reusable) };
}

/** The hints for a container, or for the whole pod; undefined: no preference. */
export function cpuHints(draft: Draft, container: ContainerRequest | undefined): Hints | undefined {
  const { pod, placement, reusable } = draft;
  const count = container ? exclusiveCount(pod, container, placement) : podExclusiveCount(pod, placement);
  if (count === 0) return undefined;
  const { machine, from } = hintChoices(draft, count);
  if (count > machine.cpus.size) return HintFamily.from([], machine.numaNodes);
  return {
    kind: 'cpus',
    call: {
      topology: machine.handle,
      available: from.words,
      reusable: reusable.intersection(from).words,
      count,
      alignBySocket: placement.alignBySocket,
    },
  };
}

/** The CPUs of these NUMA nodes; `alignBySocket`: of all sockets that have any of them. */
export function cpusOfNodes({ nodes, packages }: Topology, wanted: NodeSet, alignBySocket: boolean): CpuSet {
  let near = CpuSet.EMPTY;
  // By index: to iterate over a list that is frozen makes an object for each member.
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
  return allocateCount(draft, exclusiveCount(draft.pod, container, draft.placement), hint);
}

/** As {@link allocateCpus}, so many. @throws as that */
export function allocateCount(draft: Draft, count: number, hint: TopologyHint): CpuAllocation {
  const { topology, placement } = draft;
  if (count === 0) return NOTHING;
  if (draft.kept) return grownCpus(draft, draft.kept, hint, count);
  checkSmtAlignment(draft, count);
  const { machine, from } = choices(draft, count);
  if (from.size < count) throw insufficient(draft, count, from);
  const cpus = takeNearFirst(machine, placement, from, nearCpus(machine, placement, hint.nodes), count);
  return { cpus, held: placement.holdSiblings ? siblings(topology, cpus) : CpuSet.EMPTY };
}

/**
 * Takes some of what is allocated already, wherever it is.
 * @throws ERR_SMT_ALIGNMENT where these must be whole cores, and cannot
 */
export function takeOf(draft: Draft, from: CpuSet, count: number): CpuSet {
  const { topology, placement } = draft;
  checkMultiple(draft, count);
  const machine = placement.holdSiblings ? oneThreadACore(topology) : topology;
  return takeNearFirst(machine, placement, from, CpuSet.EMPTY, count);
}

function nearCpus(machine: Topology, { alignBySocket }: Placement, nodes: NodeSet | null): CpuSet {
  return nodes === null ? CpuSet.EMPTY : cpusOfNodes(machine, nodes, alignBySocket);
}

/**
 * What a container that is resized keeps of its CPUs: all of them, or by best fit as many as it
 * shall have. Those that the kubelet has taken go first, where no cores have to be whole.
 */
export function keptCpus(
  { topology, placement, state }: Pick<Draft, 'topology' | 'placement' | 'state'>,
  { cpus, held }: CpuAllocation,
  count: number,
): CpuAllocation {
  if (count >= cpus.size) return { cpus, held };
  const machine = placement.holdSiblings ? oneThreadACore(topology) : topology;
  const own = cpus.difference(kubeletCpus(state.kubelet));
  const isEnough = own.size >= count && !mustBeWhole(placement) && !placement.holdSiblings;
  const left = takeCpus(machine, placement, isEnough ? own : cpus, count);
  return {
    cpus: left,
    held: placement.holdSiblings ? siblings(topology, left).intersection(held) : CpuSet.EMPTY,
  };
}

/**
 * What a container keeps whose CPUs have gone offline: those that are online, in whole cores where
 * it must be. Siblings are held on.
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
    // One that is offline itself comes back to where it was. Where offline CPUs are, only the
    // record tells for certain.
    const coreOf = new Map(state.cpus.map(([cpu, core]) => [cpu, core]));
    const lost = new Set([...cpus.difference(here)].map((cpu) => coreOf.get(cpu)));
    const away = [...held.difference(online)].filter((cpu) => !lost.has(coreOf.get(cpu)));
    return { cpus: here, held: siblings(topology, here).intersection(held).union(CpuSet.from(away)) };
  }
  return { cpus: mustBeWhole(placement) ? topology.wholeCores(here) : here, held };
}

// What is kept, and as many free CPUs as are missing.
function grownCpus(draft: Draft, kept: CpuAllocation, hint: TopologyHint, count: number): CpuAllocation {
  const { topology, placement } = draft;
  const missing = count - kept.cpus.size;
  checkMultiple(draft, count);
  if (missing <= 0) return kept;
  checkSmtAlignment(draft, missing);
  const { machine, from } = choices({ ...draft, reusable: CpuSet.EMPTY }, missing);
  if (from.size < missing) throw insufficient(draft, missing, from);
  // Without a hint near what it has.
  const nodes = hint.nodes ?? topology.nodesOf(kept.cpus);
  const more = takeNearFirst(machine, placement, from, nearCpus(machine, placement, nodes), missing);
  const held = placement.holdSiblings ? siblings(topology, more) : CpuSet.EMPTY;
  return { cpus: kept.cpus.union(more), held: kept.held.union(held) };
}

// `near`: CPUs of the machine, whether they are among `from` or not.
function takeNearFirst(
  machine: Topology,
  placement: Placement,
  from: CpuSet,
  near: CpuSet,
  count: number,
): CpuSet {
  const most = Math.min(sizeOfBoth(from, near), count);
  const cpus = takeParts(machine, placement, from, near, most, count, false);
  const mayNotBeWhole = mustBeWhole(placement) && !machine.isUniform;
  if (!mayNotBeWhole || machine.wholeCores(cpus).equals(cpus)) return cpus;
  // Cores of different sizes may not add up on the near nodes alone; if they do nowhere, there is
  // no need to try.
  const tryTake = (nearby: number) => {
    try {
      return takeParts(machine, placement, from, near, nearby, count, true);
    } catch (error) {
      if (error instanceof NumalignError && error.code === 'ERR_INSUFFICIENT_CPUS') return undefined;
      throw error;
    }
  };
  const anywhere = tryTake(0);
  for (let nearby = most; anywhere && nearby > 0; nearby--) {
    const whole = tryTake(nearby);
    if (whole) return whole;
  }
  if (anywhere) return anywhere;
  throw new UnevenCores(count, from);
}

// So many of those that are near, and the rest anywhere.
function takeParts(
  machine: Topology,
  placement: Placement,
  from: CpuSet,
  near: CpuSet,
  nearby: number,
  count: number,
  isWhole: boolean,
): CpuSet {
  const aligned = takeCpus(machine, placement, from, nearby, isWhole, near);
  if (nearby === count) return aligned;
  return aligned.union(takeCpus(machine, placement, from.difference(aligned), count - aligned.size, isWhole));
}

/**
 * Takes `count` of `from` by best fit; `isWhole`: in whole cores whatever their sizes; `within`:
 * only those that are in it too.
 * @throws ERR_INSUFFICIENT_CPUS
 */
export function takeCpus(
  machine: Topology,
  placement: Placement,
  from: CpuSet,
  count: number,
  isWhole = false,
  within: CpuSet = from,
): CpuSet {
  if (count === 0) return CpuSet.EMPTY;
  const words = native.bestFit({
    topology: machine.handle,
    available: from.words,
    within: within.words,
    count,
    spread: placement.distributeAcrossCores,
    alignByL3: placement.preferAlignByUncoreCache,
    distributeAcrossNuma: placement.distributeAcrossNuma && !isWhole,
    cpuGroupSize: placement.fullPhysicalCpusOnly ? machine.cpusPerCore : 1,
    wholeCores: isWhole,
    anyRestInL3: placement.kubeletVersion !== 'v1.32' || placement.choice === 'joint',
  });
  return new CpuSet(words);
}

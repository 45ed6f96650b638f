// The assignment of a pod with placed containers, as it goes on record. Pure.
import {
  type ContainerAssignment,
  JUST_PLACED,
  type PodAmounts,
  type PodAssignment,
} from '../account/pod-assignment.js';
import { ISOLATED_OPTION, MOVE_OPTION } from '../account/pod-holdings.js';
import { placementOptions } from '../input/placement.js';
import type { AdmissionRequest } from '../input/requests/request.js';
import { CpuSet } from '../machine/cpu-set.js';
import { mixedMilli } from './cpus/cpu-choices.js';
import { cpusTaken } from './cpus/cpu-manager.js';
import type { MemoryDraft } from './draft/memory-draft.js';
import { type ContainerAllocation, memoryOf, type Progress } from './progress.js';

/**
 * REQUIRES: all containers are placed. The order of the members is that of `decodePod`: V8 has one shape
 * for both.
 */
export function podAssignment(progress: Progress): PodAssignment {
  const { question, pool, draft, allocations, booking } = progress;
  const { request, owner, uid, now } = question;
  const { pod, placement } = request;
  const isFromIsolatedPool = pool === 'isolated' && !cpusTaken(draft, allocations.at(-1)!.cpus).isEmpty;
  const { containers: memory } = memoryOf(progress);
  return {
    uid,
    name: pod.name ?? uid,
    namespace: pod.namespace,
    containers: allocations.map((each) => assignmentOf(each, memory, request.isForCaller, booking !== null)),
    resources: pod.resources ? amountsOf(pod.resources) : undefined,
    policy: placement.topologyPolicy,
    scope: placement.scope,
    options:
      isFromIsolatedPool || request.movesWhenTaken
        ? optionsOf(request, isFromIsolatedPool)
        : placementOptions(placement),
    owner,
    // The record omits a zero.
    mixed: mixedMilli(pod, placement) || undefined,
    elastic: request.elastic,
    quiet: request.quiet,
    movable: request.movable,
    moves: undefined,
    enforcement: JUST_PLACED.enforcement,
    upcoming: JUST_PLACED.upcoming,
    transfer: JUST_PLACED.transfer,
    formerOwner: JUST_PLACED.formerOwner,
    admittedAt: now,
    booking,
    unknown: NOTHING_UNKNOWN,
  };
}

const optionsOf = ({ placement, movesWhenTaken }: AdmissionRequest, isFromIsolatedPool: boolean) => ({
  ...placementOptions(placement),
  ...(isFromIsolatedPool && { [ISOLATED_OPTION]: true }),
  ...(movesWhenTaken && { [MOVE_OPTION]: true }),
});

// Keeps only the pod-level requests and limits, which identify the request later.
const amountsOf = ({ requests, limits }: PodAmounts): PodAmounts => ({ requests, limits });

// `containers`: their final memory. Later containers take over the memory of init containers.
function assignmentOf(
  { container: { name, kind, requests }, hint, cpus: { cpus, held }, devices, isShared }: ContainerAllocation,
  containers: MemoryDraft['containers'],
  started: boolean,
  isBookedWhole: boolean,
): ContainerAssignment {
  const memory = containers.find((container) => container.name === name)?.blocks ?? NO_BLOCKS;
  const isLeft = kind === 'init';
  return {
    name,
    kind,
    started,
    request: requests,
    cpus,
    held,
    hint,
    devices,
    memory,
    reusable: isLeft ? leftBy(cpus.union(held), memory, devices, isBookedWhole) : NOTHING_LEFT,
    isolation: cpus.isEmpty ? 'host' : isShared ? 'pod' : 'container',
    unknown: NOTHING_UNKNOWN,
  };
}

// Memory and CPUs that are booked for the whole pod stay with the pod.
function leftBy(
  cpus: CpuSet,
  memory: ContainerAssignment['memory'],
  devices: ContainerAssignment['devices'],
  isBookedWhole: boolean,
): ContainerAssignment['reusable'] {
  return isBookedWhole ? { ...NOTHING_LEFT, devices } : { cpus, memory, devices };
}

const NOTHING_UNKNOWN: ContainerAssignment['unknown'] = Object.freeze({});
const NO_BLOCKS: ContainerAssignment['memory'] = Object.freeze([]);
const NOTHING_LEFT: ContainerAssignment['reusable'] = Object.freeze({
  cpus: CpuSet.EMPTY,
  memory: NO_BLOCKS,
  devices: Object.freeze({}),
});

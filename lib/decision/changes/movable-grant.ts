// MovableGrant: a grant that may move, and the request for its new place. Pure.
import { type MemoryBlock, memoryBlocks } from '../../account/booked-memory.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import {
  type CpuPool,
  devicesOf,
  hasParts,
  nodesOf,
  poolOf,
  presentCpus,
  runningCpus,
} from '../../account/pod-holdings.js';
import { type Placement, placementUnder, recordedPlacement } from '../../input/placement.js';
import type { PodRequest } from '../../input/pods/pod-resources.js';
import { MILLI } from '../../input/pods/resource-amounts.js';
import type { AdmissionRequest } from '../../input/requests/request.js';
import { type CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { Question } from '../question.js';
import { type NodesToTry, nodesToTry } from './nodes-to-try.js';

export interface MovableGrant {
  readonly pod: PodAssignment;
  /** All CPUs that the grant keeps from others. */
  readonly cpus: CpuSet;
  readonly pool: CpuPool;
  readonly memory: readonly MemoryBlock[];
  readonly bytes: number;
  readonly memoryNodes: NodeSet;
  /** The nodes of its CPUs and memory. */
  readonly nodes: NodeSet;
  readonly placement: Placement;
  readonly request: AdmissionRequest;
  /** The same request without memory. */
  readonly requestOfCpus: AdmissionRequest;
  readonly targets: readonly MoveTarget[];
}

/** NUMA nodes that a grant may move to. */
export interface MoveTarget {
  readonly to: NodesToTry;
  /** True if the grant's memory is on these nodes already, and stays. */
  readonly keepsMemory: boolean;
}

/**
 * Describes a grant that consents to moves; undefined if it cannot move: a change of it is under
 * way, it has init containers, it is booked by pod-level resources, it has lost a NUMA node, or it
 * has memory alone, so that nothing runs on it that takes its pages along.
 */
export function movableGrant(question: Question, pod: PodAssignment): MovableGrant | undefined {
  const { topology, state } = question;
  const { containers, resources, upcoming, booking } = pod;
  const isBookedWhole = resources !== undefined || (booking !== null && !hasParts(pod));
  if (upcoming !== null || isBookedWhole || containers.some(({ kind }) => kind === 'init')) return undefined;
  const cpus = presentCpus(pod);
  if (cpus.isEmpty) return undefined;
  const memory = memoryBlocks([pod]);
  const memoryNodes = nodesOf(memory);
  const nodes = topology.nodesOf(cpus).union(memoryNodes);
  const isHere =
    cpus.isSubsetOf(topology.cpus) && [...nodes].every((node) => topology.numaNodes.includes(node));
  if (!isHere) return undefined;
  const recorded = recordedPlacement(pod, question.request.placement);
  const placement = placementUnder(state.settings.kubeletVersion, {
    ...recorded,
    // Under `none` any place will do, but hints lead the decision to the intended one.
    topologyPolicy: recorded.topologyPolicy === 'none' ? 'best-effort' : recorded.topologyPolicy,
    cpuPolicy: 'static',
    memoryPolicy: memory.length === 0 ? 'None' : 'Static',
    initContainerLookahead: false,
  });
  const request = requestOf(pod, placement);
  return {
    pod,
    cpus,
    pool: poolOf(pod),
    memory,
    bytes: memory.reduce((sum, { bytes }) => sum + bytes, 0),
    memoryNodes,
    nodes,
    placement,
    request,
    requestOfCpus: { ...request, placement: { ...placement, memoryPolicy: 'None' } },
    targets: targetsOf(topology, pod, nodes, memoryNodes),
  };
}

// Targets have at most as many nodes as the grant has now, and are near each of its devices.
function targetsOf(
  topology: Topology,
  pod: PodAssignment,
  { size }: NodeSet,
  memoryNodes: NodeSet,
): readonly MoveTarget[] {
  const exclude = pod.movable?.exclude ?? NodeSet.EMPTY;
  const devices = Object.values(devicesOf(pod))
    .flat()
    .flatMap((device) => (device.nodes === null ? [] : [NodeSet.from(device.nodes)]));
  const targets: MoveTarget[] = [];
  for (const to of nodesToTry(topology).list) {
    const { nodes } = to;
    if (nodes.size > size) break;
    if (nodes.intersects(exclude) || !devices.every((near) => near.intersects(nodes))) continue;
    targets.push({ to, keepsMemory: memoryNodes.isSubsetOf(nodes) });
  }
  return targets;
}

// A Guaranteed pod, because only these have exclusive CPUs or memory. Devices are not requested,
// because they stay.
function requestOf(pod: PodAssignment, placement: Placement): AdmissionRequest {
  const { uid, name, containers, owner } = pod;
  const guaranteed = { uid, name, qosClass: 'Guaranteed', notGuaranteed: null, resources: null } as const;
  const common = {
    owner: 'persistent',
    placement,
    enforcement: {},
    // Assumes that other processes have the same cpuset as this one.
    isForCaller: owner.kind === 'process',
    wait: false,
  } as const;
  if (!hasParts(pod)) {
    const all = containers.map(({ name, kind, request }) => ({ name, kind, requests: request }));
    return { ...common, pod: { ...guaranteed, containers: all } satisfies PodRequest };
  }
  const parts = containers
    .slice(0, -1)
    .map(({ name: part, request }) => ({ name: part, cpu: request.cpu! / MILLI }));
  const requests = { ...containers.at(-1)!.request, cpu: runningCpus(pod).size * MILLI };
  return { ...common, parts, pod: { ...guaranteed, containers: [{ name, kind: 'app', requests }] } };
}

/** The CPUs that the process behind a request may use. */
export const usableCpus = (
  { topology }: Pick<Question, 'topology'>,
  { isForCaller }: AdmissionRequest,
): CpuSet => (isForCaller ? topology.allowed : topology.cpus);

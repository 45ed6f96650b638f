// MovableGrant: a grant that may move, and as what it asks for its new place. Pure.
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
import type { PodRequest } from '../../input/pods/pod-request.js';
import { MILLI } from '../../input/pods/resource-amounts.js';
import type { AdmissionRequest } from '../../input/request.js';
import { type CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import type { Question } from '../question.js';
import { type NodeChoice, nodeChoices } from './node-choices.js';

export interface MovableGrant {
  readonly pod: PodAssignment;
  /** All that it keeps from others. */
  readonly cpus: CpuSet;
  readonly pool: CpuPool;
  readonly memory: readonly MemoryBlock[];
  readonly bytes: number;
  readonly memoryNodes: NodeSet;
  /** Of its CPUs and its memory. */
  readonly nodes: NodeSet;
  readonly placement: Placement;
  readonly request: AdmissionRequest;
  /** As one that asks for no memory. */
  readonly requestOfCpus: AdmissionRequest;
  readonly targets: readonly Target[];
}

/** NUMA nodes that a grant may move to. */
export interface Target {
  readonly choice: NodeChoice;
  /** Its memory is there already, and stays. */
  readonly keepsMemory: boolean;
}

/**
 * What is to be known of a grant that consents to be moved; undefined: it cannot move after all.
 * That is one that is about to change, whose init containers have left something, that is booked by
 * resources of a whole pod, or that has lost a NUMA node.
 */
export function movableGrant(question: Question, pod: PodAssignment): MovableGrant | undefined {
  const { topology, state } = question;
  const { containers, resources, upcoming, booking } = pod;
  const isBookedWhole = resources !== undefined || (booking !== null && !hasParts(pod));
  if (upcoming !== null || isBookedWhole || containers.some(({ kind }) => kind === 'init')) return undefined;
  const cpus = presentCpus(pod);
  const memory = memoryBlocks([pod]);
  const memoryNodes = nodesOf(memory);
  const nodes = topology.nodesOf(cpus).union(memoryNodes);
  const isHere =
    cpus.isSubsetOf(topology.cpus) && [...nodes].every((node) => topology.numaNodes.includes(node));
  if (nodes.isEmpty || !isHere) return undefined;
  const recorded = recordedPlacement(pod, question.request.placement);
  const placement = placementUnder(state.settings.kubeletVersion, {
    ...recorded,
    // Any place will do for `none`, and hints lead to the one that is meant.
    topologyPolicy: recorded.topologyPolicy === 'none' ? 'best-effort' : recorded.topologyPolicy,
    cpuPolicy: cpus.isEmpty ? 'none' : 'static',
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

// As many nodes as it has at most, and near each of its devices.
function targetsOf(
  topology: Topology,
  pod: PodAssignment,
  { size }: NodeSet,
  memoryNodes: NodeSet,
): readonly Target[] {
  const exclude = pod.movable?.exclude ?? NodeSet.EMPTY;
  const devices = Object.values(devicesOf(pod))
    .flat()
    .flatMap((device) => (device.nodes === null ? [] : [NodeSet.from(device.nodes)]));
  const targets: Target[] = [];
  for (const choice of nodeChoices(topology).list) {
    const { nodes } = choice;
    if (nodes.size > size) break;
    if (nodes.intersects(exclude) || !devices.every((near) => near.intersects(nodes))) continue;
    targets.push({ choice, keepsMemory: memoryNodes.isSubsetOf(nodes) });
  }
  return targets;
}

// A Guaranteed pod, as all are that have CPUs or memory of their own. Its devices stay, and are not
// asked for.
function requestOf(pod: PodAssignment, placement: Placement): AdmissionRequest {
  const { uid, name, containers, owner } = pod;
  const guaranteed = { uid, name, qosClass: 'Guaranteed', notGuaranteed: null, resources: null } as const;
  const asked = {
    owner: 'persistent',
    placement,
    enforcement: {},
    // The cpuset of another process is taken for that of this one.
    isForCaller: owner.kind === 'process',
    wait: false,
  } as const;
  if (!hasParts(pod)) {
    const all = containers.map(({ name: own, kind, request }) => ({ name: own, kind, requests: request }));
    return { ...asked, pod: { ...guaranteed, containers: all } satisfies PodRequest };
  }
  const parts = containers
    .slice(0, -1)
    .map(({ name: part, request }) => ({ name: part, cpu: request.cpu! / MILLI }));
  const requests = { ...containers.at(-1)!.request, cpu: runningCpus(pod).size * MILLI };
  return { ...asked, parts, pod: { ...guaranteed, containers: [{ name, kind: 'app', requests }] } };
}

/** The CPUs that a request can have at all, as far as its process is concerned. */
export const usableCpus = (
  { topology }: Pick<Question, 'topology'>,
  { isForCaller }: AdmissionRequest,
): CpuSet => (isForCaller ? topology.allowed : topology.cpus);

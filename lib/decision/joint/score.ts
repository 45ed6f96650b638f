// Score: how good a placement of a whole pod is. Pure.
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';
import { type Given, memoryOf, type Progress } from '../progress.js';

/** The less of it the better, the first that differs deciding. */
export interface Score {
  /** Containers that have anything anywhere. */
  readonly placed: number;
  /** NUMA nodes, container by container, and of the pod. */
  readonly ofContainers: number;
  readonly ofPod: number;
  /** How far these are from each other. */
  readonly containersApart: number;
  readonly podApart: number;
}

/** The sum of the distances between each two of these nodes, both ways. */
export function distanceOf({ distances, numaNodes }: Topology, nodes: NodeSet): number {
  if (!distances || nodes.size < 2) return 0;
  const at = [...nodes].map((node) => numaNodes.indexOf(node)).filter((position) => position >= 0);
  let sum = 0;
  for (const a of at) for (const b of at) if (a !== b) sum += distances[a * numaNodes.length + b]!;
  return sum;
}

/** REQUIRES: all containers are placed. */
export function scoreOf(progress: Progress): Score {
  const { topology } = progress.draft;
  const each = progress.given.map((given) => nodesOfContainer(progress, given));
  const pod = each.reduce((all, nodes) => all.union(nodes), NodeSet.EMPTY);
  let [placed, ofContainers, containersApart] = [0, 0, 0];
  for (const nodes of each) {
    if (!nodes.isEmpty) placed++;
    ofContainers += nodes.size;
    containersApart += distanceOf(topology, nodes);
  }
  return { placed, ofContainers, ofPod: pod.size, containersApart, podApart: distanceOf(topology, pod) };
}

function nodesOfContainer(progress: Progress, { container, cpus, devices }: Given): NodeSet {
  const { topology } = progress.draft;
  const blocks = memoryOf(progress).containers.find(({ name }) => name === container.name)?.blocks ?? [];
  const memory = blocks.flatMap(({ nodes }) => nodes);
  const own = cpus.cpus.isEmpty && cpus.held.isEmpty ? CpuSet.EMPTY : cpus.cpus.union(cpus.held);
  const near = topology.nodesOf(own).union(NodeSet.from(memory));
  // A device that is near several nodes is near as soon as one of them is in.
  const far = Object.values(devices)
    .flat()
    .flatMap(({ nodes }) => (nodes?.some((node) => near.has(node)) ? [] : (nodes ?? []).slice(0, 1)));
  return near.union(NodeSet.from(far));
}

const ORDER = ['ofContainers', 'ofPod', 'containersApart', 'podApart'] as const;

export function isBetter(one: Score, other: Score): boolean {
  for (const by of ORDER) if (one[by] !== other[by]) return one[by] < other[by];
  return false;
}

/** Whether no placement can be better: all of the pod is on one NUMA node. */
export const isBest = ({ ofPod }: Score): boolean => ofPod <= 1;

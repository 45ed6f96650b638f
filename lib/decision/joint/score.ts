// Score: rates a placement of a whole pod. Pure.
import { NodeSet } from '../../machine/cpu-set.js';
import type { Topology } from '../../machine/topology.js';

/** Lower is better. The first member that differs decides. */
export interface Score {
  /** The number of containers that have nodes. */
  readonly placed: number;
  /** The number of NUMA nodes, summed over containers, and of the pod. */
  readonly ofContainers: number;
  readonly ofPod: number;
  /** The distances among these nodes. */
  readonly containersApart: number;
  readonly podApart: number;
  /** The number of NUMA nodes of CPUs and memory, without those of devices, summed over containers. */
  readonly ofCpusAndMemory: number;
}

/** The NUMA nodes of what a container has. */
export interface ContainerNodes {
  readonly all: NodeSet;
  readonly cpusAndMemory: NodeSet;
}

/** The sum of the distances between all pairs of these nodes, both ways. */
export function distanceOf({ distances, numaNodes }: Topology, nodes: NodeSet): number {
  if (!distances || nodes.size < 2) return 0;
  const at = [...nodes].map((node) => numaNodes.indexOf(node)).filter((position) => position >= 0);
  let sum = 0;
  for (const a of at) for (const b of at) if (a !== b) sum += distances[a * numaNodes.length + b]!;
  return sum;
}

/** `each`: by container. */
export function scoreOf(topology: Topology, each: readonly ContainerNodes[]): Score {
  const pod = each.reduce((nodes, { all }) => nodes.union(all), NodeSet.EMPTY);
  let [placed, ofContainers, containersApart, ofCpusAndMemory] = [0, 0, 0, 0];
  for (const { all, cpusAndMemory } of each) {
    if (!all.isEmpty) placed++;
    ofContainers += all.size;
    containersApart += distanceOf(topology, all);
    ofCpusAndMemory += cpusAndMemory.size;
  }
  const podApart = distanceOf(topology, pod);
  return { placed, ofContainers, ofPod: pod.size, containersApart, podApart, ofCpusAndMemory };
}

const ORDER = ['ofContainers', 'ofPod', 'containersApart', 'podApart', 'ofCpusAndMemory'] as const;

export function isBetter(one: Score, other: Score): boolean {
  for (const by of ORDER) if (one[by] !== other[by]) return one[by] < other[by];
  return false;
}

/** True if no placement can be better: the whole pod is on one NUMA node. */
export const isBest = ({ ofPod }: Score): boolean => ofPod <= 1;

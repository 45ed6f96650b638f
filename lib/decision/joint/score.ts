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
}

/** The sum of the distances between all pairs of these nodes, both ways. */
export function distanceOf({ distances, numaNodes }: Topology, nodes: NodeSet): number {
  if (!distances || nodes.size < 2) return 0;
  const at = [...nodes].map((node) => numaNodes.indexOf(node)).filter((position) => position >= 0);
  let sum = 0;
  for (const a of at) for (const b of at) if (a !== b) sum += distances[a * numaNodes.length + b]!;
  return sum;
}

/** `each`: the nodes of each container. */
export function scoreOf(topology: Topology, each: readonly NodeSet[]): Score {
  const pod = each.reduce((all, nodes) => all.union(nodes), NodeSet.EMPTY);
  let [placed, ofContainers, containersApart] = [0, 0, 0];
  for (const nodes of each) {
    if (!nodes.isEmpty) placed++;
    ofContainers += nodes.size;
    containersApart += distanceOf(topology, nodes);
  }
  return { placed, ofContainers, ofPod: pod.size, containersApart, podApart: distanceOf(topology, pod) };
}

const ORDER = ['ofContainers', 'ofPod', 'containersApart', 'podApart'] as const;

export function isBetter(one: Score, other: Score): boolean {
  for (const by of ORDER) if (one[by] !== other[by]) return one[by] < other[by];
  return false;
}

/** True if no placement can be better: the whole pod is on one NUMA node. */
export const isBest = ({ ofPod }: Score): boolean => ofPod <= 1;

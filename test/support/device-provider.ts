// A hint provider of plain devices, each on one NUMA node, like a device plugin.

import type { HintProvider, HintRequest, TopologyHint } from '../../lib/entries/topology.js';
import type { NodeSet } from '../../lib/index.js';
import { subsetsOf } from './subsets.js';

export class DeviceProvider implements HintProvider {
  readonly name: string;
  /** NUMA node of each device. */
  readonly nodeOf: ReadonlyMap<string, number>;
  /** Pod and container of each device in use. */
  readonly holders = new Map<string, string>();
  readonly #numaNodes: readonly number[];

  /** `devices`: how many there are on each NUMA node. */
  constructor(name: string, devices: readonly number[]) {
    this.name = name;
    this.#numaNodes = devices.map((_, node) => node);
    this.nodeOf = new Map(
      devices.flatMap((n, node) => Array.from({ length: n }, (_, i) => [`${name}-${node}.${i}`, node])),
    );
  }

  /** Takes a device out of service. */
  lose(device: string): void {
    this.holders.set(device, 'none: it is not available');
  }

  free(): string[] {
    return [...this.nodeOf.keys()].filter((device) => !this.holders.has(device));
  }

  hints({ requests }: HintRequest) {
    const count = requests[this.name] ?? 0;
    if (count === 0) return null;
    const on = (devices: Iterable<string>, mask: NodeSet) =>
      [...devices].filter((device) => mask.has(this.nodeOf.get(device)!)).length;
    const masks = [...subsetsOf(this.#numaNodes)];
    const least = masks.find((mask) => on(this.nodeOf.keys(), mask) >= count)?.size;
    const hints = masks
      .filter((mask) => on(this.free(), mask) >= count)
      .map((mask): TopologyHint => ({ nodes: mask, preferred: mask.size === least }));
    return { [this.name]: hints };
  }

  allocate({ pod, container, requests }: HintRequest, { nodes }: TopologyHint): void {
    const isNear = (device: string) => nodes === null || nodes.has(this.nodeOf.get(device)!);
    const sorted = this.free().sort((a, b) => Number(isNear(b)) - Number(isNear(a)));
    const count = requests[this.name] ?? 0;
    if (sorted.length < count) throw new Error(`${count} ${this.name} asked for, ${sorted.length} free`);
    for (const device of sorted.slice(0, count)) this.holders.set(device, `${pod.uid}/${container}`);
  }

  release({ pod: { uid } }: { pod: { uid: string } }): void {
    for (const [device, holder] of this.holders)
      if (holder.startsWith(`${uid}/`)) this.holders.delete(device);
  }

  amounts() {
    const on = (devices: Iterable<string>, node: number) =>
      [...devices].filter((device) => this.nodeOf.get(device) === node).length;
    const nodes = this.#numaNodes.map((node) => ({
      node,
      free: on(this.free(), node),
      possible: on(this.nodeOf.keys(), node),
    }));
    return { [this.name]: nodes };
  }

  /** NUMA nodes of the devices that a container has. */
  nodesOf(uid: string, container: string): number[] {
    const devices = [...this.holders].filter(([, holder]) => holder === `${uid}/${container}`);
    return [...new Set(devices.map(([device]) => this.nodeOf.get(device)!))].sort();
  }
}

// Inventory: the CPUs or cores of a machine as devices. Pure.
import { CpuSet } from 'numalign';
import type { Topology } from 'numalign/topology';

/** What a device is: a CPU (a hardware thread), or a core with all its threads. */
export type DeviceUnit = 'cpu' | 'core';
export const DEVICE_UNITS: readonly DeviceUnit[] = ['cpu', 'core'];

export interface CpuDevice {
  /** `cpu3`; `core2`, where 2 is the core's lowest CPU. */
  readonly id: string;
  readonly cpus: CpuSet;
  /** NUMA nodes. */
  readonly nodes: readonly number[];
}

/** The machine as devices, ascending. */
export function devicesOf(topology: Topology, unit: DeviceUnit): CpuDevice[] {
  const groups =
    unit === 'core'
      ? topology.cores
      : topology.locations.map(({ cpu }) => ({ id: cpu, cpus: CpuSet.of(cpu) }));
  return groups.map(({ id, cpus }) => ({ id: `${unit}${id}`, cpus, nodes: [...topology.nodesOf(cpus)] }));
}

/** What numalign says of the CPUs at one moment. */
export interface CpuAccount {
  /** Online, managed, neither reserved nor isolated: granted or not. */
  readonly grantable: CpuSet;
  /** Those that nobody holds. */
  readonly free: CpuSet;
  /** Those that allocations of the plugin hold. */
  readonly allocated: CpuSet;
}

/** Whether the kubelet may give a device to a container, or has. */
export function isHealthy({ cpus }: CpuDevice, { grantable, free, allocated }: CpuAccount): boolean {
  return cpus.isSubsetOf(grantable) && cpus.isSubsetOf(free.union(allocated));
}

/** The devices on offer, as far as they were ever grantable. */
export class Inventory {
  readonly #unit: DeviceUnit;
  #topology: Topology | undefined;
  #present: readonly CpuDevice[] = [];
  // What has gone offline stays a device, and is unhealthy.
  readonly #known = new Map<string, CpuDevice>();

  constructor(unit: DeviceUnit) {
    this.#unit = unit;
  }

  /** Takes in what the machine has and may grant now. */
  update(topology: Topology, { grantable }: CpuAccount): void {
    if (topology !== this.#topology) {
      this.#topology = topology;
      this.#present = devicesOf(topology, this.#unit);
    }
    for (const device of this.#present) {
      if (this.#known.has(device.id) || device.cpus.isSubsetOf(grantable)) this.#known.set(device.id, device);
    }
  }

  /** @returns undefined where there never was such a device */
  find(id: string): CpuDevice | undefined {
    return this.#known.get(id);
  }

  get ids(): readonly string[] {
    return [...this.#known.keys()];
  }

  get devices(): readonly CpuDevice[] {
    return [...this.#known.values()].sort((a, b) => a.cpus.first! - b.cpus.first!);
  }
}

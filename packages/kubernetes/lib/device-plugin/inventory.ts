// Inventory: the CPUs or cores of a machine as devices. Pure.
import { CpuSet } from 'numalign';
import type { Topology } from 'numalign/topology';

/** What a device is: a CPU (a hardware thread), or a core with all its threads. */
export type DeviceUnit = 'cpu' | 'core';
export const DEVICE_UNITS: readonly DeviceUnit[] = ['cpu', 'core'];

export interface CpuDevice {
  /** `cpu3`; or `core2`, with the core's lowest CPU. */
  readonly id: string;
  readonly cpus: CpuSet;
  /** The ids of its NUMA nodes. */
  readonly nodes: readonly number[];
}

/** The devices of the machine, ascending. */
export function devicesOf(topology: Topology, unit: DeviceUnit): CpuDevice[] {
  const groups =
    unit === 'core'
      ? topology.cores
      : topology.locations.map(({ cpu }) => ({ id: cpu, cpus: CpuSet.of(cpu) }));
  return groups.map(({ id, cpus }) => ({ id: `${unit}${id}`, cpus, nodes: [...topology.nodesOf(cpus)] }));
}

/** What numalign says about the CPUs at one moment. */
export interface CpuAccount {
  /**
   * The CPUs that are online, managed, and neither reserved nor isolated, whether granted or not.
   */
  readonly grantable: CpuSet;
  /** CPUs without a holder. */
  readonly free: CpuSet;
  /** CPUs that allocations of the plugin hold. */
  readonly allocated: CpuSet;
}

/** Whether the kubelet may assign a device to a container, or has done so. */
export function isHealthy({ cpus }: CpuDevice, { grantable, free, allocated }: CpuAccount): boolean {
  return cpus.isSubsetOf(grantable) && cpus.isSubsetOf(free.union(allocated));
}

/** The offered devices: those that were grantable at some time. */
export class Inventory {
  readonly #unit: DeviceUnit;
  #topology: Topology | undefined;
  #present: readonly CpuDevice[] = [];
  // A device that goes offline stays, but is unhealthy.
  readonly #offered = new Map<string, CpuDevice>();

  constructor(unit: DeviceUnit) {
    this.#unit = unit;
  }

  /** Updates it with what the machine has and may grant now. */
  update(topology: Topology, { grantable }: CpuAccount): void {
    if (topology !== this.#topology) {
      this.#topology = topology;
      this.#present = devicesOf(topology, this.#unit);
    }
    for (const device of this.#present) {
      if (this.#offered.has(device.id) || device.cpus.isSubsetOf(grantable))
        this.#offered.set(device.id, device);
    }
  }

  /** @returns undefined if there never was such a device */
  find(id: string): CpuDevice | undefined {
    return this.#offered.get(id);
  }

  get ids(): readonly string[] {
    return [...this.#offered.keys()];
  }

  get devices(): readonly CpuDevice[] {
    return [...this.#offered.values()].sort((a, b) => a.cpus.first! - b.cpus.first!);
  }
}

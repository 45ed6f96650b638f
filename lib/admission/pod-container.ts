// PodContainer: a container on record, as users see it.
import type { MemoryBlock } from '../account/booked-memory.js';
import type { ContainerAssignment, DeviceAssignment, Isolation } from '../account/pod-assignment.js';
import { MILLI } from '../input/values/quantity.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';

/** What a container of an admitted pod has. */
export interface PodContainer {
  readonly name: string;
  readonly kind: 'init' | 'sidecar' | 'app';
  /**
   * Where it runs: on CPUs of its own, in the shared pool of its pod, or in that of the machine.
   */
  readonly isolation: Isolation;
  /** Its exclusive CPUs, or the shared pool of its pod; null: it runs in that of the machine. */
  readonly cpus: CpuSet | null;
  /** How much of the shared pool is booked for it beside `cpus`, in CPUs: 0.5, say; else 0. */
  readonly mixed: number;
  /** CPUs that are kept from others though nothing runs on them. */
  readonly held: CpuSet;
  /** What the Topology Manager decided for it. */
  readonly hint: TopologyHint;
  /**
   * Its memory and hugepages, each type on NUMA nodes that share it; empty where none is booked for
   * it.
   */
  readonly memory: readonly MemoryBlock[];
  /** Its devices by resource. */
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

/** A container on record, as users see it. What is on record does not change: it needs no copy. */
export function podContainer(assignment: ContainerAssignment): PodContainer {
  const { name, kind, isolation, cpus, held, hint, memory, devices, request } = assignment;
  const { cpu = 0 } = isolation === 'container' ? request : {};
  return Object.freeze({
    name,
    kind,
    isolation,
    cpus: cpus.isEmpty ? null : cpus,
    mixed: (cpu % MILLI) / MILLI,
    held,
    hint: Object.freeze(hint),
    memory: Object.freeze(memory),
    devices: Object.freeze(devices),
  });
}

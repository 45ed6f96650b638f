// PodContainer: the public view of a container on record.
import type { MemoryBlock } from '../account/booked-memory.js';
import type { ContainerAssignment, DeviceAssignment, Isolation } from '../account/pod-assignment.js';
import { MILLI } from '../input/values/quantity.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { TopologyHint } from '../machine/hints.js';

/** What a container of an admitted pod has. */
export interface PodContainer {
  /** The name of the container. */
  readonly name: string;
  /** What kind of container it is. */
  readonly kind: 'init' | 'sidecar' | 'app';
  /**
   * Where it runs: on its own CPUs (`container`), in the shared pool of its pod (`pod`) or of the
   * machine (`host`).
   */
  readonly isolation: Isolation;
  /** Its exclusive CPUs, or the shared pool of its pod; null in the shared pool of the machine. */
  readonly cpus: CpuSet | null;
  /** How many CPUs it has booked in the shared pool besides `cpus`, such as 0.5; else 0. */
  readonly mixed: number;
  /** CPUs that it keeps idle. */
  readonly held: CpuSet;
  /** The hint that the Topology Manager decided. */
  readonly hint: TopologyHint;
  /** Its booked memory and hugepages: each type on NUMA nodes that share it. */
  readonly memory: readonly MemoryBlock[];
  /** Its devices by resource. */
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

/** The public view of a container. It copies nothing: what is on record does not change. */
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

// Inventory: the pods and containers that the runtime has reported. Pure.
import type { CpuSet } from 'numalign';
import type { PodSandbox } from '../nri/messages.js';
import type { ContainerRequest } from '../placement/container-request.js';
import type { Placement } from './container-placement.js';

export interface KnownContainer {
  readonly id: string;
  readonly podId: string;
  /** Namespace, pod and container, for people. */
  readonly title: string;
  /** The path in the runtime's form; see cgroups/. */
  readonly cgroupsPath: string;
  readonly request: ContainerRequest;
  /** Null if it runs in the shared pool, and nothing is booked for it. */
  readonly placement: Placement | null;
  /** The CPUs last written by the runtime or by numalign; null if unknown. */
  readonly cpus: CpuSet | null;
}

/** Whether a container has exclusive CPUs. */
export const isExclusive = ({ placement }: KnownContainer): boolean => placement?.cpus != null;

export class Inventory {
  readonly #pods = new Map<string, PodSandbox>();
  readonly #containers = new Map<string, KnownContainer>();
  // Keyed by the pod's id.
  readonly #allocations = new Map<string, Map<string, Placement>>();

  get containers(): readonly KnownContainer[] {
    return [...this.#containers.values()];
  }

  find(id: string): KnownContainer | undefined {
    return this.#containers.get(id);
  }

  put(container: KnownContainer): void {
    const { id, podId, placement } = container;
    this.#containers.set(id, container);
    if (!placement?.isAllocation) return;
    const allocations = this.#allocations.get(podId) ?? new Map();
    this.#allocations.set(podId, allocations.set(placement.uid, placement));
  }

  remove(id: string): void {
    this.#containers.delete(id);
  }

  findPod(id: string): PodSandbox | undefined {
    return this.#pods.get(id);
  }

  putPod(pod: PodSandbox): void {
    this.#pods.set(pod.id, pod);
  }

  removePod(id: string): void {
    this.#pods.delete(id);
    this.#allocations.delete(id);
  }

  ofPod(podId: string): readonly KnownContainer[] {
    return this.containers.filter((container) => container.podId === podId);
  }

  /**
   * What the device plugin has booked for containers of this sandbox, ended or not, and of no other
   * sandbox: the pod may have a new one.
   */
  allocations(podId: string): readonly Placement[] {
    const others = [...this.#allocations].filter(([id]) => id !== podId);
    const uids = new Set(others.flatMap(([, placements]) => [...placements.keys()]));
    return [...(this.#allocations.get(podId)?.values() ?? [])].filter(({ uid }) => !uids.has(uid));
  }

  clear(): void {
    this.#pods.clear();
    this.#containers.clear();
    this.#allocations.clear();
  }
}

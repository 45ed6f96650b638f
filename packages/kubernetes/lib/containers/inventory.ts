// Inventory: the pods and containers that the runtime has reported. Pure.
import type { CpuSet } from 'numalign';
import type { PodSubject } from '../events/event.js';
import type { PodSandbox } from '../nri/messages.js';
import type { ContainerRequest } from '../placement/container-request.js';
import type { Placement } from './container-placement.js';

export interface KnownContainer {
  readonly id: string;
  readonly podId: string;
  /** Namespace, pod and container, for people. */
  readonly title: string;
  readonly subject: PodSubject;
  /** The path in the runtime's form; see cgroups/. */
  readonly cgroupsPath: string;
  readonly request: ContainerRequest;
  /** Null if it runs in the shared pool, and nothing is booked for it. */
  readonly placement: Placement | null;
  /** The CPUs last written by the runtime or by numalign; null if unknown. */
  readonly cpus: CpuSet | null;
}

/** A grant that belongs to a pod. */
export interface PodGrant {
  readonly placement: Placement;
  /** Of the last container that had it; empty if unknown. */
  readonly cgroupsPath: string;
}

/** Whether a container has exclusive CPUs. */
export const isExclusive = ({ placement }: KnownContainer): boolean => placement?.cpus != null;

export class Inventory {
  readonly #pods = new Map<string, PodSandbox>();
  readonly #containers = new Map<string, KnownContainer>();
  // What belongs to pods, by the id of the sandbox and the grant's uid.
  readonly #ofPods = new Map<string, Map<string, PodGrant>>();
  // Of all containers that a sandbox has had.
  readonly #names = new Map<string, Set<string>>();

  get containers(): readonly KnownContainer[] {
    return [...this.#containers.values()];
  }

  find(id: string): KnownContainer | undefined {
    return this.#containers.get(id);
  }

  put(container: KnownContainer): void {
    const { id, podId, placement, cgroupsPath } = container;
    this.#containers.set(id, container);
    if (placement?.isOfPod) this.keep(podId, { placement, cgroupsPath });
  }

  /** Keeps what belongs to a pod until the pod is removed, whichever of its containers end. */
  keep(podId: string, grant: PodGrant, { isKnown = true } = {}): void {
    const grants = this.#ofPods.get(podId) ?? new Map();
    if (!isKnown && grants.has(grant.placement.uid)) return;
    this.#ofPods.set(podId, grants.set(grant.placement.uid, grant));
  }

  /** Whether a container of this name is the first in its sandbox; it is not the first afterwards. */
  isFirst(podId: string, name: string): boolean {
    const names = this.#names.get(podId) ?? new Set();
    this.#names.set(podId, names);
    return names.size < names.add(name).size;
  }

  /** The grant is released. */
  forget(podId: string, { uid }: Placement): void {
    this.#ofPods.get(podId)?.delete(uid);
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
    this.#ofPods.delete(id);
    this.#names.delete(id);
  }

  /** Whether the pod has another sandbox: a kubelet makes a new one if one has failed. */
  hasOtherSandbox({ id, uid }: PodSandbox): boolean {
    return [...this.#pods.values()].some((pod) => pod.uid === uid && pod.id !== id);
  }

  ofPod(podId: string): readonly KnownContainer[] {
    return this.containers.filter((container) => container.podId === podId);
  }

  /** What belongs to this sandbox's pod, its containers ended or not. */
  keptBy(podId: string): readonly PodGrant[] {
    return [...(this.#ofPods.get(podId)?.values() ?? [])];
  }

  /** Whether a grant is kept for another sandbox, too: its pod goes on there. */
  isKeptByOther(podId: string, { uid }: Placement): boolean {
    return [...this.#ofPods].some(([id, grants]) => id !== podId && grants.has(uid));
  }

  /** The grants of the pod's containers that have ended. */
  leftIn(podId: string): readonly PodGrant[] {
    const uids = new Set(this.containers.map(({ placement }) => placement?.uid));
    return this.keptBy(podId).filter(
      ({ placement: { uid, isAllocation } }) => !isAllocation && !uids.has(uid),
    );
  }

  clear(): void {
    this.#pods.clear();
    this.#containers.clear();
    this.#ofPods.clear();
    this.#names.clear();
  }
}

// Inventory: the pods and containers that the runtime has reported. Pure.
import type { CpuSet } from 'numalign';
import type { PodSubject } from '../events/event.js';
import type { PodSandbox } from '../nri/messages.js';
import { type Neighbours, neighbourOf } from '../placement/affine-places.js';
import type { PlacedNeighbour } from '../placement/affinity.js';
import type { ContainerRequest } from '../placement/container-request.js';
import type { Placement } from './container-placement.js';

/** What is kept of a request: the rest is on record by then, and a node has hundreds. */
export type KnownRequest = Pick<ContainerRequest, 'memory' | 'chosenCpus' | 'millis' | 'affinity' | 'rule'>;

export const knownRequest = (request: KnownRequest): KnownRequest => {
  const { memory, chosenCpus, millis, affinity, rule } = request;
  return { memory, chosenCpus, millis, affinity, rule };
};

export interface KnownContainer {
  readonly id: string;
  readonly podId: string;
  /** Namespace, pod and container, for people. */
  readonly title: string;
  readonly subject: PodSubject;
  /** The path in the runtime's form; see cgroups/. */
  readonly cgroupsPath: string;
  readonly request: KnownRequest;
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

/** What is kept of a pod: a node has hundreds, and annotations can be long. */
type KnownPod = Pick<PodSandbox, 'id' | 'uid' | 'name' | 'namespace' | 'labels'>;

/** Whether a container has exclusive CPUs. */
export const isExclusive = ({ placement }: KnownContainer): boolean => placement?.cpus != null;

export class Inventory implements Neighbours {
  readonly #pods = new Map<string, KnownPod>();
  readonly #containers = new Map<string, KnownContainer>();
  // What belongs to pods, by the id of the sandbox and the grant's uid.
  readonly #ofPods = new Map<string, Map<string, PodGrant>>();
  // Of all containers that a sandbox has had.
  readonly #names = new Map<string, readonly string[]>();

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
    const names = this.#names.get(podId) ?? [];
    if (names.includes(name)) return false;
    this.#names.set(podId, [...names, name]);
    return true;
  }

  /** The grant is released. */
  forget(podId: string, { uid }: Placement): void {
    this.#ofPods.get(podId)?.delete(uid);
  }

  remove(id: string): void {
    this.#containers.delete(id);
  }

  putPod({ id, uid, name, namespace, labels }: PodSandbox): void {
    this.#pods.set(id, { id, uid, name, namespace, labels });
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

  /** A pod's new sandbox has what its earlier ones have kept that have no containers: they have ended. */
  succeed({ id, uid }: PodSandbox): void {
    for (const earlier of this.#pods.values()) {
      if (earlier.uid !== uid || earlier.id === id || this.ofPod(earlier.id).length > 0) continue;
      for (const grant of this.keptBy(earlier.id)) {
        // Devices are the pod's until the sandbox is removed.
        if (grant.placement.isAllocation) continue;
        this.keep(id, grant);
        this.forget(earlier.id, grant.placement);
      }
    }
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

  /** The grants of the pod's containers that have ended; what a whole pod has is in use until its end. */
  leftIn(podId: string): readonly PodGrant[] {
    const uids = new Set(this.containers.map(({ placement }) => placement?.uid));
    return this.keptBy(podId).filter(
      ({ placement: { uid, isAllocation, partOfPod } }) =>
        !isAllocation && partOfPod === null && !uids.has(uid),
    );
  }

  get hasAparter(): boolean {
    return this.containers.some(({ request }) => request.affinity?.some(({ key }) => key === 'apart'));
  }

  // A container that has ended keeps its CPUs for its next start.
  *neighboursOf(uid: string): Generator<PlacedNeighbour> {
    for (const { podId, subject, placement, request } of this.containers) {
      const pod = this.#pods.get(podId);
      if (!pod || !placement?.cpus || placement.uid === uid) continue;
      const { affinity = [] } = request;
      yield { ...neighbourOf(pod, subject.container!), cpus: placement.cpus, affinity };
    }
    for (const pod of this.#pods.values()) {
      for (const { placement } of this.leftIn(pod.id)) {
        if (!placement.cpus || placement.uid === uid) continue;
        const container = placement.uid.slice(placement.uid.lastIndexOf('.') + 1);
        yield { ...neighbourOf(pod, container), cpus: placement.cpus, affinity: [] };
      }
    }
  }

  clear(): void {
    this.#pods.clear();
    this.#containers.clear();
    this.#ofPods.clear();
    this.#names.clear();
  }
}

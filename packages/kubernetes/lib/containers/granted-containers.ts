// GrantedContainers: containers with a record. A grant belongs to the cgroup of its container's pod,
// and ends with the pod's sandbox; without a kubelet, to the container's own, and ends with it.
import { dirname } from 'node:path';
import type { CpuSet, GrantInfo, StateChange } from 'numalign';
import { isNumalignError } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { Container, ContainerUpdate, PodSandbox } from '../nri/messages.js';
import type { AffinePlaces } from '../placement/affine-places.js';
import { grantsOf } from '../placement/allocation.js';
import { type ContainerRequest, grantUid } from '../placement/container-request.js';
import { type Placement, update } from './container-placement.js';
import type { Grants } from './grants.js';
import type { Inventory, KnownContainer, PodGrant } from './inventory.js';
import { fieldsOf } from './reports.js';
import type { RuntimeUpdates } from './runtime-updates.js';

const isGrantOf = (grant: GrantInfo, { uid, isAllocation, claimGrants }: Placement) =>
  isAllocation ? grantsOf(uid, [grant]).length > 0 : grant.uid === uid || claimGrants.includes(grant.uid);

/** A grant that was made and released since the last change is in neither of its lists. */
const mayConcern = ({ removed, changed, added, sharedPool }: StateChange, placement: Placement) => {
  const meet = (cpus: CpuSet) => placement.cpus !== null && !placement.cpus.intersection(cpus).isEmpty;
  return (
    [...removed, ...changed.map(({ before }) => before)].some((grant) => isGrantOf(grant, placement)) ||
    [sharedPool, ...added.map(({ cpus }) => cpus)].some(meet)
  );
};

const isSame = (before: Placement, now: Placement | null) =>
  now !== null && `${now.cpus} ${now.memoryNodes}` === `${before.cpus} ${before.memoryNodes}`;

const isConflict = (error: unknown) => isNumalignError(error, 'ERR_POD_CONFLICT');

export interface GrantedContainersOptions {
  readonly inventory: Inventory;
  readonly grants: Grants;
  readonly cpusets: CpusetFiles;
  readonly runtimeUpdates: RuntimeUpdates;
  readonly affinePlaces: AffinePlaces;
  readonly log: Log;
}

export class GrantedContainers {
  readonly #inventory: Inventory;
  readonly #grants: Grants;
  readonly #cpusets: CpusetFiles;
  readonly #runtimeUpdates: RuntimeUpdates;
  readonly #affinePlaces: AffinePlaces;
  readonly #log: Log;
  // Grants that this process changes itself.
  readonly #resizing = new Set<string>();

  constructor(options: GrantedContainersOptions) {
    const { inventory, grants, cpusets, runtimeUpdates, affinePlaces, log } = options;
    this.#affinePlaces = affinePlaces;
    this.#runtimeUpdates = runtimeUpdates;
    this.#inventory = inventory;
    this.#grants = grants;
    this.#cpusets = cpusets;
    this.#log = log;
  }

  /** The updates for a plugin's answer that put each exclusive container on its recorded CPUs. */
  updates(): ContainerUpdate[] {
    return this.#inventory.containers
      .filter(({ placement, cpus }) => placement?.cpus && !cpus?.equals(placement.cpus))
      .map((container) => {
        const { cpus, memoryNodes } = container.placement!;
        this.#inventory.put({ ...container, cpus });
        return update(container.id, cpus!, memoryNodes, true);
      });
  }

  /**
   * The container's place, with the CPUs and memory of `request`.
   * @throws ERR_NOT_RESIZABLE if that is not a whole number of CPUs, or the grant is the whole pod's;
   *   like {@link Grants.resize}
   */
  async resize(container: KnownContainer, target: ContainerRequest): Promise<Placement | null> {
    const { placement, title, request } = container;
    if (!placement?.cpus || placement.isAllocation || placement.claimGrants.length > 0) return placement;
    const isSame = target.exclusiveCpus === placement.cpus.size && target.memory === request.memory;
    if (isSame) return placement;
    if (placement.partOfPod !== null)
      throw new NodeError('ERR_NOT_RESIZABLE', `${title} has its CPUs and memory with its whole pod`, {
        value: target.pod,
        valid: 'the amounts that it was created with',
      });
    if (target.within && target.exclusiveCpus > placement.cpus.size) {
      const text = `${title} has CPUs of ${target.within} by the rule ${target.rule?.name}, and cannot get more`;
      throw new NodeError('ERR_NOT_RESIZABLE', text, {
        value: target.exclusiveCpus,
        valid: `at most ${placement.cpus.size} CPUs, or a new container`,
      });
    }
    if (target.exclusiveCpus > 0) {
      this.#resizing.add(placement.uid);
      try {
        return await this.#grants.resize(placement, target);
      } finally {
        this.#resizing.delete(placement.uid);
      }
    }
    throw new NodeError('ERR_NOT_RESIZABLE', `${title} has exclusive CPUs, which must be a whole number`, {
      value: target.pod,
      valid: 'a whole number of CPUs in a Guaranteed pod',
    });
  }

  /**
   * The place of a new container. One that starts again gets what it had. At the first one of its
   * name, what the pod's ended containers have left is free: they are init containers, as a kubelet
   * creates all others at once.
   * @throws like {@link Grants.place}
   */
  async place(pod: PodSandbox, container: Container, request: ContainerRequest): Promise<Placement | null> {
    const left = this.#inventory
      .leftIn(pod.id)
      .filter(({ cgroupsPath }) => this.#cpusets.isLeft(cgroupsPath));
    const uid = grantUid(pod, container);
    const own = left.find(({ placement }) => placement.uid === uid);
    if (this.#inventory.isFirst(pod.id, container.name) && !own) await this.#free(pod, left);
    const isFirst = this.#inventory.keptBy(pod.id).length === 0 && !this.#grants.find(pod, container);
    const whole = isFirst ? await this.#grants.wholeOf(pod, container, request) : undefined;
    const placeWithin = (choice?: CpuSet) => this.#grants.place(pod, container, request, { whole, choice });
    // What is on record has a place, whatever is near it now.
    const place = () =>
      this.#grants.find(pod, container)
        ? placeWithin()
        : this.#affinePlaces.place(pod, container, whole?.request ?? request, placeWithin, whole?.names);
    try {
      return await place();
    } catch (error) {
      if (!own || !isConflict(error)) throw error;
      // Its amounts have changed.
      await this.#free(pod, [own]);
      return place();
    }
  }

  async #free({ id }: PodSandbox, left: readonly PodGrant[]): Promise<void> {
    const placements = left.map(({ placement }) => placement);
    await this.#grants.free(placements);
    for (const placement of placements) this.#inventory.forget(id, placement);
  }

  /** Keeps the grants of containers that ended while this plugin did not run. Never throws. */
  keepOf(pods: readonly PodSandbox[]): void {
    try {
      for (const [{ id }, placement] of this.#grants.ofPods(this.#withoutEnded(pods)))
        this.#inventory.keep(id, { placement, cgroupsPath: '' }, { isKnown: false });
    } catch (error) {
      this.#log('warn', `grants of ended containers are unknown: ${(error as Error).message}`);
    }
  }

  /**
   * A runtime also lists sandboxes that have ended. One of several is known by its process, which only
   * some runtimes report, or by its containers.
   */
  #withoutEnded(pods: readonly PodSandbox[]): readonly PodSandbox[] {
    const isLiving = ({ id, pid }: PodSandbox) => pid > 0 || this.#inventory.ofPod(id).length > 0;
    const living = new Set(pods.filter(isLiving).map(({ uid }) => uid));
    return pods.filter((pod) => isLiving(pod) || !living.has(pod.uid));
  }

  /** The sandbox has ended, and with it its containers: releases what belongs to the pod. */
  async endPod(podId: string, { withAllocations = false } = {}): Promise<void> {
    for (const { id } of this.#inventory.ofPod(podId)) await this.end(id);
    for (const { placement } of this.#inventory.keptBy(podId)) {
      if (placement.isAllocation && !withAllocations) continue;
      // An ended sandbox keeps nothing back when the other one ends.
      this.#inventory.forget(podId, placement);
      if (!this.#inventory.isKeptByOther(podId, placement)) await this.#grants.end(placement);
    }
  }

  /**
   * Hands each grant to its container's cgroup, or its pod's. Never rejects because of a grant:
   * that is logged.
   */
  async setOwners(containers: readonly KnownContainer[]): Promise<void> {
    for (const container of containers)
      if (container.placement) await this.#setOwner(container, container.placement);
  }

  async #setOwner({ id, title, subject, cgroupsPath }: KnownContainer, placement: Placement): Promise<void> {
    const folder = this.#cpusets.folder(cgroupsPath);
    try {
      await this.#grants.setOwner(placement, placement.isOfPod ? dirname(folder) : folder);
    } catch (error) {
      // The container's last process has ended, and a plugin that starts at this moment may never
      // be notified.
      if (this.#cpusets.isEmpty(cgroupsPath)) return this.end(id);
      this.#log(
        'warn',
        `the grant of ${title} does not belong to its cgroup: ${(error as Error).message}`,
        fieldsOf(subject),
      );
    }
  }

  /** The container has ended: releases its grant, unless that belongs to the pod. */
  async end(id: string): Promise<void> {
    const placement = this.#inventory.find(id)?.placement;
    this.#inventory.remove(id);
    if (placement && !placement.isOfPod) await this.#grants.end(placement);
  }

  /**
   * Containers have what is on record now. One whose grant was released runs in the shared pool; the
   * caller moves it there.
   */
  followRecord(change: StateChange): void {
    this.#follow((placement) => mayConcern(change, placement));
  }

  /** Containers with this grant of a claim are where it is now. */
  followMove(uid: string): void {
    this.#follow(({ claimGrants }) => claimGrants.includes(uid));
  }

  #follow(mayConcern: (placement: Placement) => boolean): void {
    for (const container of this.#inventory.containers) {
      const { placement, title, subject, id, podId } = container;
      if (!placement || this.#resizing.has(placement.uid) || !mayConcern(placement)) continue;
      const current = this.#grants.current(placement);
      if (isSame(placement, current)) continue;
      if (!current) this.#inventory.forget(podId, placement);
      this.#inventory.put({ ...container, placement: current });
      const now = current?.cpus ? `it has CPUs ${current.cpus}` : 'it runs in the shared pool';
      this.#log('warn', `the grant of ${title} was changed or released: ${now}`, {
        ...fieldsOf(subject),
        id,
      });
      if (current?.cpus) this.#move(container, current);
    }
  }

  /** A container that runs in the shared pool has its own place from now on. */
  settle(container: KnownContainer, placement: Placement): void {
    const settled = { ...container, placement };
    this.#inventory.put(settled);
    if (placement.cpus) this.#move(settled, placement);
    void this.setOwners([settled]);
  }

  // Others may have its former CPUs by now. It has no cgroup before it starts and after it has ended.
  #move(container: KnownContainer, { cpus, memoryNodes }: Placement): void {
    const { id, title, subject, cgroupsPath } = container;
    const moved = { ...this.#inventory.find(id)!, cpus };
    this.#inventory.put(moved);
    const error = this.#cpusets.write(cgroupsPath, cpus!);
    if (!memoryNodes.isEmpty) this.#cpusets.writeMems(cgroupsPath, memoryNodes);
    const isUrgent = error !== undefined && error !== 'ENOENT';
    if (isUrgent)
      this.#log(
        'warn',
        `only the runtime can move ${title} from CPUs ${container.cpus} to ${cpus}: ${error}`,
        {
          ...fieldsOf(subject),
          id,
        },
      );
    this.#runtimeUpdates.owe(moved, { isUrgent });
  }
}

// GrantedContainers: containers with a record. Each grant belongs to its container's cgroup, and
// ends with the container.
import { dirname } from 'node:path';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { ContainerUpdate } from '../nri/messages.js';
import type { ContainerRequest } from '../placement/container-request.js';
import { type Placement, update } from './container-placement.js';
import type { Grants } from './grants.js';
import type { Inventory, KnownContainer } from './inventory.js';

export interface GrantedContainersOptions {
  readonly inventory: Inventory;
  readonly grants: Grants;
  readonly cpusets: CpusetFiles;
  readonly log: Log;
}

export class GrantedContainers {
  readonly #inventory: Inventory;
  readonly #grants: Grants;
  readonly #cpusets: CpusetFiles;
  readonly #log: Log;

  constructor({ inventory, grants, cpusets, log }: GrantedContainersOptions) {
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
   * @throws ERR_NOT_RESIZABLE if that is not a whole number of CPUs; like {@link Grants.resize}
   */
  async resize(container: KnownContainer, target: ContainerRequest): Promise<Placement | null> {
    const { placement, title, request } = container;
    if (!placement?.cpus || placement.isAllocation) return placement;
    const isSame = target.exclusiveCpus === placement.cpus.size && target.memory === request.memory;
    if (isSame) return placement;
    if (target.exclusiveCpus > 0) return this.#grants.resize(placement, target);
    throw new NodeError('ERR_NOT_RESIZABLE', `${title} has exclusive CPUs, which must be a whole number`, {
      value: target.pod,
      valid: 'a whole number of CPUs in a Guaranteed pod',
    });
  }

  /**
   * Hands each grant to its container's cgroup. Never rejects because of a grant: that is logged.
   */
  async setOwners(containers: readonly KnownContainer[]): Promise<void> {
    for (const container of containers)
      if (container.placement) await this.#setOwner(container, container.placement);
  }

  async #setOwner({ id, title, cgroupsPath }: KnownContainer, placement: Placement): Promise<void> {
    const folder = this.#cpusets.folder(cgroupsPath);
    try {
      await this.#grants.setOwner(placement, placement.isAllocation ? dirname(folder) : folder);
    } catch (error) {
      // The container's last process has ended, and a plugin that starts at this moment may never
      // be notified.
      if (this.#cpusets.isEmpty(cgroupsPath)) return this.end(id);
      this.#log('warn', `the grant of ${title} does not belong to its cgroup: ${(error as Error).message}`);
    }
  }

  /** The container has ended: releases its grant. An allocation belongs to the pod. */
  async end(id: string): Promise<void> {
    const placement = this.#inventory.find(id)?.placement;
    if (placement && !placement.isAllocation) await this.#grants.end(placement);
    this.#inventory.remove(id);
  }
}

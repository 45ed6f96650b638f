// GrantedContainers: those for which something is on record. Each grant belongs to its container's
// cgroup, and ends with the container.
import { dirname } from 'node:path';
import { NodeError } from '../base/errors.js';
import type { Log } from '../base/log.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { ContainerUpdate } from '../nri/messages.js';
import type { ContainerRequest } from '../placement/container-request.js';
import type { Grants } from './grants.js';
import type { Inventory, KnownContainer } from './inventory.js';
import { type Placement, update } from './placement.js';

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

  /** For an answer of the plugin: puts each exclusive container on the CPUs that are on record. */
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
   * The container's place once it has as many CPUs and as much memory as `asked` says.
   * @throws ERR_NOT_RESIZABLE where that is no whole number of CPUs; as {@link Grants.resize}
   */
  async resize(known: KnownContainer, asked: ContainerRequest): Promise<Placement | null> {
    const { placement, title, request } = known;
    if (!placement?.cpus || placement.isAllocation) return placement;
    const isSame = asked.exclusiveCpus === placement.cpus.size && asked.memory === request.memory;
    if (isSame) return placement;
    if (asked.exclusiveCpus > 0) return this.#grants.resize(placement, asked);
    throw new NodeError('ERR_NOT_RESIZABLE', `${title} has exclusive CPUs, which are whole ones`, {
      value: asked.pod,
      valid: 'a whole number of CPUs, of a Guaranteed pod',
    });
  }

  /** Hands each grant to the container's cgroup. Never rejects for a grant: that is logged. */
  async setOwners(containers: readonly KnownContainer[]): Promise<void> {
    for (const known of containers) if (known.placement) await this.#setOwner(known, known.placement);
  }

  async #setOwner({ id, title, cgroupsPath }: KnownContainer, placement: Placement): Promise<void> {
    const folder = this.#cpusets.folder(cgroupsPath);
    try {
      await this.#grants.setOwner(placement, placement.isAllocation ? dirname(folder) : folder);
    } catch (error) {
      // Its last process has ended, which a plugin that comes at this moment may never hear.
      if (this.#cpusets.isEmpty(cgroupsPath)) return this.end(id);
      this.#log('warn', `the grant of ${title} is not its cgroup's: ${(error as Error).message}`);
    }
  }

  /** The container has ended: its grant is given back; an allocation is its pod's. */
  async end(id: string): Promise<void> {
    const placement = this.#inventory.find(id)?.placement;
    if (placement && !placement.isAllocation) await this.#grants.end(placement);
    this.#inventory.remove(id);
  }
}

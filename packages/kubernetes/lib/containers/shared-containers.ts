// SharedContainers: containers in the shared pool leave CPUs that become exclusive, and return when
// these are released.
import type { CpuSet } from 'numalign';
import type { Log } from '../base/log.js';
import { isOfSystemd } from '../cgroups/cgroup-path.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { ContainerUpdate } from '../nri/messages.js';
import { sharedCpus, update } from './container-placement.js';
import { type Inventory, isExclusive, type KnownContainer } from './inventory.js';
import { fieldsOf } from './reports.js';
import type { RuntimeUpdates } from './runtime-updates.js';

export interface SharedContainersOptions {
  readonly inventory: Inventory;
  readonly cpusets: CpusetFiles;
  readonly runtimeUpdates: RuntimeUpdates;
  readonly log: Log;
}

// Without the right to write cgroups, the runtime has to.
const MAY_NOT_WRITE: ReadonlySet<string> = new Set(['EROFS', 'EACCES', 'EPERM']);

export class SharedContainers {
  readonly #inventory: Inventory;
  readonly #cpusets: CpusetFiles;
  readonly #runtimeUpdates: RuntimeUpdates;
  readonly #log: Log;
  // Containers that were moved and not read back yet.
  readonly #unverified = new Set<string>();

  constructor({ inventory, cpusets, runtimeUpdates, log }: SharedContainersOptions) {
    this.#inventory = inventory;
    this.#cpusets = cpusets;
    this.#runtimeUpdates = runtimeUpdates;
    this.#log = log;
  }

  /**
   * The updates for a plugin's answer. The runtime applies them before it continues, and then knows
   * the CPUs of its containers.
   */
  updates(pool: CpuSet, exceptId?: string): ContainerUpdate[] {
    const updates = this.#misplaced(pool)
      .filter(({ container }) => container.id !== exceptId)
      .map(({ container, cpus }) => {
        this.#move(container, cpus);
        return update(container.id, cpus, undefined, true);
      });
    this.#runtimeUpdates.told(updates);
    return updates;
  }

  /**
   * Writes the cpusets directly, if no answer is due: a request to the runtime would wait for its
   * lock. What else writes the cgroup of a container is told later.
   */
  write(pool: CpuSet): void {
    for (const { container, cpus } of this.#misplaced(pool)) {
      const error = this.#cpusets.write(container.cgroupsPath, cpus);
      const isUrgent = error !== undefined && MAY_NOT_WRITE.has(error);
      // The runtime may still apply an earlier answer.
      if (error === undefined || isUrgent) {
        this.#move(container, cpus);
        if (isUrgent || isOfSystemd(container.cgroupsPath)) this.#runtimeUpdates.owe(container, { isUrgent });
      }
      // A container has no cgroup before it starts and after it has ended.
      else if (error !== 'ENOENT')
        this.#log('warn', `${container.title} stays on CPUs ${container.cpus}: ${error}`, {
          ...fieldsOf(container.subject),
          id: container.id,
        });
    }
  }

  /**
   * Compares the kernel's cpusets with what the runtime was told, after the runtime has applied it,
   * and writes those that differ. The runtime does not report failures of optional updates.
   */
  verify(pool: CpuSet): void {
    if (this.#unverified.size === 0) return;
    for (const id of this.#unverified) {
      const container = this.#inventory.find(id);
      const cpus = container && this.#cpusets.read(container.cgroupsPath);
      if (cpus && !container.cpus?.equals(cpus)) this.#inventory.put({ ...container, cpus });
    }
    this.write(pool);
    this.#unverified.clear();
  }

  #move(container: KnownContainer, cpus: CpuSet): void {
    this.#inventory.put({ ...container, cpus });
    this.#unverified.add(container.id);
  }

  #misplaced(pool: CpuSet): { readonly container: KnownContainer; readonly cpus: CpuSet }[] {
    return this.#inventory.containers
      .filter((container) => !isExclusive(container))
      .map((container) => ({ container, cpus: sharedCpus(pool, container.request.chosenCpus) }))
      .filter(({ container, cpus }) => !container.cpus?.equals(cpus));
  }
}

// SharedContainers: those that run in the shared pool leave CPUs that become somebody's, and come
// back when these are given back.
import type { CpuSet } from 'numalign';
import type { Log } from '../base/log.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { ContainerUpdate } from '../nri/messages.js';
import { type Inventory, isExclusive, type KnownContainer } from './inventory.js';
import { sharedCpus, update } from './placement.js';

export interface SharedContainersOptions {
  readonly inventory: Inventory;
  readonly cpusets: CpusetFiles;
  readonly log: Log;
}

export class SharedContainers {
  readonly #inventory: Inventory;
  readonly #cpusets: CpusetFiles;
  readonly #log: Log;
  // Containers that were moved, which has not been read back yet.
  readonly #unverified = new Set<string>();

  constructor({ inventory, cpusets, log }: SharedContainersOptions) {
    this.#inventory = inventory;
    this.#cpusets = cpusets;
    this.#log = log;
  }

  /**
   * For an answer of the plugin: the runtime carries it out before it goes on, and knows the CPUs of
   * its containers from then on.
   */
  updates(pool: CpuSet, exceptId?: string): ContainerUpdate[] {
    return this.#misplaced(pool)
      .filter(({ container }) => container.id !== exceptId)
      .map(({ container, cpus }) => {
        this.#move(container, cpus);
        return update(container.id, cpus, undefined, true);
      });
  }

  /**
   * Where nobody waits for an answer. The cpuset is written at once: a request to the runtime would
   * wait for its lock, and might come after an answer that has given some of these CPUs away.
   */
  write(pool: CpuSet): void {
    for (const { container, cpus } of this.#misplaced(pool)) {
      const error = this.#cpusets.write(container.cgroupsPath, cpus);
      // The runtime may still carry out what it was answered before.
      if (error === undefined) this.#move(container, cpus);
      // It has no cgroup before it starts, and none once it has ended.
      else if (error !== 'ENOENT')
        this.#log('warn', `${container.title} stays on CPUs ${container.cpus}: ${error}`, {
          container: container.id,
        });
    }
  }

  /**
   * The runtime has carried out what it was answered: compares the kernel's cpusets with that, and
   * writes those again that are different. It reports no failure of an optional update.
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
      .map((container) => ({ container, cpus: sharedCpus(pool, container.request.choice) }))
      .filter(({ container, cpus }) => !container.cpus?.equals(cpus));
  }
}

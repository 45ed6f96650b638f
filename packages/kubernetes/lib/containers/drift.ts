// Drift: cpusets of containers that another program changes, such as systemd at a reload. The kernel
// reports writes to the files of a cgroup (inotify(7)).
import { type FSWatcher, watch } from 'node:fs';
import type { Log } from '../base/log.js';
import type { CpusetFiles } from '../cgroups/cpuset-files.js';
import type { Inventory, KnownContainer } from './inventory.js';
import type { Reports } from './reports.js';
import type { RuntimeUpdates } from './runtime-updates.js';

export interface DriftOptions {
  readonly inventory: Inventory;
  readonly cpusets: CpusetFiles;
  readonly runtimeUpdates: RuntimeUpdates;
  readonly log: Log;
  readonly reports: Pick<Reports, 'repaired' | 'notRepaired'>;
}

const FILES: ReadonlySet<string | null> = new Set(['cpuset.cpus', 'cpuset.mems']);

// As often as a kubelet looks. A program that does not give way is answered this many times in it.
const ROUND_MS = 10_000;
const MOST_A_ROUND = 10;

interface Followed {
  /** Undefined if the kernel has no watch left: the container is looked at in rounds. */
  watcher: FSWatcher | undefined;
  /** Repairs in this round. */
  repairs: number;
  /** True if it was not looked at yet. */
  isNew: boolean;
  /** What was logged of the last repair that failed. */
  lastStay: string;
}

export class Drift {
  readonly #options: DriftOptions;
  readonly #followed = new Map<string, Followed>();
  #round: NodeJS.Timeout | undefined;
  #repairs = 0;

  constructor(options: DriftOptions) {
    this.#options = options;
  }

  /** How often a container was put back. */
  get repairs(): number {
    return this.#repairs;
  }

  close(): void {
    clearTimeout(this.#round);
    for (const { watcher } of this.#followed.values()) watcher?.close();
    this.#followed.clear();
  }

  /**
   * Looks at a container that has its cgroup whenever another program writes there, and at the end
   * of this round: the runtime may have to put it there first.
   */
  follow({ id, cgroupsPath }: KnownContainer): void {
    this.#endOthers();
    if (cgroupsPath === '') return;
    if (!this.#followed.has(id)) {
      const followed: Followed = { watcher: undefined, repairs: 0, isNew: true, lastStay: '' };
      this.#followed.set(id, followed);
      try {
        followed.watcher = watch(
          this.#options.cpusets.folder(cgroupsPath),
          { persistent: false },
          (_event, name) => FILES.has(name) && this.#look(id),
        );
        followed.watcher.on('error', () => {
          followed.watcher?.close();
          followed.watcher = undefined;
          this.#beginRound();
        });
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return void this.#followed.delete(id);
      }
    }
    this.#beginRound();
  }

  #endOthers(): void {
    for (const [id, { watcher }] of this.#followed) {
      if (this.#options.inventory.find(id)) continue;
      watcher?.close();
      this.#followed.delete(id);
    }
  }

  #beginRound(): void {
    this.#round ??= setTimeout(() => this.#endRound(), ROUND_MS).unref();
  }

  #endRound(): void {
    this.#round = undefined;
    this.#endOthers();
    for (const [id, followed] of this.#followed) {
      if (!followed.watcher) this.#beginRound();
      if (followed.watcher && followed.repairs === 0 && !followed.isNew) continue;
      Object.assign(followed, { repairs: 0, isNew: false });
      this.#look(id);
    }
  }

  #look(id: string): void {
    const { inventory, cpusets, reports } = this.#options;
    const [container, followed] = [inventory.find(id), this.#followed.get(id)];
    if (!container || !followed || followed.repairs >= MOST_A_ROUND) return;
    const { cgroupsPath, placement } = container;
    const cpus = placement?.cpus ?? container.cpus;
    if (!cpus) return;
    const mems = placement?.memoryNodes;
    const [foundCpus, foundMems] = [cpusets.read(cgroupsPath), cpusets.readMems(cgroupsPath)];
    const haveCpus = foundCpus === undefined || foundCpus.equals(cpus);
    const haveMems = foundMems === undefined || !mems || mems.isEmpty || foundMems.equals(mems);
    if (haveCpus && haveMems) return;
    const errors = [
      haveCpus ? undefined : cpusets.write(cgroupsPath, cpus),
      haveMems ? undefined : cpusets.writeMems(cgroupsPath, mems),
    ].filter((error) => error !== undefined);
    // It has just ended.
    if (errors.includes('ENOENT')) return;
    const nodes = foundMems?.isEmpty ? 'all NUMA nodes' : `NUMA nodes ${foundMems}`;
    const found = `on ${haveCpus ? `memory of ${nodes}` : `CPUs ${foundCpus}`}`;
    if (errors.length > 0) {
      const stay = `${found}: it stays there: ${errors.join(', ')}`;
      if (stay !== followed.lastStay) reports.notRepaired(container, stay);
      followed.lastStay = stay;
      return;
    }
    followed.lastStay = '';
    this.#repairs++;
    followed.repairs++;
    this.#beginRound();
    reports.repaired(container, `${found}: it is back on ${cpus}`);
    this.#options.runtimeUpdates.owe(container);
  }
}

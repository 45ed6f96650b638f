// Slices: the cpusets of the cgroups that a kubelet has made for its pods: the shared pool, and the
// CPUs of the containers inside. The kernel then keeps most containers that are created without
// numalign off the CPUs of others.
import { type FSWatcher, watch } from 'node:fs';
import { CpuSet, type Manager } from 'numalign';
import type { Log } from '../base/log.js';
import { cgroupPath } from '../cgroups/cgroup-path.js';
import type { KnownContainer } from '../containers/inventory.js';
import { parseAllocationName } from '../placement/allocation.js';
import type { SliceFiles } from './slice-files.js';
import { classSlices, slicesAbove, USUAL_SLICES } from './slice-paths.js';

export interface SlicesOptions {
  readonly manager: Manager;
  /** The prefix of the names of containers' grants. */
  readonly prefix: string;
  readonly files: SliceFiles;
  /** The containers that the runtime has reported. */
  readonly containers: () => readonly KnownContainer[];
  readonly log: Log;
}

// What the runtime was just told is applied by then.
const NARROW_MS = 300;
// While a container is about to be moved, and while another program writes.
const RETRY_MS = 1000;
const MOST_RETRIES = 10;

export class Slices {
  readonly #options: SlicesOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  readonly #failures = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #retries = 0;
  #isStarted = false;

  /** Only adds CPUs before {@link start}: what runs is unknown until then. */
  constructor(options: SlicesOptions) {
    this.#options = options;
    options.manager.on('change', this.#changed);
    this.#widen();
  }

  /** The runtime has reported its containers. */
  start(): void {
    this.#isStarted = true;
    this.#changed();
  }

  /** The slices stay as they are: that is what they are for. */
  close(): void {
    this.#options.manager.off('change', this.#changed);
    clearTimeout(this.#timer);
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#watchers.clear();
  }

  // Containers may be moved to any CPUs of the new pool right away.
  readonly #changed = (): void => {
    this.#widen();
    this.#retries = 0;
    if (this.#isStarted) this.#narrowAfter(NARROW_MS);
  };

  #narrowAfter(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#narrow(), ms).unref();
  }

  #found(): string[] {
    return slicesOf(this.#options.files, this.#options.containers());
  }

  #widen(): void {
    const { files } = this.#options;
    const granted = this.#granted();
    for (const slice of this.#found()) this.#report(slice, files.widen(slice, this.#cpusOf(slice, granted)));
  }

  #narrow(): void {
    const { files } = this.#options;
    const slices = this.#found();
    const [all, granted] = [new Set(slices), this.#granted()];
    const errors = slices.toReversed().map((slice) => {
      this.#watch(slice);
      const error = files.narrow(slice, this.#cpusOf(slice, granted), all);
      if (error !== 'EBUSY') this.#report(slice, error);
      return error;
    });
    if (!errors.includes('EBUSY')) return;
    if (this.#retries++ < MOST_RETRIES) this.#narrowAfter(RETRY_MS);
    else this.#report(slices[errors.toReversed().indexOf('EBUSY')]!, 'EBUSY');
  }

  /**
   * The pool, and what containers in the slice have. A grant whose container is not known yet, or any
   * more, is in each.
   */
  #cpusOf(slice: string, granted: CpuSet): CpuSet {
    const { manager, containers } = this.#options;
    const elsewhere = containers()
      .filter(({ cgroupsPath }) => !slicesAbove(cgroupPath(cgroupsPath)).includes(slice))
      .map(({ placement }) => placement?.cpus ?? CpuSet.EMPTY);
    return manager.sharedPool().union(elsewhere.reduce((rest, cpus) => rest.difference(cpus), granted));
  }

  /** What is granted to containers. */
  #granted(): CpuSet {
    const { manager, prefix } = this.#options;
    return manager
      .grants()
      .filter(({ name }) => name.startsWith(`${prefix}:`) || parseAllocationName(name) !== undefined)
      .reduce((all, { cpus }) => all.union(cpus), CpuSet.EMPTY);
  }

  // The kernel reports writes of others, such as of systemd at a reload.
  #watch(slice: string): void {
    if (this.#watchers.has(slice)) return;
    try {
      const watcher = watch(this.#options.files.folder(slice), { persistent: false }, (_event, name) => {
        if (name === 'cpuset.cpus' && !this.#isRight(slice)) this.#narrowAfter(RETRY_MS);
      });
      watcher.on('error', () => this.#unwatch(slice));
      this.#watchers.set(slice, watcher);
    } catch {
      // Without a watch, or without the slice, the next change looks at it.
    }
  }

  #unwatch(slice: string): void {
    this.#watchers.get(slice)?.close();
    this.#watchers.delete(slice);
  }

  #isRight(slice: string): boolean {
    return this.#options.files.read(slice)?.equals(this.#cpusOf(slice, this.#granted())) ?? false;
  }

  // Each error once, until it is over.
  #report(slice: string, error: string | undefined): void {
    const { log, files } = this.#options;
    if (error === this.#failures.get(slice)) return;
    if (error === undefined) this.#failures.delete(slice);
    else {
      this.#failures.set(slice, error);
      log('warn', `the cgroup ${slice} has CPUs ${files.read(slice) ?? 'of its parent'}: ${error}`, {
        cgroup: slice,
      });
    }
  }
}

/** The slices that exist, the outermost first. */
function slicesOf(files: SliceFiles, containers: readonly KnownContainer[]): string[] {
  const found = containers.flatMap(({ cgroupsPath }) => slicesAbove(cgroupPath(cgroupsPath)).slice(0, 1));
  const allPods = new Set([...USUAL_SLICES, ...found]);
  return [...allPods].flatMap((path) => [path, ...classSlices(path)]).filter((path) => files.exists(path));
}

/** Undoes what {@link Slices} has done: pods may use all CPUs again. */
export function resetSlices(files: SliceFiles, containers: readonly KnownContainer[], log: Log): void {
  for (const slice of slicesOf(files, containers)) {
    const error = files.reset(slice);
    if (error !== undefined)
      log('error', `the cgroup ${slice} keeps CPUs ${files.read(slice)}: ${error}`, { cgroup: slice });
  }
}

// SliceFiles: the cpusets of a kubelet's slices, and of the cgroups in them. In version 1, a cgroup
// must have all CPUs of those below it: what grows does so from above, what shrinks from below. In
// version 2, those below have what is common, so that only the slices are written.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet } from 'numalign';

export class SliceFiles {
  readonly #root: string;
  readonly #isUnified: boolean;

  /** `root`: the folder of the machine's cpuset hierarchy. */
  constructor(root: string) {
    this.#root = root;
    this.#isUnified = existsSync(join(root, 'cgroup.controllers'));
  }

  folder(slice: string): string {
    return join(this.#root, slice);
  }

  exists(slice: string): boolean {
    return existsSync(join(this.folder(slice), 'cpuset.cpus'));
  }

  /** The CPUs that are set for a slice; undefined: none, or it cannot be read. */
  read(slice: string): CpuSet | undefined {
    return cpusIn(this.folder(slice));
  }

  /** Adds CPUs to the slice, and to the pods in it. Returns the kernel's error. */
  widen(slice: string, cpus: CpuSet): string | undefined {
    const folder = this.folder(slice);
    const error = this.#add(folder, cpus);
    if (this.#isUnified || error !== undefined) return error;
    for (const pod of foldersIn(folder)) if (isPod(pod)) this.#add(join(folder, pod), cpus);
    return undefined;
  }

  /**
   * Takes all other CPUs from the slice. In version 1, also from what is in it, and is not among
   * `slices`; the kernel refuses (EBUSY) while a container there has others.
   */
  narrow(slice: string, cpus: CpuSet, slices: ReadonlySet<string>): string | undefined {
    const folder = this.folder(slice);
    if (!this.#isUnified) this.#narrowBelow(slice, cpus, slices);
    return this.#write(folder, cpus);
  }

  /** Gives the slice, and the pods in it, all CPUs of what it is in. Returns the kernel's error. */
  reset(slice: string): string | undefined {
    if (!this.exists(slice)) return undefined;
    // Kernels before 6.5 let no cpuset with processes be emptied (ENOSPC).
    if (this.#isUnified && tryWrite(this.folder(slice), '\n') === undefined) return undefined;
    const parent = dirname(this.folder(slice));
    const all = cpusIn(parent) ?? cpusIn(parent, 'cpuset.cpus.effective');
    return all && this.widen(slice, all);
  }

  #narrowBelow(path: string, cpus: CpuSet, slices: ReadonlySet<string>): void {
    for (const name of foldersIn(this.folder(path))) {
      const inner = `${path}/${name}`;
      if (slices.has(inner)) continue;
      this.#narrowBelow(inner, cpus, slices);
      const folder = this.folder(inner);
      const left = cpusIn(folder)?.intersection(cpus);
      // A container that has none of them is about to be moved.
      if (left && !left.isEmpty) this.#write(folder, left);
    }
  }

  // An empty file of version 2 means all.
  #add(folder: string, cpus: CpuSet): string | undefined {
    const found = cpusIn(folder);
    return found ? this.#write(folder, found.union(cpus)) : undefined;
  }

  #write(folder: string, cpus: CpuSet): string | undefined {
    return cpusIn(folder)?.equals(cpus) ? undefined : tryWrite(folder, `${cpus}`);
  }
}

function tryWrite(folder: string, text: string): string | undefined {
  try {
    writeFileSync(join(folder, 'cpuset.cpus'), text);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? String(error);
  }
}

// `podUID`, and `kubepods-podUID.slice`.
const isPod = (name: string) => /(^|-)pod[^/]+$/.test(name) && !/(^|-)kubepods(\.slice)?$/.test(name);

function cpusIn(folder: string, file = 'cpuset.cpus'): CpuSet | undefined {
  try {
    const cpus = CpuSet.parse(readFileSync(join(folder, file), 'utf8').trim());
    return cpus.isEmpty ? undefined : cpus;
  } catch {
    return undefined;
  }
}

function foldersIn(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return [];
  }
}

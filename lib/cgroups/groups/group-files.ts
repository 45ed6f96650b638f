// GroupFiles: the folder of a cgroup, reads of its files, and writes of single numbers.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { IdSet } from '../../machine/id-set.js';
import { attempt, type CgroupAction, type CgroupStep, cgroupRefusal, look } from '../files/cgroup-error.js';
import { childNames, hasProcess, readIfThere } from '../files/cgroup-files.js';
import { checkFolder } from '../files/cgroup-path.js';
import type { CpusetTree } from './cpuset-tree.js';

/** The two kinds of sets in a cpuset. */
export interface Ids<S extends IdSet<S>> {
  readonly name: 'cpus' | 'mems';
  readonly action: CgroupAction;
  readonly words: string;
  readonly parse: (text: string) => S;
}

export const CPUS: Ids<CpuSet> = {
  name: 'cpus',
  action: 'set-cpus',
  words: 'CPUs',
  parse: (text) => CpuSet.parse(text),
};
export const MEMS: Ids<NodeSet> = {
  name: 'mems',
  action: 'set-mems',
  words: 'memory nodes',
  parse: (text) => NodeSet.parse(text),
};

/**
 * The files of a cgroup at or below numalign's root, which perhaps does not exist. All operations of
 * a group are synchronous; when one returns, it is either done or undone. They throw ERR_CGROUP if
 * the kernel refuses, with `errno`, `syscall`, `path`, `reason`, `value` and `valid` in the details.
 */
export abstract class GroupFiles {
  constructor(
    protected readonly tree: CpusetTree,
    readonly path: string,
  ) {}

  protected abstract effectiveFile(name: 'cpus' | 'mems'): string;
  protected abstract readonly threadsFile: string;

  exists(): boolean {
    return existsSync(this.path);
  }

  /** True if numalign made it, and so may remove it. */
  isMade(): boolean {
    const found = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    return found !== undefined && this.tree.made.has(this.path, found.dev, found.ino);
  }

  /** The CPUs that were set. On v2, empty means those of the cgroup above. */
  cpus(): CpuSet {
    return this.read(CPUS);
  }

  mems(): NodeSet {
    return this.read(MEMS);
  }

  effectiveCpus(): CpuSet {
    return this.readEffective(CPUS);
  }

  effectiveMems(): NodeSet {
    return this.readEffective(MEMS);
  }

  processes(): number[] {
    return this.#numbers('cgroup.procs');
  }

  threads(): number[] {
    return this.#numbers(this.threadsFile);
  }

  /** True if a process is in it or below it. */
  isPopulated(): boolean {
    return look(this.path, () => hasProcess(this.path), `look into ${this.path}`);
  }

  /** The folders of the cgroups directly below. */
  protected childPaths(): string[] {
    const names = look(this.path, () => childNames(this.path), `list ${this.path}`);
    return names.map((name) => join(this.path, name));
  }

  protected read<S extends IdSet<S>>(ids: Ids<S>): S {
    return ids.parse(this.text(`cpuset.${ids.name}`));
  }

  protected readEffective<S extends IdSet<S>>(ids: Ids<S>): S {
    return ids.parse(this.text(this.effectiveFile(ids.name)));
  }

  protected text(file: string): string {
    const path = join(this.path, file);
    return look(path, () => readFileSync(path, 'utf8').trim());
  }

  protected textIfThere(file: string): string | undefined {
    const path = join(this.path, file);
    return look(path, () => readIfThere(path)?.trim());
  }

  #numbers(file: string): number[] {
    // v1 may list a process twice, and lists those of other pid namespaces as 0.
    const numbers = new Set(this.text(file).split('\n').map(Number));
    numbers.delete(0);
    return [...numbers].sort((a, b) => a - b);
  }

  /** Moves a process or thread to the cgroup with this folder. `value`: its number. */
  protected writeNumber(
    folder: string,
    file: string,
    step: Omit<CgroupStep, 'path'> & { readonly value: number },
  ): void {
    checkNumber(step.value);
    checkFolder(this.tree.mount, folder);
    const path = join(folder, file);
    attempt({ ...step, path }, () => this.tree.files.write(path, String(step.value)));
  }
}

// The number 0 would mean the caller.
function checkNumber(id: number): void {
  if (Number.isInteger(id) && id > 0) return;
  throw cgroupRefusal('no-process', `${String(id)} is not the number of a process or thread`, {
    value: id,
    valid: 'the number of a living process or thread',
  });
}

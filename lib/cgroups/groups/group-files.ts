// GroupFiles: the folder of a cgroup, reads of its files, and writes of single numbers.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import type { IdSet } from '../../machine/id-set.js';
import { attempt, type CgroupAction, cgroupRefusal } from '../files/cgroup-error.js';
import { childNames, hasProcess, readIfThere } from '../files/cgroup-files.js';
import { checkFolder } from '../files/cgroup-path.js';
import type { CpusetTree } from './cpuset-group.js';

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

export abstract class GroupFiles {
  readonly path: string;
  protected readonly tree: CpusetTree;

  constructor(tree: CpusetTree, path: string) {
    this.tree = tree;
    this.path = path;
  }

  protected abstract effectiveFile(name: 'cpus' | 'mems'): string;
  protected abstract readonly threadsFile: string;

  exists(): boolean {
    return existsSync(this.path);
  }

  isMade(): boolean {
    const found = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    return found !== undefined && this.tree.made.has(this.path, found.dev, found.ino);
  }

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

  isPopulated(): boolean {
    return attempt('look', `look into ${this.path}`, this.path, undefined, () => hasProcess(this.path));
  }

  /** The folders of the cgroups directly below. */
  protected childPaths(): string[] {
    const names = attempt('look', `list ${this.path}`, this.path, undefined, () => childNames(this.path));
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
    return attempt('look', `read ${path}`, path, undefined, () => readFileSync(path, 'utf8').trim());
  }

  protected textIfThere(file: string): string | undefined {
    const path = join(this.path, file);
    return attempt('look', `read ${path}`, path, undefined, () => readIfThere(path)?.trim());
  }

  #numbers(file: string): number[] {
    // v1 may list a process twice, and lists those of other pid namespaces as 0.
    const numbers = new Set(this.text(file).split('\n').map(Number));
    numbers.delete(0);
    return [...numbers].sort((a, b) => a - b);
  }

  /** Moves a process or thread to the cgroup with this folder. */
  protected writeNumber(folder: string, file: string, id: number, action: CgroupAction, doing: string): void {
    checkNumber(id);
    checkFolder(this.tree.mount, folder);
    const path = join(folder, file);
    attempt(action, doing, path, id, () => this.tree.files.write(path, String(id)));
  }
}

// The number 0 would mean the caller.
function checkNumber(id: number): void {
  if (Number.isInteger(id) && id > 0) return;
  const valid = 'the number of a living process or thread';
  throw cgroupRefusal(
    'no-process',
    `${String(id)} is not the number of a process or thread; valid is ${valid}`,
    {
      value: id,
      valid,
    },
  );
}

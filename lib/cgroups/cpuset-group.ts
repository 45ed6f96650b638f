// CpusetGroup: one cgroup at or below our root, with the CPUs and memory nodes that its processes
// may use. What v1 and v2 have in common.
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { IdSet } from '../machine/id-set.js';
import { attempt, type CgroupAction, cgroupRefusal } from './cgroup-error.js';
import { type CgroupFiles, childNames, hasProcess, readIfThere } from './cgroup-files.js';
import { checkFolder } from './cgroup-path.js';
import { Changes } from './changes.js';
import type { MadeGroups } from './made-groups.js';
import { isAtOrBelow } from './mounts.js';

export type PartitionKind = 'member' | 'root' | 'isolated';

/** What `cpuset.cpus.partition` says (cgroup v2). */
export interface Partition {
  /** `none`: there is no such file. */
  kind: PartitionKind | 'none';
  /** A partition that the kernel could make. It raises no error for one that it could not. */
  valid: boolean;
  /** As the kernel wrote it, such as `root invalid (Cpu list in cpuset.cpus not exclusive)`. */
  text: string;
  /** What was asked for, and what its own processes have: not what nested partitions took. */
  cpus: CpuSet;
  effective: CpuSet;
}

export interface Throttling {
  /**
   * Periods in which the quota was used up, and the time that processes waited for the next, in µs.
   */
  nrThrottled: number;
  throttledUs: number;
}

/**
 * A handle: it can be of a cgroup that is not there. Every operation is synchronous, and either
 * done or undone when it returns. All throw ERR_CGROUP where the kernel refuses, with `errno`,
 * `syscall`, `path`, `reason`, `value` and `valid` in the details.
 */
export interface CpusetGroup {
  readonly path: string;
  exists(): boolean;
  /**
   * Makes it and what is missing between it and our root, with these CPUs and memory nodes; cgroups
   * between that have fewer are grown. One that is there is changed as far as it differs. The quota
   * of cgroups that we made is lifted.
   * @param mems empty: not restricted (v2 only)
   * @param options `migrateMemory`: pages move along with processes that come in and with the
   *   memory nodes (v1; v2 always does so for the latter)
   * @throws ERR_CGROUP also where the cgroup would not have all of these CPUs that are online
   */
  create(cpus: CpuSet, mems: NodeSet, options?: { migrateMemory?: boolean }): void;
  /**
   * Cgroups below keep what they have of `cpus`, or get all of it; they are shrunk before and grown
   * after those above them.
   * @throws ERR_CGROUP also where it would not have all of those that are online, or a partition
   *   below would become invalid
   */
  setCpus(cpus: CpuSet): void;
  /** As {@link setCpus}. `migrate`: pages move to the new nodes (v1; v2 always does so). */
  setMems(mems: NodeSet, options?: { migrate?: boolean }): void;
  /** What was set. On v2 empty: what the cgroup above has. */
  cpus(): CpuSet;
  mems(): NodeSet;
  effectiveCpus(): CpuSet;
  effectiveMems(): NodeSet;
  /** The process with all its threads, those being born included (`cgroup.procs`). */
  attach(pid: number): void;
  /** One thread (v1: `tasks`). */
  attachThread(tid: number): void;
  processes(): number[];
  threads(): number[];
  /** Whether a process is in it or below it. */
  isPopulated(): boolean;
  /** Whether numalign made it, so that it may remove it. */
  isMade(): boolean;
  /** As {@link CpusetHierarchy.setPartition}, below a partition. */
  setPartition(kind: PartitionKind, cpus: CpuSet): void;
  partition(): Partition;
  /** Of its own quota; null where the cpu controller does not reach it. */
  stats(): Throttling | null;
  /** All processes that are in it or below it go to another cgroup. */
  evacuate(home: string | ((pid: number) => string)): void;
  /**
   * Those threads of a process that are in it go to the cgroup with this folder; as a whole where
   * all of them are.
   */
  moveBack(pid: number, to: string): void;
  /**
   * Removes it and those below it. One that is not there is no error.
   * @param leftoversTo the folder of the cgroup where processes that are inside go first, as a
   *   whole where all their threads are inside
   * @throws ERR_CGROUP where we did not make all of them (`not-made`), or processes are inside and
   *   were given no place (`in-use`)
   */
  remove(leftoversTo?: string | ((pid: number) => string)): void;
}

/** What the groups of a hierarchy share. */
export interface CpusetTree {
  readonly version: 1 | 2;
  readonly mount: string;
  readonly rootPath: string;
  readonly made: MadeGroups;
  readonly files: CgroupFiles;
  /**
   * Whether a folder that is not below our root may be told to hand controllers on: not inside of
   * units that systemd keeps to itself.
   */
  isOpen(folder: string): boolean;
}

interface Ids<S extends IdSet<S>> {
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

// How long processes that are born while others are moved out are followed.
const BORN_MS = 1000;
// How long what no file tells of is waited for: a process that has just ended, which the kernel
// counts a moment longer. One of another pid namespace stays.
const ENDED_MS = 100;

// A millisecond, in which nothing of this thread runs.
function aMoment(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
}

export abstract class CommonGroup implements CpusetGroup {
  readonly path: string;
  protected readonly tree: CpusetTree;

  constructor(tree: CpusetTree, path: string) {
    this.tree = tree;
    this.path = path;
  }

  protected abstract at(path: string): CommonGroup;
  protected abstract effectiveFile(name: 'cpus' | 'mems'): string;
  protected abstract readonly threadsFile: string;

  /** What the cgroup above must do before this one can be configured. */
  protected abstract prepareParent(changes: Changes): void;
  protected abstract setMigration(changes: Changes): void;
  protected abstract liftQuota(changes: Changes): void;
  /** @throws ERR_CGROUP where setting these would spoil a partition, a neighbour or itself */
  protected abstract checkNeighbours(cpus: CpuSet): void;
  /** @throws ERR_CGROUP where a process in this folder would spoil the cgroups below it */
  protected abstract checkLeaf(folder: string): void;
  /** Makes it once more what it was. */
  protected abstract renewPartition(kind: PartitionKind): void;
  /** The valid partitions at and below it; none where it is not there. */
  abstract partitions(): CommonGroup[];
  protected abstract moveOut(pid: number, to: string): void;

  abstract attachThread(tid: number): void;
  abstract setPartition(kind: PartitionKind, cpus: CpuSet): void;
  /** What is above it does not allow it. */
  abstract whyNoPartition(kind: PartitionKind): Error | undefined;
  abstract partition(): Partition;
  abstract stats(): Throttling | null;

  exists(): boolean {
    return existsSync(this.path);
  }

  create(cpus: CpuSet, mems: NodeSet, options: { migrateMemory?: boolean } = {}): void {
    this.#checkNotEmpty(CPUS, cpus);
    if (this.tree.version === 1) this.#checkNotEmpty(MEMS, mems);
    this.checkRoot();
    const lineage = this.#lineage();
    // Our root apart, these are what can grow.
    this.configure(
      (lineage[1] ?? this).partitions(),
      (changes) => {
        for (const group of lineage) {
          const isNew = group.prepare(changes);
          if (group.path === this.path) {
            if (options.migrateMemory) group.setMigration(changes);
            group.place(changes, MEMS, mems);
            group.place(changes, CPUS, cpus);
          } else if (isNew || group.path !== this.tree.rootPath) {
            group.#include(changes, MEMS, mems, isNew);
            group.#include(changes, CPUS, cpus, isNew);
          }
        }
      },
      () => {
        this.checkCpus(cpus);
        this.#checkWithin(MEMS, mems);
      },
    );
  }

  setCpus(cpus: CpuSet): void {
    this.#checkNotEmpty(CPUS, cpus);
    this.configure(
      this.partitions(),
      (changes) => {
        this.place(changes, CPUS, cpus);
      },
      () => this.checkCpus(cpus),
    );
  }

  setMems(mems: NodeSet, options: { migrate?: boolean } = {}): void {
    if (this.tree.version === 1) this.#checkNotEmpty(MEMS, mems);
    this.configure(
      this.partitions(),
      (changes) => {
        if (options.migrate) this.setMigration(changes);
        this.place(changes, MEMS, mems);
      },
      () => this.#checkWithin(MEMS, mems),
    );
  }

  cpus(): CpuSet {
    return this.read(CPUS);
  }

  mems(): NodeSet {
    return this.read(MEMS);
  }

  effectiveCpus(): CpuSet {
    return this.#readEffective(CPUS);
  }

  effectiveMems(): NodeSet {
    return this.#readEffective(MEMS);
  }

  attach(pid: number): void {
    this.moveProcess(pid, this.path, `move process ${pid} into ${this.path}`);
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

  remove(leftoversTo?: string | ((pid: number) => string)): void {
    if (!this.exists()) return;
    const groups = this.#descent();
    for (const group of groups) if (!group.isMade()) throw group.#notMade();
    for (const group of groups) group.#removeAlone(leftoversTo);
  }

  evacuate(home: string | ((pid: number) => string)): void {
    for (const group of this.#descent()) {
      for (const pid of group.processes()) group.moveBack(pid, typeof home === 'string' ? home : home(pid));
    }
  }

  moveBack(pid: number, to: string): void {
    this.#checkPlace(to);
    this.moveOut(pid, to);
  }

  /** Removes it where we made it and nothing is in it. Answers whether it did. */
  removeIfEmpty(): boolean {
    if (!this.exists() || !this.isMade() || childNames(this.path).length > 0 || this.isPopulated())
      return false;
    this.#removeAlone(undefined);
    return true;
  }

  /** @throws ERR_CGROUP (`missing`) where it is not our root itself, and that is not there */
  protected checkRoot(): void {
    const { rootPath } = this.tree;
    if (this.path === rootPath || existsSync(rootPath)) return;
    const valid = 'a cgroup root that was made before';
    throw cgroupRefusal('missing', `cannot make ${this.path}: there is no ${rootPath}; valid is ${valid}`, {
      path: rootPath,
      value: this.path,
      valid,
    });
  }

  /** Makes it if it is not there. Answers whether it was not. */
  protected prepare(changes: Changes): boolean {
    checkFolder(this.tree.mount, this.path);
    const isNew = !this.exists();
    this.prepareParent(changes);
    if (isNew) this.#make(changes);
    if (this.isMade()) this.liftQuota(changes);
    return isNew;
  }

  /** Before it is removed. */
  protected endPartition(): void {}

  /**
   * Runs a change and then the checks that read back, and looks at these partitions in between,
   * each after the one above it: the kernel makes one invalid without a word, and leaves it so when
   * the reason has gone.
   */
  protected configure(
    partitions: CommonGroup[],
    change: (changes: Changes) => void,
    check: () => void,
  ): void {
    checkFolder(this.tree.mount, this.path);
    const kinds = partitions.map((group) => ({ group, kind: group.partition().kind as PartitionKind }));
    const renew = () => {
      for (const { group, kind } of kinds) if (!group.#isSound()) group.renewPartition(kind);
    };
    Changes.of(this.tree.files, (changes) => {
      changes.did(renew);
      change(changes);
      renew();
      for (const { group } of kinds) if (!group.#isSound()) throw group.#spoilt(this.path);
      check();
    });
  }

  /**
   * Sets CPUs or memory nodes, of cgroups below too. An empty set (v2) means those of the cgroup
   * above.
   */
  protected place<S extends IdSet<S>>(changes: Changes, ids: Ids<S>, wanted: S): void {
    const groups = wanted.isEmpty ? [] : this.children();
    const former = this.read(ids);
    // What moves must be here before cgroups below can move to it, and stay until they have left
    // it.
    if (groups.length > 0 && !former.isEmpty) this.#set(changes, ids, former.union(wanted));
    for (const group of groups) {
      const has = group.read(ids);
      if (has.isEmpty) continue;
      const kept = has.intersection(wanted);
      group.place(changes, ids, kept.isEmpty ? wanted : kept);
    }
    this.#set(changes, ids, wanted);
  }

  protected read<S extends IdSet<S>>(ids: Ids<S>): S {
    return this.#parse(`cpuset.${ids.name}`, ids);
  }

  /**
   * What it has, with what partitions at and below it have; these are looked for only where it has
   * not all that is wanted.
   */
  cpusFor(wanted: CpuSet): CpuSet {
    const effective = this.effectiveCpus();
    if (wanted.isSubsetOf(effective)) return effective;
    return this.partitions().reduce((all, group) => all.union(group.effectiveCpus()), effective);
  }

  /** Read back: all of these that are online and not in partitions below, and no other. */
  protected checkCpus(cpus: CpuSet): void {
    this.#checkWithin(CPUS, cpus);
    const online = onlineOf(cpus);
    const has = this.cpusFor(online);
    const missing = online.difference(has);
    if (missing.isEmpty) return;
    const valid = 'CPUs that the cgroup above has';
    throw cgroupRefusal(
      'outside-parent',
      `${this.path} was given CPUs ${cpus} and did not get ${missing}: the cgroup above does not have them, or they are in a partition; valid is ${valid}`,
      { path: this.path, value: cpus, missing, effective: has, valid },
    );
  }

  /** Those directly below. */
  protected children(): CommonGroup[] {
    return attempt('look', `list ${this.path}`, this.path, undefined, () => childNames(this.path)).map(
      (name) => this.at(join(this.path, name)),
    );
  }

  protected text(file: string): string {
    const path = join(this.path, file);
    return attempt('look', `read ${path}`, path, undefined, () => readFileSync(path, 'utf8').trim());
  }

  protected textIfThere(file: string): string | undefined {
    const path = join(this.path, file);
    return attempt('look', `read ${path}`, path, undefined, () => readIfThere(path)?.trim());
  }

  protected moveProcess(pid: number, folder: string, doing: string): void {
    this.checkLeaf(folder);
    this.writeNumber(folder, 'cgroup.procs', pid, 'attach', doing);
  }

  protected writeNumber(folder: string, file: string, id: number, action: CgroupAction, doing: string): void {
    checkNumber(id);
    checkFolder(this.tree.mount, folder);
    const path = join(folder, file);
    attempt(action, doing, path, id, () => this.tree.files.write(path, String(id)));
  }

  #numbers(file: string): number[] {
    // v1 may name a process twice, and calls those of other pid namespaces 0.
    const numbers = new Set(this.text(file).split('\n').map(Number));
    numbers.delete(0);
    return [...numbers].sort((a, b) => a - b);
  }

  #parse<S extends IdSet<S>>(file: string, ids: Ids<S>): S {
    return ids.parse(this.text(file));
  }

  #readEffective<S extends IdSet<S>>(ids: Ids<S>): S {
    return this.#parse(this.effectiveFile(ids.name), ids);
  }

  #set<S extends IdSet<S>>(changes: Changes, ids: Ids<S>, wanted: S): void {
    const former = this.read(ids);
    if (former.equals(wanted)) return;
    if (wanted instanceof CpuSet) this.checkNeighbours(wanted);
    const doing = `set the ${ids.words} of ${this.path} to ${wanted.isEmpty ? 'none' : wanted}`;
    changes.write(join(this.path, `cpuset.${ids.name}`), String(wanted), String(former), ids.action, doing);
  }

  #include<S extends IdSet<S>>(changes: Changes, ids: Ids<S>, wanted: S, isNew: boolean): void {
    const former = this.read(ids);
    // On v2 an empty set is whatever the cgroup above has.
    if (former.isEmpty && !isNew && this.tree.version === 2) return;
    this.#set(changes, ids, former.union(wanted));
  }

  #make(changes: Changes): void {
    const { files, made } = this.tree;
    attempt('make', `make the cgroup ${this.path}`, this.path, this.path, () => files.makeFolder(this.path));
    changes.did(() => files.removeFolder(this.path));
    const { dev, ino } = statSync(this.path, { bigint: true });
    made.add(this.path, dev, ino);
    changes.did(() => made.remove(this.path, dev, ino));
  }

  isMade(): boolean {
    const found = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    return found !== undefined && this.tree.made.has(this.path, found.dev, found.ino);
  }

  #notMade(): Error {
    const valid = 'a cgroup that numalign made, with none below it that it did not make';
    return cgroupRefusal(
      'not-made',
      `${this.path} is not removed: numalign did not make it; valid is ${valid}`,
      {
        path: this.path,
        value: this.path,
        valid,
      },
    );
  }

  // Linux 6.12 has been seen to call one valid that ran on CPUs of the cgroup above.
  #isSound(): boolean {
    const { valid, cpus, effective } = this.partition();
    return valid && effective.isSubsetOf(cpus);
  }

  #spoilt(by: string): Error {
    const { text, cpus, effective } = this.partition();
    const valid = 'a change that leaves it its CPUs';
    return cgroupRefusal(
      'partition-invalid',
      `changing ${by} spoils the partition ${this.path}: it reads back "${text}" with CPUs ${effective} of ${cpus}; valid is ${valid}`,
      { path: this.path, value: cpus, text, valid },
    );
  }

  // Itself and all below it, the lowest first.
  #descent(): CommonGroup[] {
    return [...this.children().flatMap((group) => group.#descent()), this];
  }

  // From our root down to it.
  #lineage(): CommonGroup[] {
    if (this.path === this.tree.rootPath) return [this];
    return [...this.at(dirname(this.path)).#lineage(), this];
  }

  #removeAlone(leftoversTo: string | ((pid: number) => string) | undefined): void {
    const found = statSync(this.path, { bigint: true, throwIfNoEntry: false });
    if (!found) return;
    let waited = 0;
    for (const end = performance.now() + BORN_MS; ; ) {
      if (leftoversTo !== undefined) {
        for (const pid of this.processes()) {
          const to = typeof leftoversTo === 'string' ? leftoversTo : leftoversTo(pid);
          this.#checkPlace(to);
          this.moveOut(pid, to);
        }
      }
      try {
        this.endPartition();
        attempt('remove', `remove the cgroup ${this.path}`, this.path, this.path, () =>
          this.tree.files.removeFolder(this.path),
        );
        break;
      } catch (error) {
        if (!this.exists()) break;
        if (childNames(this.path).length > 0) throw error;
        // Processes may have been born while others were moved out.
        if (this.processes().length > 0) {
          if (leftoversTo === undefined || performance.now() > end) throw error;
        } else {
          if ((error as NumalignError).errnoName !== 'EBUSY' || waited++ === ENDED_MS) throw error;
          aMoment();
        }
      }
    }
    this.tree.made.remove(this.path, found.dev, found.ino);
  }

  /**
   * Empties the CPUs (v2). A process that has ended the kernel counts a moment longer than any file
   * tells of it, and refuses meanwhile.
   */
  protected clearCpus(changes: Changes): void {
    for (let waited = 0; ; waited++) {
      try {
        this.place(changes, CPUS, CpuSet.EMPTY);
        return;
      } catch (error) {
        const isRefused = (error as NumalignError).errnoName === 'ENOSPC' && waited < ENDED_MS;
        if (!isRefused || this.#descent().some((group) => group.processes().length > 0)) throw error;
        aMoment();
      }
    }
  }

  // The only place outside of our root where anything is written: a process goes back to where it
  // came from.
  #checkPlace(to: string): void {
    const isPlain = to
      .split('/')
      .slice(1)
      .every((part) => !['', '.', '..'].includes(part));
    if (!isPlain || !isAtOrBelow(to, this.tree.mount) || isAtOrBelow(to, this.path)) {
      const valid = `the folder of another cgroup below ${this.tree.mount}`;
      throw cgroupRefusal('bad-path', `processes of ${this.path} cannot go to ${to}; valid is ${valid}`, {
        path: this.path,
        value: to,
        valid,
      });
    }
    checkFolder(this.tree.mount, to);
  }

  #checkNotEmpty<S extends IdSet<S>>(ids: Ids<S>, wanted: S): void {
    if (!wanted.isEmpty) return;
    const valid = 'at least one';
    throw cgroupRefusal('no-cpus', `${this.path} cannot have no ${ids.words}; valid is ${valid}`, {
      path: this.path,
      value: wanted,
      valid,
    });
  }

  // On v2 a cgroup that shares nothing with the one above gets all that this one has.
  #checkWithin<S extends IdSet<S>>(ids: Ids<S>, wanted: S): void {
    const effective = this.#readEffective(ids);
    if (wanted.isEmpty || effective.isSubsetOf(wanted)) return;
    const valid = `${ids.words} that the cgroup above has`;
    throw cgroupRefusal(
      'outside-parent',
      `${this.path} was given the ${ids.words} ${wanted} and got ${effective}: the cgroup above has none of them; valid is ${valid}`,
      { path: this.path, value: wanted, effective, valid },
    );
  }
}

function onlineOf(cpus: CpuSet): CpuSet {
  try {
    return cpus.intersection(new CpuSet(native.onlineCpus()));
  } catch {
    // Hidden from a container, say: then nothing can be missed.
    return CpuSet.EMPTY;
  }
}

// 0 would be the caller.
function checkNumber(id: number): void {
  if (Number.isInteger(id) && id > 0) return;
  const valid = 'the number of a living process or thread';
  throw cgroupRefusal('no-process', `${String(id)} is no number of a process or thread; valid is ${valid}`, {
    value: id,
    valid,
  });
}

// CpusetGroup: a cgroup with CPUs and memory nodes, of version 1 or 2. Reads every change back, and
// undoes a failed one.
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CpuSet, type NodeSet } from '../../machine/cpu-set.js';
import type { IdSet } from '../../machine/id-set.js';
import { readOnlineCpus } from '../../machine/online-cpus.js';
import { attempt, cgroupRefusal } from '../files/cgroup-error.js';
import { checkFolder } from '../files/cgroup-path.js';
import { Changes } from '../files/changes.js';
import type { Partition, PartitionKind } from './cpuset-tree.js';
import { CPUS, type Ids, MEMS } from './group-files.js';
import { GroupProcesses } from './group-processes.js';

export abstract class CpusetGroup extends GroupProcesses {
  protected abstract override at(path: string): CpusetGroup;

  /** Moves one thread (v1: `tasks`). */
  abstract attachThread(tid: number): void;
  /** Like {@link CpusetHierarchy.setPartition}, below a partition. */
  abstract setPartition(kind: PartitionKind, cpus: CpuSet): void;
  /** Checks what is above the group; undefined if a partition is possible. */
  abstract whyNoPartition(kind: PartitionKind): Error | undefined;
  abstract partition(): Partition;

  // What only one version of cgroups needs.

  /** Prepares the cgroup above, so that this one can be configured (v2). */
  protected prepareParent(_changes: Changes): void {}
  /** v1: memory of v2 always migrates since Linux 5.15. */
  protected writeMigration(_changes: Changes, _migrates: boolean): void {}
  /** v2: quotas of v1 are in another hierarchy, where numalign makes no cgroups. */
  protected liftQuota(_changes: Changes): void {}
  /**
   * v2: with v1 the write itself fails if a neighbour is exclusive.
   * @throws ERR_CGROUP if these CPUs would break a partition, a neighbour or the group itself
   */
  protected checkNeighbours(_cpus: CpuSet): void {}
  /** Makes the group a partition again (v2). */
  protected renewPartition(_kind: PartitionKind): void {}
  /** The valid partitions at and below the group; none if it does not exist (v2). */
  partitions(): CpusetGroup[] {
    return [];
  }

  /**
   * Makes the cgroup, and what is missing between it and the root, with these CPUs and memory
   * nodes. Grows cgroups in between that have fewer. Changes an existing cgroup only where it
   * differs. Lifts the quota of cgroups that numalign made.
   * @param mems empty: not restricted (v2 only)
   * @throws ERR_CGROUP also if the cgroup would lack some of these CPUs that are online
   */
  create(cpus: CpuSet, mems: NodeSet): void {
    this.#checkNotEmpty(CPUS, cpus);
    if (this.tree.version === 1) this.#checkNotEmpty(MEMS, mems);
    this.checkRoot();
    const lineage = this.#lineage();
    // Besides the root, these groups may grow.
    this.configure(
      (lineage[1] ?? this).partitions(),
      (changes) => {
        for (const group of lineage) {
          const isNew = group.prepare(changes);
          if (group.path === this.path) {
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

  /**
   * Sets the CPUs. Cgroups below keep the part of `cpus` that they have, or get all of it. They
   * shrink before those above them, and grow after.
   * @throws ERR_CGROUP also if the cgroup would lack some CPUs that are online, or a partition
   *   below would become invalid
   */
  setCpus(cpus: CpuSet): void {
    this.#checkNotEmpty(CPUS, cpus);
    this.configure(
      this.partitions(),
      (changes) => this.place(changes, CPUS, cpus),
      () => this.checkCpus(cpus),
    );
  }

  /** Like {@link setCpus}. `migrate`: pages move to the new nodes (v1; v2 always does so). */
  setMems(mems: NodeSet, { migrate = false } = {}): void {
    if (this.tree.version === 1) this.#checkNotEmpty(MEMS, mems);
    this.configure(
      this.partitions(),
      (changes) => {
        if (migrate) this.writeMigration(changes, true);
        this.place(changes, MEMS, mems);
      },
      () => this.#checkWithin(MEMS, mems),
    );
  }

  /**
   * Sets whether pages move with processes that come in and with the memory nodes (v1; v2 always
   * does so).
   */
  setMigration(migrates: boolean): void {
    Changes.of(this.tree.files, (changes) => this.writeMigration(changes, migrates));
  }

  /** @throws ERR_CGROUP (`missing`) if the root does not exist, except for the root itself */
  protected checkRoot(): void {
    const { rootPath } = this.tree;
    if (this.path === rootPath || existsSync(rootPath)) return;
    throw cgroupRefusal('missing', `cannot make ${this.path}: ${rootPath} does not exist`, {
      path: rootPath,
      value: this.path,
      valid: 'a cgroup root that was made before',
    });
  }

  /** Makes the group if it is missing. Returns true if it made it. */
  protected prepare(changes: Changes): boolean {
    checkFolder(this.tree.mount, this.path);
    const isNew = !this.exists();
    this.prepareParent(changes);
    if (isNew) this.#make(changes);
    if (this.isMade()) this.liftQuota(changes);
    return isNew;
  }

  /**
   * Runs a change, then the checks that read back. In between, checks these partitions from top to
   * bottom: the kernel silently makes a partition invalid, and leaves it so when the cause is gone.
   */
  protected configure(
    partitions: CpusetGroup[],
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
      for (const { group } of kinds) if (!group.#isSound()) throw group.#broken(this.path);
      check();
    });
  }

  /**
   * Sets CPUs or memory nodes, of cgroups below too. On v2, an empty set means those of the cgroup
   * above.
   */
  protected place<S extends IdSet<S>>(changes: Changes, ids: Ids<S>, target: S): void {
    const groups = target.isEmpty ? [] : this.children();
    if (groups.length > 0) {
      const former = this.read(ids);
      // CPUs that move must be here before the groups below get them, and stay until those have
      // left them.
      if (!former.isEmpty) this.#set(changes, ids, former.union(target));
    }
    for (const group of groups) {
      const has = group.read(ids);
      if (has.isEmpty) continue;
      const remainder = has.intersection(target);
      group.place(changes, ids, remainder.isEmpty ? target : remainder);
    }
    this.#set(changes, ids, target);
  }

  /**
   * The group's CPUs together with those of partitions at and below it. Looks for partitions only
   * if the group lacks some of the wanted CPUs.
   */
  cpusFor(target: CpuSet, effective = this.effectiveCpus()): CpuSet {
    if (target.isSubsetOf(effective)) return effective;
    return this.partitions().reduce((all, group) => all.union(group.effectiveCpus()), effective);
  }

  /**
   * Reads back: the group must have all of these CPUs that are online and not in partitions below,
   * and no others.
   */
  protected checkCpus(cpus: CpuSet): void {
    const effective = this.#checkWithin(CPUS, cpus);
    // If the online CPUs are hidden, none can be missing.
    const online = cpus.intersection(readOnlineCpus() ?? CpuSet.EMPTY);
    const has = this.cpusFor(online, effective);
    const missing = online.difference(has);
    if (missing.isEmpty) return;
    throw cgroupRefusal(
      'outside-parent',
      `${this.path} was given CPUs ${cpus} and did not get ${missing}: the cgroup above does not have them, or they are in a partition`,
      { path: this.path, value: cpus, missing, effective: has, valid: 'CPUs that the cgroup above has' },
    );
  }

  /** The groups directly below. */
  protected children(): CpusetGroup[] {
    return this.childPaths().map((path) => this.at(path));
  }

  #set<S extends IdSet<S>>(changes: Changes, ids: Ids<S>, target: S): void {
    const former = this.read(ids);
    if (former.equals(target)) return;
    if (target instanceof CpuSet) this.checkNeighbours(target);
    const doing = `set the ${ids.words} of ${this.path} to ${target.isEmpty ? 'none' : target}`;
    const path = join(this.path, `cpuset.${ids.name}`);
    changes.write({ action: ids.action, doing, path, value: String(target) }, String(former));
  }

  #include<S extends IdSet<S>>(changes: Changes, ids: Ids<S>, target: S, isNew: boolean): void {
    const former = this.read(ids);
    // On v2, an empty set means whatever the cgroup above has.
    if (former.isEmpty && !isNew && this.tree.version === 2) return;
    this.#set(changes, ids, former.union(target));
  }

  #make(changes: Changes): void {
    const { files, made } = this.tree;
    const { path } = this;
    const step = { action: 'make', doing: `make the cgroup ${path}`, path, value: path } as const;
    attempt(step, () => files.makeFolder(path));
    changes.did(() => files.removeFolder(path));
    const { dev, ino } = statSync(path, { bigint: true });
    made.add(path, dev, ino);
    changes.did(() => made.remove(path, dev, ino));
  }

  // Linux 6.12 can call a partition valid that runs on CPUs of the cgroup above.
  #isSound(): boolean {
    const { valid, cpus, effective } = this.partition();
    return valid && effective.isSubsetOf(cpus);
  }

  #broken(by: string): Error {
    const { text, cpus, effective } = this.partition();
    const valid = 'a change that leaves the partition its CPUs';
    return cgroupRefusal(
      'partition-invalid',
      `changing ${by} breaks the partition ${this.path}: it reads back "${text}" with CPUs ${effective} of ${cpus}`,
      { path: this.path, value: cpus, text, valid },
    );
  }

  // The groups from the root down to this one.
  #lineage(): CpusetGroup[] {
    if (this.path === this.tree.rootPath) return [this];
    return [...this.at(dirname(this.path)).#lineage(), this];
  }

  /** Empties the CPUs (v2). */
  protected clearCpus(changes: Changes): void {
    this.untilEnded('ENOSPC', () => this.place(changes, CPUS, CpuSet.EMPTY));
  }

  #checkNotEmpty<S extends IdSet<S>>(ids: Ids<S>, target: S): void {
    if (!target.isEmpty) return;
    throw cgroupRefusal('no-cpus', `${this.path} needs ${ids.words}`, {
      path: this.path,
      value: target,
      valid: 'at least one',
    });
  }

  // On v2, a cgroup that shares nothing with the one above gets all that this one has.
  #checkWithin<S extends IdSet<S>>(ids: Ids<S>, target: S): S {
    const effective = this.readEffective(ids);
    if (target.isEmpty || effective.isSubsetOf(target)) return effective;
    const valid = `${ids.words} that the cgroup above has`;
    throw cgroupRefusal(
      'outside-parent',
      `${this.path} was given the ${ids.words} ${target} and got ${effective}: the cgroup above has none of them`,
      { path: this.path, value: target, effective, valid },
    );
  }
}

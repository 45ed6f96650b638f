// CpusetHierarchy: the machine's cpuset hierarchy, cgroup v1 or v2, and numalign's part of it: a
// root cgroup and the groups below.
import { accessSync, constants, existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { IdSet } from '../machine/id-set.js';
import { cgroupError, cgroupRefusal } from './files/cgroup-error.js';
import { type CgroupFiles, childNames, KERNEL_FILES } from './files/cgroup-files.js';
import {
  checkFolder,
  checkRootPath,
  decodeName,
  encodeName,
  isDelegated,
  unitOf,
} from './files/cgroup-path.js';
import { findHierarchy, type Hierarchy, neededHierarchy } from './files/hierarchies.js';
import type { MadeGroups } from './files/made-groups.js';
import { isAtOrBelow } from './files/mounts.js';
import { whyNotEnabled, withoutCpuset } from './groups/cpuset-controller.js';
import type { CpusetGroup } from './groups/cpuset-group.js';
import type { CpusetTree, Partition, PartitionKind } from './groups/cpuset-tree.js';
import { CpusetGroupV1 } from './groups/cpuset-v1.js';
import { CpusetGroupV2 } from './groups/cpuset-v2.js';
import { folderOfProcess, notMounted, readMembership } from './limits.js';

/**
 * Finds the hierarchy with the cpuset controller and checks numalign's root in it. Writes nothing.
 * @param cgroupRoot the path inside the hierarchy as mounted here, for example `/numalign`; the
 *   cgroup above it must exist
 * @throws ERR_CGROUP: `none` without such a hierarchy; `bad-path` for a path that is relative, has
 *   `..`, or crosses a link or another mount; `missing` if there is no cgroup above; `systemd-unit`
 *   inside a unit without delegation, or for a unit itself
 */
export function openCpusetHierarchy(
  cgroupRoot: string,
  made: MadeGroups,
  files: CgroupFiles = KERNEL_FILES,
): CpusetHierarchy {
  checkRootPath(cgroupRoot);
  const hierarchy = neededHierarchy('cpuset', cgroupRoot);
  const mount = hierarchy.mount.point;
  const rootPath = mount + cgroupRoot;
  checkFolder(mount, rootPath);
  checkParent(rootPath);
  const unit = checkUnit(hierarchy, rootPath);
  const isOpen = (folder: string) => unit === undefined || isAtOrBelow(folder, unit);
  return new CpusetHierarchy(hierarchy, { version: hierarchy.version, mount, rootPath, made, files, isOpen });
}

/** Use {@link openCpusetHierarchy}. */
export class CpusetHierarchy {
  readonly version: 1 | 2;
  /** The mount point, for example `/sys/fs/cgroup`. */
  readonly mount: string;
  /** The folder of numalign's root. */
  readonly rootPath: string;
  readonly #root: CpusetGroup;

  constructor(
    private readonly hierarchy: Hierarchy,
    private readonly tree: CpusetTree,
  ) {
    this.version = tree.version;
    this.mount = tree.mount;
    this.rootPath = tree.rootPath;
    this.#root = this.#at(this.rootPath);
  }

  /** True if the root can be used, or made. */
  canWrite(): boolean {
    return this.#whyNotWritable() === undefined;
  }

  /** @throws ERR_CGROUP, which says why {@link canWrite} is false */
  checkWritable(): void {
    const refusal = this.#whyNotWritable();
    if (refusal) throw refusal;
  }

  get #above(): CpusetGroup {
    return this.#at(this.#withCpuset(dirname(this.rootPath)));
  }

  /**
   * Makes the root if it is missing, with those of these CPUs and memory nodes that the cgroup
   * above has: a container's cgroup has fewer than the machine. Writes nothing if all is as it
   * should be. See {@link CpusetGroup.create}.
   */
  ensureRoot(cpus: CpuSet, mems: NodeSet): void {
    const above = this.#above;
    this.#root.create(inCommon(cpus, above.cpusFor(cpus)), inCommon(mems, above.effectiveMems()));
  }

  /** The CPUs and memory nodes that the cgroup above the root has now. @throws ERR_CGROUP */
  aboveRoot(): { readonly cpus: CpuSet; readonly mems: NodeSet } {
    const above = this.#above;
    return { cpus: above.effectiveCpus(), mems: above.effectiveMems() };
  }

  /**
   * A handle of the root (no names) or of a group below it. A name is any text; it is
   * percent-encoded if needed.
   * @throws ERR_CGROUP (`bad-name`)
   */
  group(...names: string[]): CpusetGroup {
    return this.#at(join(this.rootPath, ...names.map(encodeName)));
  }

  /**
   * A handle of the cgroup with this folder, at or below the root.
   * @throws ERR_CGROUP (`bad-path`)
   */
  at(path: string): CpusetGroup {
    if (isAtOrBelow(path, this.rootPath)) return this.#at(path);
    const valid = `a folder at or below ${this.rootPath}`;
    throw cgroupRefusal('bad-path', `${path} is outside the cgroup root`, { path, value: path, valid });
  }

  /**
   * The folder of the cgroup of a process or of one of its threads.
   * @throws ERR_CGROUP if it has ended, or its cgroup is not mounted here
   */
  folderOf(pid: number, tid?: number): string {
    const folder = folderOfProcess(this.hierarchy, readMembership(pid, tid));
    if (folder === undefined) throw notMounted(this.hierarchy, pid);
    return folder;
  }

  /** The CPUs that threads in the cgroup with this folder may use. @throws ERR_CGROUP */
  effectiveCpusOf(path: string): CpuSet {
    return this.#at(this.#withCpuset(path)).effectiveCpus();
  }

  // With cgroup v2, the controller ends somewhere above most processes.
  #withCpuset(path: string): string {
    let at = path;
    while (this.version === 2 && at !== this.mount && !existsSync(join(at, 'cpuset.cpus.effective')))
      at = dirname(at);
    return at;
  }

  /** Moves one thread to the cgroup with this folder (v1). @throws ERR_CGROUP */
  moveThread(tid: number, to: string): void {
    this.#at(to).attachThread(tid);
  }

  /**
   * The names of the groups directly below the root, as {@link group} takes them. Leaves out
   * folders with names that it would not make.
   */
  list(): string[] {
    if (!this.#root.exists()) return [];
    return childNames(this.rootPath)
      .map(decodeName)
      .filter((name) => name !== undefined)
      .sort();
  }

  /**
   * Makes the root, and makes it a partition with these CPUs, changes its CPUs, or ends it
   * (`member`, for which no CPUs mean those of the cgroup above). Reads back, and undoes what is
   * not valid. Writes nothing if all is as it should be.
   * @throws ERR_CGROUP: `version` on v1; `not-delegated` if the cgroup above is not a partition;
   *   `partition-invalid` with `text`, the value read back
   */
  setPartition(kind: PartitionKind, cpus: CpuSet): void {
    this.#root.setPartition(kind, cpus);
  }

  /** Why the root cannot be a partition with any CPUs; undefined if it can. */
  whyNoPartition(): Error | undefined {
    return this.#root.whyNoPartition('root');
  }

  partition(): Partition {
    return this.#root.partition();
  }

  #at(path: string): CpusetGroup {
    return this.version === 1 ? new CpusetGroupV1(this.tree, path) : new CpusetGroupV2(this.tree, path);
  }

  #whyNotWritable(): unknown {
    const hasRoot = this.#root.exists();
    const paths = hasRoot ? [this.rootPath, join(this.rootPath, 'cgroup.procs')] : [dirname(this.rootPath)];
    if (this.version === 1 && hasRoot) paths.push(join(this.rootPath, 'cpuset.cpus'));
    try {
      if (this.version === 2 && !existsSync(join(this.rootPath, 'cpuset.cpus'))) {
        for (const folder of withoutCpuset(this.tree, this.rootPath)) {
          const refusal = whyNotEnabled(this.tree, folder);
          if (refusal) return refusal;
          paths.push(join(folder, 'cgroup.subtree_control'));
        }
      } else if (this.version === 2) paths.push(join(this.rootPath, 'cpuset.cpus'));
      for (const path of paths) checkAccess(path);
    } catch (error) {
      return error;
    }
    return undefined;
  }
}

function checkAccess(path: string): void {
  try {
    accessSync(path, constants.W_OK);
  } catch (error) {
    // As if the file had been opened for writing.
    (error as NodeJS.ErrnoException).syscall = 'open';
    throw cgroupError(error, { action: 'make', doing: `write ${basename(path)}`, path, value: path });
  }
}

function checkParent(rootPath: string): void {
  const path = dirname(rootPath);
  if (existsSync(path)) return;
  const valid = 'a path whose parent is a cgroup';
  const message = `cannot make ${rootPath}: there is no cgroup ${path}`;
  throw cgroupRefusal('missing', message, { path, value: rootPath, valid });
}

/**
 * The delegated unit that contains a root; undefined if none does.
 * @throws ERR_CGROUP (`systemd-unit`)
 */
function checkUnit(hierarchy: Hierarchy, rootPath: string): string | undefined {
  const unit = unitOf(hierarchy.mount.point, rootPath);
  if (unit === undefined) return undefined;
  const refuse = (why: string, valid: string) =>
    cgroupRefusal('systemd-unit', `numalign's cgroups cannot be at ${rootPath}: ${why}`, {
      path: unit,
      value: rootPath,
      valid,
    });
  if (unit === rootPath)
    throw refuse('that is a systemd unit itself', 'a cgroup below a unit with delegation');
  if (marksOf(hierarchy, unit).some(isDelegated)) return unit;
  const valid = 'a unit with Delegate=yes, or a path outside of units';
  throw refuse(`systemd manages ${basename(unit)} itself`, valid);
}

// With cgroup v1, systemd marks units in its own hierarchy.
function marksOf({ version, mount }: Hierarchy, unit: string): string[] {
  const systemd = version === 1 ? findHierarchy('name=systemd') : undefined;
  return systemd ? [unit, systemd.mount.point + unit.slice(mount.point.length)] : [unit];
}

// If the sets have nothing in common, returns `ids`, so that the kernel's refusal shows.
function inCommon<S extends IdSet<S>>(ids: S, has: S): S {
  const common = ids.intersection(has);
  return common.isEmpty ? ids : common;
}

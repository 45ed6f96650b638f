// Finds the hierarchy of cpusets, and opens it below a root.
import { accessSync, constants, existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';
import type { IdSet } from '../machine/id-set.js';
import type { CgroupPlace, CpusetHierarchy } from './cpuset-hierarchy.js';
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
import type { CommonGroup } from './groups/common-group.js';
import { whyNotEnabled, withoutCpuset } from './groups/cpuset-controller.js';
import type { CpusetGroup, CpusetTree, Partition, PartitionKind } from './groups/cpuset-group.js';
import { CpusetGroupV1 } from './groups/cpuset-v1.js';
import { CpusetGroupV2 } from './groups/cpuset-v2.js';
import {
  type CgroupLimits,
  folderOfProcess,
  limitsOfFolder,
  limitsOfProcess,
  notMounted,
  readMembership,
} from './limits.js';

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
  return new OpenHierarchy(neededHierarchy('cpuset', cgroupRoot), cgroupRoot, made, files);
}

class OpenHierarchy implements CpusetHierarchy {
  readonly version: 1 | 2;
  readonly mount: string;
  readonly rootPath: string;
  readonly #hierarchy: Hierarchy;
  readonly #root: CommonGroup;
  readonly #tree: CpusetTree;

  constructor(hierarchy: Hierarchy, cgroupRoot: string, made: MadeGroups, files: CgroupFiles) {
    this.#hierarchy = hierarchy;
    this.version = hierarchy.version;
    this.mount = hierarchy.mount.point;
    this.rootPath = this.mount + cgroupRoot;
    checkFolder(this.mount, this.rootPath);
    this.#checkParent();
    const unit = checkUnit(hierarchy, this.rootPath);
    this.#tree = {
      version: this.version,
      mount: this.mount,
      rootPath: this.rootPath,
      made,
      files,
      isOpen: (folder) => unit === undefined || isAtOrBelow(folder, unit),
    };
    this.#root = this.#at(this.rootPath);
  }

  canWrite(): boolean {
    return this.#whyNotWritable() === undefined;
  }

  checkWritable(): void {
    const refusal = this.#whyNotWritable();
    if (refusal) throw refusal;
  }

  get #above(): CommonGroup {
    return this.#at(this.#withCpuset(dirname(this.rootPath)));
  }

  ensureRoot(cpus: CpuSet, mems: NodeSet): void {
    const above = this.#above;
    this.#root.create(inCommon(cpus, above.cpusFor(cpus)), inCommon(mems, above.effectiveMems()));
  }

  aboveRoot(): { readonly cpus: CpuSet; readonly mems: NodeSet } {
    const above = this.#above;
    return { cpus: above.effectiveCpus(), mems: above.effectiveMems() };
  }

  group(...names: string[]): CpusetGroup {
    return this.#at(join(this.rootPath, ...names.map(encodeName)));
  }

  at(path: string): CpusetGroup {
    if (!isAtOrBelow(path, this.rootPath)) {
      const valid = `a folder at or below ${this.rootPath}`;
      throw cgroupRefusal('bad-path', `${path} is outside the cgroup root; valid is ${valid}`, {
        path,
        value: path,
        valid,
      });
    }
    return this.#at(path);
  }

  groupOf(pid: number, tid?: number): CgroupPlace {
    const path = folderOfProcess(this.#hierarchy, readMembership(pid, tid));
    if (path === undefined) throw notMounted(this.#hierarchy, pid);
    return { path, isBelowRoot: isAtOrBelow(path, this.rootPath), isHierarchyRoot: path === this.mount };
  }

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

  moveThread(tid: number, to: string): void {
    this.#at(to).attachThread(tid);
  }

  list(): string[] {
    if (!this.#root.exists()) return [];
    return childNames(this.rootPath)
      .map(decodeName)
      .filter((name) => name !== undefined)
      .sort();
  }

  limits(pid?: number): CgroupLimits {
    if (pid === undefined && this.version === 2) return limitsOfFolder(this.#hierarchy, this.rootPath);
    return limitsOfProcess(pid ?? process.pid);
  }

  setPartition(kind: PartitionKind, cpus: CpuSet): void {
    this.#root.setPartition(kind, cpus);
  }

  whyNoPartition(): Error | undefined {
    return this.#root.whyNoPartition('root');
  }

  partition(): Partition {
    return this.#root.partition();
  }

  removeRoot(): boolean {
    return this.#root.removeIfEmpty();
  }

  #at(path: string): CommonGroup {
    return this.version === 1 ? new CpusetGroupV1(this.#tree, path) : new CpusetGroupV2(this.#tree, path);
  }

  #checkParent(): void {
    const parent = dirname(this.rootPath);
    if (existsSync(parent)) return;
    const valid = 'a path whose parent is a cgroup';
    throw cgroupRefusal(
      'missing',
      `cannot make ${this.rootPath}: there is no cgroup ${parent}; valid is ${valid}`,
      {
        path: parent,
        value: this.rootPath,
        valid,
      },
    );
  }

  #whyNotWritable(): unknown {
    const hasRoot = this.#root.exists();
    const paths = hasRoot ? [this.rootPath, join(this.rootPath, 'cgroup.procs')] : [dirname(this.rootPath)];
    if (this.version === 1 && hasRoot) paths.push(join(this.rootPath, 'cpuset.cpus'));
    try {
      if (this.version === 2 && !existsSync(join(this.rootPath, 'cpuset.cpus'))) {
        for (const folder of withoutCpuset(this.#tree, this.rootPath)) {
          const refusal = whyNotEnabled(this.#tree, folder);
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
    throw cgroupError(error, 'make', `write ${basename(path)}`, path, path);
  }
}

/**
 * The delegated unit that contains a root; undefined if none does.
 * @throws ERR_CGROUP (`systemd-unit`)
 */
function checkUnit(hierarchy: Hierarchy, rootPath: string): string | undefined {
  const unit = unitOf(hierarchy.mount.point, rootPath);
  if (unit === undefined) return undefined;
  const refuse = (why: string, valid: string) =>
    cgroupRefusal('systemd-unit', `numalign's cgroups cannot be at ${rootPath}: ${why}; valid is ${valid}`, {
      path: unit,
      value: rootPath,
      valid,
    });
  if (unit === rootPath)
    throw refuse('that is a systemd unit itself', 'a cgroup below a unit with delegation');
  if (!marksOf(hierarchy, unit).some(isDelegated)) {
    throw refuse(
      `systemd manages ${basename(unit)} itself`,
      'a unit with Delegate=yes, or a path outside of units',
    );
  }
  return unit;
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

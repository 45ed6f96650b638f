// Cpusets: the groups below the cgroup root, the processes that they keep in the shared pool, and the
// CPUs that they leave processes. In a container, a group may be outside of the mounted hierarchy:
// then nothing is known of it.
import { dirname, join } from 'node:path';
import { cpusOfSome } from '../../account/cpus-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { NumalignError, textOf, unless, unlessRefused } from '../../base/errors.js';
import type { CpusetHierarchy } from '../../cgroups/cpuset-hierarchy.js';
import { cgroupReason } from '../../cgroups/files/cgroup-error.js';
import { childNames } from '../../cgroups/files/cgroup-files.js';
import { isAtOrBelow } from '../../cgroups/files/mounts.js';
import type { CpusetGroup } from '../../cgroups/groups/cpuset-group.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { isUnused } from '../../processes/process-identity.js';
import { childrenOf } from '../members/descent.js';
import type { SharedMember } from '../members/shared-member.js';
import { GrantGroups } from './grant-groups.js';
import { podsInPartition } from './layout.js';
import { type PoolCpuset, SharedGroup } from './shared-group.js';

const PARTITION_FILES = ['cpuset.cpus', 'cpuset.cpus.exclusive', 'cpuset.cpus.partition'];

/** Everything that writes REQUIRES the state's lock. */
export class Cpusets {
  readonly grants: GrantGroups;
  readonly shared: SharedGroup;

  constructor(readonly hierarchy: CpusetHierarchy) {
    this.grants = new GrantGroups(hierarchy);
    this.shared = new SharedGroup(hierarchy);
  }

  /** Whether the root is a partition now. */
  get isPartition(): boolean {
    return this.hierarchy.version === 2 && this.hierarchy.partition().kind === 'root';
  }

  /** Whether the shared group keeps processes in the shared pool. */
  get isPlain(): boolean {
    return this.shared.exists() && !this.isPartition;
  }

  /** The folder of the group for processes whose origin is unknown. */
  get home(): string {
    return this.isPlain ? this.shared.path : this.hierarchy.mount;
  }

  /** The cgroup of a process; undefined if it has ended. @throws ERR_CGROUP */
  pathOf(pid: number): string | undefined {
    const hasEnded = (error: unknown) => cgroupReason(error) === 'no-process';
    return unless(hasEnded, () => this.hierarchy.folderOf(pid));
  }

  /** Whether a cgroup is below the root, so that numalign sets its CPUs. */
  isOurs(path: string): boolean {
    return path !== this.hierarchy.rootPath && isAtOrBelow(path, this.hierarchy.rootPath);
  }

  // Whether a process of this cgroup is on a grant, and not in the shared group.
  #isOfGrant(path: string): boolean {
    return !this.shared.contains(path) && this.grants.contain(path);
  }

  /** The CPUs that threads of a process may use; undefined if it has ended. */
  cpusOf(pid: number): CpuSet | undefined {
    const { hierarchy } = this;
    return unlessRefused(() => hierarchy.effectiveCpusOf(hierarchy.folderOf(pid)));
  }

  /** The CPUs that threads on no grant may use; undefined if that cannot be seen. */
  cpusOutsideGrants(pid: number): CpuSet | undefined {
    const path = this.pathOf(pid);
    if (path === undefined) return undefined;
    return unlessRefused(() => this.hierarchy.effectiveCpusOf(this.#isOfGrant(path) ? this.home : path));
  }

  /**
   * The CPUs that a process could use if only numalign's groups changed: those of its cpuset, and
   * those that only the group of a grant, the shared group or the partition of these grants keeps
   * from it.
   */
  cpusWithinReach(pid: number, pods: readonly PodAssignment[]): CpuSet {
    const { hierarchy } = this;
    const cpus = this.cpusOf(pid);
    if (!cpus) return CpuSet.EMPTY;
    const inPartition = this.isPartition ? cpusOfSome(podsInPartition(pods)) : CpuSet.EMPTY;
    const path = hierarchy.folderOf(pid);
    if (this.shared.contains(path) || this.grants.contain(path))
      return cpus.union(hierarchy.effectiveCpusOf(dirname(hierarchy.rootPath))).union(inPartition);
    return cpus.equals(hierarchy.effectiveCpusOf(hierarchy.mount)) ? cpus.union(inPartition) : cpus;
  }

  /**
   * Whether a cpuset below the root, and not a partition, keeps a process in the shared pool while
   * it is on no grant.
   */
  holdsInPool(pid: number): boolean {
    return this.isPlain || (!this.isPartition && this.isOurs(this.pathOf(pid) ?? ''));
  }

  /** The groups that have the shared pool: the shared one, and registered ones below the root. */
  poolGroups(members: readonly SharedMember[]): readonly CpusetGroup[] {
    const paths = members.flatMap((each) =>
      each.kind === 'cgroup' && this.isOurs(each.path) ? [each.path] : [],
    );
    return [this.shared.path, ...paths].map((path) => this.hierarchy.at(path));
  }

  /**
   * Whether a group below the root keeps its processes in the shared pool, according to its cpuset
   * as read back.
   */
  isWithin(path: string, pool: CpuSet): boolean {
    if (!this.isOurs(path)) return false;
    const group = this.hierarchy.at(path);
    return group.exists() && group.effectiveCpus().isSubsetOf(pool);
  }

  /** Whether a cpuset, and not a partition, keeps a member in the shared pool. */
  confines(
    member: SharedMember,
    members: readonly SharedMember[],
    pods: readonly PodAssignment[],
    pool: CpuSet,
  ): boolean {
    if (member.kind === 'cgroup') return this.isWithin(member.path, pool);
    try {
      const path = this.hierarchy.folderOf(member.pid);
      if (!this.isOurs(path)) return false;
      const registered = members.flatMap((each) =>
        each.kind === 'cgroup' && this.isWithin(each.path, pool) ? [each.path] : [],
      );
      // In the group of a grant it is not a shared member for now.
      if ([...registered, ...this.grants.pathsOf(pods)].some((ancestor) => isAtOrBelow(path, ancestor)))
        return true;
      return this.shared.contains(path) && this.isWithin(this.shared.path, pool);
    } catch (error) {
      // It has ended, or /proc does not show it.
      if (error instanceof NumalignError) return cgroupReason(error) === 'no-process' && isUnused(member.pid);
      throw error;
    }
  }

  /**
   * Moves a process out of the group of a grant, with its children so far.
   * @throws ERR_CGROUP
   */
  leaveGrants(pid: number, cpuset: PoolCpuset): void {
    const path = this.pathOf(pid);
    if (path === undefined || !this.#isOfGrant(path)) return;
    if (this.hierarchy.version === 1) this.shared.make(cpuset);
    this.hierarchy.at(path).moveBack(pid, this.home);
    for (const child of childrenOf(pid)) this.leaveGrants(child, cpuset);
  }

  /** Why the root cannot be a partition for these grants, as far as this can be seen in advance. */
  whyNoPartition(pods: readonly PodAssignment[]): string | undefined {
    const refusal = this.hierarchy.whyNoPartition();
    if (refusal) return refusal.message;
    const groupInUse = this.isPlain ? this.shared.path : this.#foreignGroup(pods);
    return (
      groupInUse &&
      `there is no partition: the cgroup ${groupInUse} below ${this.hierarchy.rootPath} is in use`
    );
  }

  /** What the kernel compares a partition with above and beside the root: a text to compare. */
  surroundings(): string {
    const above = dirname(this.hierarchy.rootPath);
    const beside = childNames(above).map((name) => join(above, name));
    return [above, ...beside.filter((path) => path !== this.hierarchy.rootPath)]
      .flatMap((path) => PARTITION_FILES.map((name) => textOf(join(path, name)) ?? ''))
      .join();
  }

  // A populated group below the root that belongs to no grant. A partition would put its processes
  // on the grants' CPUs.
  #foreignGroup(pods: readonly PodAssignment[]): string | undefined {
    const { rootPath } = this.hierarchy;
    if (!this.hierarchy.group().exists()) return undefined;
    const granted = new Set(this.grants.pathsOf(pods));
    return childNames(rootPath)
      .map((name) => join(rootPath, name))
      .find((path) => !granted.has(path) && this.hierarchy.at(path).isPopulated());
  }
}

// CpusetLayout: which groups there are below the configured root, and what they may use. Plain:
// <root>/shared has the shared pool, <root>/<uid>%2F<container> a container's CPUs. As a partition:
// the root has just the exclusive CPUs, the kernel keeps everybody else off them, and there is no
// shared group. A container's group is a leaf: the kernel makes no partition of all CPUs of a group
// whose processes are deeper.
import { readlinkSync } from 'node:fs';
import { release } from 'node:os';
import { dirname, join } from 'node:path';
import { cpusOf, type PodAssignment, runningCpus } from '../account/pod-assignment.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { childNames } from '../cgroups/cgroup-files.js';
import type { CpusetGroup } from '../cgroups/cpuset-group.js';
import type { CpusetHierarchy } from '../cgroups/cpuset-hierarchy.js';
import { CpuSet, type NodeSet } from '../machine/cpu-set.js';
import { isUnused } from '../processes/process-identity.js';
import type { SharedMember } from './members/confinement.js';
import { childrenOf } from './members/descent.js';

/** What is not as it should be below the root. */
export interface Stray {
  readonly kind: 'cgroup' | 'partition' | 'pool' | 'leftover';
  readonly pod: PodAssignment | null;
  readonly path: string;
  readonly what: string;
  repair(): void;
}

/** The group of the shared pool, below the root. */
export const SHARED = 'shared';
/** The group of a pod of several containers for whoever runs on the CPUs of all of them. */
export const ALL_CONTAINERS = '.all';
// linux/proc_ns.h: the namespace in which paths are those of the machine.
const INITIAL_CGROUP_NAMESPACE = 'cgroup:[4026531835]';

/** Whether this process sees the machine's cgroups under their own names. */
export function isInInitialCgroupNamespace(): boolean {
  try {
    return readlinkSync('/proc/self/ns/cgroup') === INITIAL_CGROUP_NAMESPACE;
  } catch {
    // Kernels without such namespaces have one.
    return true;
  }
}

// From Linux 6.2 on the kernel remembers what a thread has asked for when its cpuset changes.
function keepsMasks(): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number);
  return major > 6 || (major === 6 && minor >= 2);
}

/** Whether a grant's CPUs are in the root partition. */
export function isPartitioned({ enforcement: { level } }: Pick<PodAssignment, 'enforcement'>): boolean {
  return level === 'partition' || level === 'isolated';
}

export function allCpusOf(pods: Iterable<PodAssignment>): CpuSet {
  let cpus = CpuSet.EMPTY;
  for (const pod of pods) cpus = cpus.union(cpusOf(pod));
  return cpus;
}

// <uid>/<container>
const isGrants = (name: string) => name.includes('/');

const isBelow = (path: string, above: string) => path === above || path.startsWith(`${above}/`);

/** Where processes of a group go that is to be removed. */
type Home = string | ((pid: number) => string);

// A group may be outside of what is mounted here, as seen from a container: then nothing can be
// told of it.
function whereMounted<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof NumalignError) return undefined;
    throw error;
  }
}

/** REQUIRES for everything that writes: the state's lock. */
export class CpusetLayout {
  readonly hierarchy: CpusetHierarchy;
  readonly #shared: CpusetGroup;

  constructor(hierarchy: CpusetHierarchy) {
    this.hierarchy = hierarchy;
    this.#shared = hierarchy.group(SHARED);
  }

  canWrite(): boolean {
    return this.hierarchy.canWrite();
  }

  /** The group of a container; {@link ALL_CONTAINERS}: of all of them. */
  groupOf({ uid }: Pick<PodAssignment, 'uid'>, container: string): CpusetGroup {
    return this.hierarchy.group(`${uid}/${container}`);
  }

  /**
   * Where a grant is enforced, for people: the group of its first container with exclusive CPUs.
   */
  pathOf(pod: PodAssignment): string {
    return this.groupOf(pod, pod.containers.find(({ cpus }) => !cpus.isEmpty)!.name).path;
  }

  /** The groups of a grant that are there, with what they are to have. */
  #groupsOf(pod: PodAssignment): { readonly group: CpusetGroup; readonly cpus: CpuSet }[] {
    const containers = [...pod.containers, { name: ALL_CONTAINERS, cpus: runningCpus(pod) }];
    return containers
      .filter(({ cpus }) => !cpus.isEmpty)
      .map(({ name, cpus }) => ({ group: this.groupOf(pod, name), cpus }))
      .filter(({ group }) => group.exists());
  }

  /** Whether the root is a partition now. */
  get isPartition(): boolean {
    return this.hierarchy.version === 2 && this.hierarchy.partition().kind === 'root';
  }

  /** Whether the root is a partition of just the CPUs of these grants. */
  isPartitionOf(pods: readonly PodAssignment[]): boolean {
    const { kind, valid, cpus } = this.hierarchy.partition();
    return kind === 'root' && valid && cpus.equals(allCpusOf(pods.filter(isPartitioned)));
  }

  /** The CPUs that threads of a process may use; undefined where it has ended. */
  cpusetOf(pid: number): CpuSet | undefined {
    return whereMounted(() => this.hierarchy.effectiveCpusOf(this.hierarchy.groupOf(pid).path));
  }

  /**
   * What threads of a process may use that run on no grant; undefined where that cannot be told.
   */
  cpusOutsideGrants(pid: number): CpuSet | undefined {
    const path = this.#pathOf(pid);
    if (path === undefined) return undefined;
    return whereMounted(() => {
      const isInGrant = !this.isShared(path) && this.#isOfGrant(path);
      return this.hierarchy.effectiveCpusOf(isInGrant ? this.home : path);
    });
  }

  /**
   * The CPUs that a process could be given by changing groups of ours alone: those of its cpuset,
   * and what only the group of a grant, the shared group or the partition of these grants keeps
   * from it.
   */
  cpusWithinReach(pid: number, pods: readonly PodAssignment[]): CpuSet {
    const { hierarchy } = this;
    const cpuset = this.cpusetOf(pid);
    if (!cpuset) return CpuSet.EMPTY;
    const inPartition = this.isPartition ? allCpusOf(pods.filter(isPartitioned)) : CpuSet.EMPTY;
    if (this.#isOfGrant(hierarchy.groupOf(pid).path)) {
      return cpuset.union(hierarchy.effectiveCpusOf(dirname(hierarchy.rootPath))).union(inPartition);
    }
    return cpuset.equals(hierarchy.effectiveCpusOf(hierarchy.mount)) ? cpuset.union(inPartition) : cpuset;
  }

  // Or of the shared pool.
  #isOfGrant(path: string): boolean {
    const { hierarchy } = this;
    const groups = hierarchy.list().filter(isGrants);
    return this.isShared(path) || groups.some((name) => isBelow(path, hierarchy.group(name).path));
  }

  /** The CPUs that threads in a cgroup may use. @throws ERR_CGROUP */
  effectiveCpusOf(path: string): CpuSet {
    return this.hierarchy.effectiveCpusOf(path);
  }

  /** Whether processes in a cgroup are confined to the shared pool by the shared group. */
  isShared(path: string): boolean {
    return isBelow(path, this.#shared.path);
  }

  get #isPlain(): boolean {
    return this.#shared.exists() && !this.isPartition;
  }

  /**
   * Whether a cpuset below the root, and no partition, keeps a process in the shared pool while it
   * runs on no grant.
   */
  holdsInPool(pid: number): boolean {
    return this.#isPlain || (!this.isPartition && this.isOurs(this.#pathOf(pid) ?? ''));
  }

  /**
   * Makes the root a partition of the CPUs of these grants, or ends it where there are none; of
   * `lasting` those at the level `isolated` are partitions in it.
   * @throws ERR_CGROUP with what the kernel made of it; then it is as it was
   */
  setPartition(pods: readonly PodAssignment[], lasting: readonly PodAssignment[]): void {
    const { hierarchy } = this;
    const inside = pods.filter(isPartitioned);
    const cpus = allCpusOf(inside);
    if (cpus.isEmpty) {
      if (this.isPartition) hierarchy.setPartition('member', CpuSet.EMPTY);
      return;
    }
    // What is lost must have left the groups inside before.
    for (const pod of inside) {
      for (const { group } of this.#groupsOf(pod)) {
        const kept = group.cpus().intersection(cpus);
        if (!kept.isEmpty) this.#fit(group, kept);
      }
    }
    hierarchy.setPartition('root', cpus);
    // Before any process is in them, where they are new.
    for (const pod of lasting) {
      if (pod.enforcement.level !== 'isolated') continue;
      for (const container of pod.containers) {
        if (container.cpus.isEmpty) continue;
        const group = this.groupOf(pod, container.name);
        if (!group.exists()) group.create(container.cpus, this.#mems());
        group.setPartition('isolated', container.cpus);
      }
    }
  }

  // With cgroup v1 a CPU that goes offline is in no cpuset any more, and cannot be put into one.
  #present(cpus: CpuSet): CpuSet {
    return this.hierarchy.version === 1 ? cpus.intersection(new CpuSet(native.onlineCpus())) : cpus;
  }

  #fit(group: CpusetGroup, wanted: CpuSet): void {
    const cpus = this.#present(wanted);
    if (!cpus.isEmpty && !group.cpus().equals(cpus)) group.setCpus(cpus);
  }

  /**
   * What somebody has changed: groups of grants and of the shared pool, the partition, groups of
   * grants that are gone. Answers also how much there was to look at. Changes nothing.
   * @throws ERR_CGROUP
   */
  strays(
    pods: readonly PodAssignment[],
    pool: CpuSet,
    members: readonly SharedMember[],
  ): { readonly checked: number; readonly found: readonly Stray[] } {
    const found: Stray[] = [];
    let checked = 0;
    if (this.hierarchy.version === 2) {
      checked++;
      found.push(...this.#strayPartition(pods));
    }
    for (const pod of pods) {
      if (pod.enforcement.target === null) continue;
      for (const { group, cpus } of this.#groupsOf(pod)) {
        checked++;
        const has = this.#present(group.cpus());
        // While it is being changed it may have all that the grant holds.
        if (this.#present(cpus).isSubsetOf(has) && has.isSubsetOf(cpusOf(pod))) continue;
        const what = `${group.path} has CPUs ${group.cpus()} instead of ${cpus}`;
        found.push({ kind: 'cgroup', pod, path: group.path, what, repair: () => this.#fit(group, cpus) });
      }
    }
    const pools = this.isPartition || pool.isEmpty ? [] : this.#poolGroups(members);
    for (const group of pools) {
      checked++;
      if (group.cpus().equals(this.#present(pool))) continue;
      const what = `${group.path} has CPUs ${group.cpus()} instead of the shared pool's ${pool}`;
      found.push({ kind: 'pool', pod: null, path: group.path, what, repair: () => this.#fit(group, pool) });
    }
    for (const group of this.leftovers(pods)) {
      if (!group.isMade()) continue;
      const what = `${group.path} is left of a grant that is gone`;
      found.push({
        kind: 'leftover',
        pod: null,
        path: group.path,
        what,
        repair: () => group.remove(this.home),
      });
    }
    return { checked, found };
  }

  #strayPartition(pods: readonly PodAssignment[]): Stray[] {
    const inside = pods.filter(isPartitioned);
    const wanted = allCpusOf(inside);
    const { kind, valid, cpus, text } = this.hierarchy.partition();
    const isolated = inside
      .filter(({ enforcement }) => enforcement.level === 'isolated')
      .flatMap((pod) => this.#groupsOf(pod).map(({ group }) => group.partition()));
    const isRight = wanted.isEmpty
      ? kind !== 'root'
      : kind === 'root' &&
        valid &&
        cpus.equals(wanted) &&
        isolated.every((each) => each.valid || each.kind === 'none');
    if (isRight) return [];
    const { rootPath } = this.hierarchy;
    const what = `${rootPath} is "${text}" with CPUs ${cpus} instead of ${wanted.isEmpty ? 'no partition' : `a partition of ${wanted}`}`;
    return [
      { kind: 'partition', pod: null, path: rootPath, what, repair: () => this.setPartition(pods, pods) },
    ];
  }

  #mems(): NodeSet {
    return this.hierarchy.group().effectiveMems();
  }

  /** The memory nodes of a grant's groups, of which any will do; `all`: the machine's. */
  memsOfGroups(all: NodeSet): NodeSet {
    return this.hierarchy.version === 1 ? all : this.#mems();
  }

  /**
   * Gives the shared group, and the registered groups below the root, the shared pool.
   * @throws ERR_CGROUP
   */
  setPool(pool: CpuSet, members: readonly SharedMember[]): void {
    for (const group of this.#poolGroups(members)) this.#fit(group, pool);
  }

  /**
   * Whether {@link setPool} has the kernel give threads all CPUs of their cpuset, whatever they
   * have chosen.
   */
  resetsMasks(pool: CpuSet, members: readonly SharedMember[]): boolean {
    const cpus = this.#present(pool);
    return (
      !keepsMasks() && !cpus.isEmpty && this.#poolGroups(members).some((group) => !group.cpus().equals(cpus))
    );
  }

  #poolGroups(members: readonly SharedMember[]): CpusetGroup[] {
    const groups = members.flatMap((each) =>
      each.kind === 'cgroup' && this.isOurs(each.path) ? [this.hierarchy.at(each.path)] : [],
    );
    return [this.#shared, ...groups].filter((group) => group.exists());
  }

  /**
   * Whether the cpuset of a group below the root keeps what is in it in the shared pool, as it
   * reads back.
   */
  isWithin(path: string, pool: CpuSet): boolean {
    if (!this.isOurs(path)) return false;
    const group = this.hierarchy.at(path);
    return group.exists() && group.effectiveCpus().isSubsetOf(pool);
  }

  /** Why the root cannot be a partition for these grants, as far as can be seen before. */
  whyNoPartition(pods: readonly PodAssignment[]): string | undefined {
    const refusal = this.hierarchy.whyNoPartition();
    if (refusal) return refusal.message;
    const stranger = this.#isPlain ? this.#shared.path : this.#stranger(pods);
    return (
      stranger && `there is no partition: the cgroup ${stranger} below ${this.hierarchy.rootPath} is in use`
    );
  }

  // A group below the root with processes in it that is no grant's: a partition would put them on
  // the grants' CPUs.
  #stranger(pods: readonly PodAssignment[]): string | undefined {
    const { rootPath } = this.hierarchy;
    if (!this.hierarchy.group().exists()) return undefined;
    const granted = new Set(pods.flatMap((pod) => this.#groupsOf(pod).map(({ group }) => group.path)));
    return childNames(rootPath)
      .map((name) => join(rootPath, name))
      .find((path) => !granted.has(path) && this.hierarchy.at(path).isPopulated());
  }

  /** Whether a cgroup is below the root, so that its CPUs are ours to set. */
  isOurs(path: string): boolean {
    return path !== this.hierarchy.rootPath && isBelow(path, this.hierarchy.rootPath);
  }

  /** Whether a cpuset of the plain layout keeps a member in the shared pool. */
  confines(
    member: SharedMember,
    members: readonly SharedMember[],
    pods: readonly PodAssignment[],
    pool: CpuSet,
  ): boolean {
    if (member.kind === 'cgroup') return this.isWithin(member.path, pool);
    try {
      const { path } = this.hierarchy.groupOf(member.pid);
      if (!this.isOurs(path)) return false;
      const registered = members.flatMap((each) =>
        each.kind === 'cgroup' && this.isWithin(each.path, pool) ? [each.path] : [],
      );
      // In the groups of a grant it is no shared member at present.
      const granted = pods.flatMap((pod) => this.#groupsOf(pod).map(({ group }) => group.path));
      if ([...registered, ...granted].some((above) => isBelow(path, above))) return true;
      return isBelow(path, this.#shared.path) && this.isWithin(this.#shared.path, pool);
    } catch (error) {
      // It has ended, or /proc does not show it.
      if (error instanceof NumalignError)
        return error.details.reason === 'no-process' && isUnused(member.pid);
      throw error;
    }
  }

  /**
   * Has a process run in the shared group. One that somebody has put into a group of its own stays
   * there, and so does every process of cgroup v2, where a group is more than a cpuset.
   */
  joinShared(pid: number, pool: CpuSet, all: CpuSet, mems: NodeSet): void {
    if (!this.couldJoinShared(pid)) return;
    try {
      this.hierarchy.ensureRoot(all, mems);
      this.#shared.create(pool, mems);
      this.#shared.attach(pid);
    } catch (error) {
      // Masks must do.
      if (!(error instanceof NumalignError)) throw error;
    }
  }

  /**
   * Has a process that is in the group of a grant leave it, with what it has started by now.
   * @throws ERR_CGROUP
   */
  leaveGrants(pid: number, pool: CpuSet, all: CpuSet, mems: NodeSet): void {
    const { hierarchy } = this;
    const path = this.#pathOf(pid);
    if (path === undefined || this.isShared(path) || !this.#isOfGrant(path)) return;
    if (hierarchy.version === 1) {
      hierarchy.ensureRoot(all, mems);
      this.#shared.create(pool, mems);
    }
    hierarchy.at(path).moveBack(pid, this.home);
    for (const child of childrenOf(pid)) this.leaveGrants(child, pool, all, mems);
  }

  // Undefined where it has ended.
  #pathOf(pid: number): string | undefined {
    try {
      return this.hierarchy.groupOf(pid).path;
    } catch (error) {
      if (error instanceof NumalignError && error.details.reason === 'no-process') return undefined;
      throw error;
    }
  }

  /** Whether {@link joinShared} would move a process. */
  couldJoinShared(pid: number): boolean {
    const { hierarchy } = this;
    if (hierarchy.version !== 1) return false;
    try {
      return hierarchy.groupOf(pid).isHierarchyRoot && hierarchy.canWrite();
    } catch (error) {
      if (error instanceof NumalignError) return false;
      throw error;
    }
  }

  /** Back to where {@link joinShared} took it from; only where nothing is exclusive. */
  leaveShared(pid: number): void {
    const { hierarchy } = this;
    if (hierarchy.version === 1 && isBelow(this.#pathOf(pid) ?? '', this.#shared.path))
      this.#shared.moveBack(pid, hierarchy.mount);
  }

  /** The group of a container, made where it is not there yet. @throws ERR_CGROUP */
  groupFor(pod: PodAssignment, container: string, all: CpuSet, mems: NodeSet): CpusetGroup {
    const { hierarchy } = this;
    const isPartition = isPartitioned(pod);
    if (!isPartition) hierarchy.ensureRoot(all, mems);
    const group = this.groupOf(pod, container);
    const cpus = pod.containers.find(({ name }) => name === container)?.cpus ?? runningCpus(pod);
    if (!group.exists()) group.create(cpus, this.memsOfGroups(mems));
    return group;
  }

  /** One thread goes to another cgroup (v1). @throws ERR_CGROUP */
  moveThread(tid: number, to: string): void {
    this.hierarchy.moveThread(tid, to);
  }

  /**
   * Gives the groups of a grant the CPUs that it has, and `more` (of a pod of one container).
   * @throws ERR_CGROUP
   */
  fit(pod: PodAssignment, more: CpuSet): void {
    for (const { group, cpus } of this.#groupsOf(pod)) {
      this.#fit(group, pod.containers.length === 1 ? cpus.union(more) : cpus);
    }
  }

  /**
   * Removes a grant's groups; what still runs in them goes to the shared pool.
   * @throws ERR_CGROUP where something cannot leave
   */
  remove(pod: PodAssignment, home: Home = this.home): void {
    // Out of all of them before any is removed: one that somebody else has made inside stays.
    for (const { group } of this.#groupsOf(pod)) group.evacuate(home);
    for (const { group } of this.#groupsOf(pod)) group.remove(home);
  }

  /** The groups of grants that are not on record any more. */
  leftovers(pods: readonly PodAssignment[]): CpusetGroup[] {
    const known = new Set(pods.map(({ uid }) => uid));
    return this.hierarchy
      .list()
      .filter((name) => isGrants(name) && !known.has(name.slice(0, name.lastIndexOf('/'))))
      .map((name) => this.hierarchy.group(name));
  }

  /** Whether something runs in a grant's groups. */
  isPopulated(pod: PodAssignment): boolean {
    return this.#groupsOf(pod).some(({ group }) => group.isPopulated());
  }

  /** The processes in a grant's groups. */
  processesOf(
    pod: PodAssignment,
  ): readonly { readonly group: CpusetGroup; readonly pids: readonly number[] }[] {
    return this.#groupsOf(pod).map(({ group }) => ({ group, pids: group.processes() }));
  }

  /**
   * Ends the plain layout: those in the shared group go back to the top of the hierarchy.
   * @throws ERR_CGROUP
   */
  dissolveShared(): void {
    if (!this.#shared.exists()) return;
    this.#shared.remove(this.hierarchy.mount);
    this.hierarchy.removeRoot();
  }

  /** Where processes belong that nothing else is known of. */
  get home(): string {
    return this.#isPlain ? this.#shared.path : this.hierarchy.mount;
  }
}

// GrantGroups: the groups of grants below the cgroup root, and the processes in them.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { hasParts, runningCpus } from '../../account/pod-holdings.js';
import type { CpusetHierarchy } from '../../cgroups/cpuset-hierarchy.js';
import { isAtOrBelow } from '../../cgroups/files/mounts.js';
import type { CpusetGroup } from '../../cgroups/groups/cpuset-group.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { ALL_CONTAINERS, groupName, groupsOf, isPartitioned, memoryNodesOf, uidOf } from './layout.js';

/** Everything that writes REQUIRES the state's lock. */
export class GrantGroups {
  constructor(private readonly hierarchy: CpusetHierarchy) {}

  /** `container`: a name, or ALL_CONTAINERS. */
  of({ uid }: Pick<PodAssignment, 'uid'>, container: string): CpusetGroup {
    return this.hierarchy.group(groupName(uid, container));
  }

  /**
   * Where a grant is enforced, to show to people: the group of its first container with exclusive
   * CPUs.
   */
  pathOf(pod: PodAssignment): string {
    const { name } = pod.containers.find(({ cpus }) => !cpus.isEmpty)!;
    return this.of(pod, hasParts(pod) ? ALL_CONTAINERS : name).path;
  }

  /**
   * The group of a container; makes it if it does not exist. `all`, `mems`: the machine's.
   * @throws ERR_CGROUP
   */
  make(pod: PodAssignment, container: string, all: CpuSet, mems: NodeSet): CpusetGroup {
    if (!isPartitioned(pod)) this.hierarchy.ensureRoot(all, mems);
    const group = this.of(pod, container);
    const cpus = pod.containers.find(({ name }) => name === container)?.cpus ?? runningCpus(pod);
    if (!group.exists()) group.create(cpus, this.anyNodes());
    return group;
  }

  /**
   * The memory nodes of the group of a container with booked memory, as far as the root has them.
   * Empty if any nodes will do.
   */
  boundNodes(pod: PodAssignment, container: string): NodeSet {
    const booked = memoryNodesOf(pod, container);
    return booked.isEmpty ? booked : booked.intersection(this.anyNodes());
  }

  /** The memory nodes of a group without booked memory: those of the root. */
  anyNodes(): NodeSet {
    return this.hierarchy.group().effectiveMems();
  }

  /** The groups of a grant that exist. */
  #present(pod: PodAssignment): CpusetGroup[] {
    return groupsOf(pod)
      .map(({ name }) => this.hierarchy.group(name))
      .filter((group) => group.exists());
  }

  pathsOf(pods: readonly PodAssignment[]): string[] {
    return pods.flatMap((pod) => this.#present(pod).map(({ path }) => path));
  }

  /**
   * Removes a grant's groups. What still runs in them moves to the group with the folder `home`.
   * @throws ERR_CGROUP if something cannot leave
   */
  remove(pod: PodAssignment, home: string): void {
    const groups = this.#present(pod);
    // Processes leave all groups before any is removed: a group that another program made inside
    // stays.
    for (const group of groups) group.evacuate(home);
    for (const group of groups) group.remove(home);
  }

  /** Groups whose grants are no longer on record. */
  leftovers(pods: readonly PodAssignment[]): CpusetGroup[] {
    const names = this.#names();
    if (names.length === 0) return [];
    const uids = new Set<string | undefined>(pods.map(({ uid }) => uid));
    return names.filter((name) => !uids.has(uidOf(name))).map((name) => this.hierarchy.group(name));
  }

  /** Whether a cgroup is the group of a grant, or below one. */
  contain(path: string): boolean {
    return this.#names().some((name) => isAtOrBelow(path, this.hierarchy.group(name).path));
  }

  #names(): string[] {
    return this.hierarchy.list().filter((name) => uidOf(name) !== undefined);
  }

  /** Whether something runs in a grant's groups. */
  isPopulated(pod: PodAssignment): boolean {
    return this.#present(pod).some((group) => group.isPopulated());
  }

  /** The pids in each group of a grant. */
  processesOf(pod: PodAssignment) {
    return this.#present(pod).map((group) => ({ group, pids: group.processes() }));
  }
}

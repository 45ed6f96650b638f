// GrantGroups: the groups of grants below the cgroup root, and the processes in them.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { hasParts, runningCpus } from '../../account/pod-holdings.js';
import type { CpusetHierarchy } from '../../cgroups/cpuset-hierarchy.js';
import { isAtOrBelow } from '../../cgroups/files/mounts.js';
import type { CpusetGroup } from '../../cgroups/groups/cpuset-group.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import {
  ALL_CONTAINERS,
  groupName,
  groupsOf,
  isPartitioned,
  memoryNodesOf,
  uidOf,
} from '../layout/layout.js';

export interface GrantProcesses {
  readonly group: CpusetGroup;
  readonly pids: readonly number[];
}

/** What writes REQUIRES the state's lock. */
export class GrantGroups {
  readonly #hierarchy: CpusetHierarchy;

  constructor(hierarchy: CpusetHierarchy) {
    this.#hierarchy = hierarchy;
  }

  /** `container`: its name, or ALL_CONTAINERS. */
  of({ uid }: Pick<PodAssignment, 'uid'>, container: string): CpusetGroup {
    return this.#hierarchy.group(groupName(uid, container));
  }

  /**
   * Where a grant is enforced, for people: the group of its first container with exclusive CPUs.
   */
  pathOf(pod: PodAssignment): string {
    const { name } = pod.containers.find(({ cpus }) => !cpus.isEmpty)!;
    return this.of(pod, hasParts(pod) ? ALL_CONTAINERS : name).path;
  }

  /**
   * The group of a container, made where it is not there yet. `all`, `mems`: the machine's.
   * @throws ERR_CGROUP
   */
  make(pod: PodAssignment, container: string, all: CpuSet, mems: NodeSet): CpusetGroup {
    if (!isPartitioned(pod)) this.#hierarchy.ensureRoot(all, mems);
    const group = this.of(pod, container);
    const cpus = pod.containers.find(({ name }) => name === container)?.cpus ?? runningCpus(pod);
    if (!group.exists()) group.create(cpus, this.anyNodes());
    return group;
  }

  /**
   * The memory nodes of the group of a container that memory is booked for, as far as the root has
   * them; none: any will do.
   */
  boundNodes(pod: PodAssignment, container: string): NodeSet {
    const booked = memoryNodesOf(pod, container);
    return booked.isEmpty ? booked : booked.intersection(this.anyNodes());
  }

  /** The memory nodes of a group, of which any will do: those of the root. */
  anyNodes(): NodeSet {
    return this.#hierarchy.group().effectiveMems();
  }

  /** Those of a grant that are there. */
  #present(pod: PodAssignment): CpusetGroup[] {
    return groupsOf(pod)
      .map(({ name }) => this.#hierarchy.group(name))
      .filter((group) => group.exists());
  }

  pathsOf(pods: readonly PodAssignment[]): string[] {
    return pods.flatMap((pod) => this.#present(pod).map(({ path }) => path));
  }

  /**
   * Removes a grant's groups; what still runs in them goes to the group with the folder `home`.
   * @throws ERR_CGROUP where something cannot leave
   */
  remove(pod: PodAssignment, home: string): void {
    const groups = this.#present(pod);
    // Out of all of them before any is removed: one that somebody else has made inside stays.
    for (const group of groups) group.evacuate(home);
    for (const group of groups) group.remove(home);
  }

  /** The groups of grants that are not on record any more. */
  leftovers(pods: readonly PodAssignment[]): CpusetGroup[] {
    const names = this.#names();
    if (names.length === 0) return [];
    const known = new Set<string | undefined>(pods.map(({ uid }) => uid));
    return names.filter((name) => !known.has(uidOf(name))).map((name) => this.#hierarchy.group(name));
  }

  /** Whether a cgroup is the group of a grant, or below one. */
  contain(path: string): boolean {
    return this.#names().some((name) => isAtOrBelow(path, this.#hierarchy.group(name).path));
  }

  #names(): string[] {
    return this.#hierarchy.list().filter((name) => uidOf(name) !== undefined);
  }

  /** Whether something runs in a grant's groups. */
  isPopulated(pod: PodAssignment): boolean {
    return this.#present(pod).some((group) => group.isPopulated());
  }

  processesOf(pod: PodAssignment): readonly GrantProcesses[] {
    return this.#present(pod).map((group) => ({ group, pids: group.processes() }));
  }
}

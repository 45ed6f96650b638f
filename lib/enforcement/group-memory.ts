// GroupMemory: the memory nodes of a grant's cgroup. Synchronous: it writes cpuset.mems.
import type { PodAssignment } from '../account/pod-assignment.js';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { unlessRefused } from '../base/errors.js';
import type { CpusetGroup } from '../cgroups/groups/cpuset-group.js';
import type { NodeSet } from '../machine/cpu-set.js';
import type { Cpusets } from './layout/cpusets.js';
import { memoryNodesOf } from './layout/layout.js';
import { whyUnbound } from './memory-binding.js';

// The paths of groups for which this process has asked for strict memory.
const newStrictGroups = () => new Set<string>();
const strictGroups = () => ENVIRONMENT.of(newStrictGroups);

export class GroupMemory {
  // While the threads of this process have left.
  #formerNodes: NodeSet | undefined;

  /** `container`: a name, or ALL_CONTAINERS. */
  constructor(
    private readonly cpusets: Cpusets,
    private readonly pod: PodAssignment,
    private readonly container: string,
  ) {}

  get #group(): CpusetGroup {
    return this.cpusets.grants.of(this.pod, this.container);
  }

  /**
   * Binds the group to the memory nodes booked for it, before anything enters it. Returns why the
   * kernel refused; undefined if it did not.
   */
  bind(): string | undefined {
    const group = this.#group;
    return whyUnbound(() => {
      const nodes = this.cpusets.grants.boundNodes(this.pod, this.container);
      if (!nodes.isEmpty && !group.mems().equals(nodes)) group.setMems(nodes);
    });
  }

  /**
   * Restricts the memory of everything in the group to these nodes (cpuset.mems), and moves pages
   * there. Undefined: the nodes of what is booked, or all nodes.
   * @throws ERR_CGROUP
   */
  restrict(nodes: NodeSet | undefined): void {
    const group = this.#group;
    const wasStrict = nodes ? strictGroups().has(group.path) : strictGroups().delete(group.path);
    if (!group.exists()) return;
    if (nodes) strictGroups().add(group.path);
    if (!nodes && this.isBooked) this.bind();
    else {
      const allNodes = this.cpusets.grants.anyNodes();
      const mems = nodes ?? allNodes;
      if (group.mems().equals(mems)) {
        if (!this.isBooked || wasStrict || this.cpusets.hierarchy.version === 2) return;
        // The group was bound before anything entered it. With cgroup v1, pages move only when the
        // nodes change.
        group.setMems(allNodes);
      }
      group.setMems(mems, { migrate: true });
    }
  }

  /** Ends the restriction, where the threads of this process leave. @throws ERR_CGROUP */
  free(): void {
    this.#formerNodes = this.isStrict ? this.#group.mems() : undefined;
    this.restrict(undefined);
  }

  /** Restricts it as before {@link free}, as far as possible. */
  restrictAgain(): void {
    if (this.#formerNodes) unlessRefused(() => this.restrict(this.#formerNodes));
  }

  /** Whether {@link restrict} is in force. */
  get isStrict(): boolean {
    const group = this.#group;
    return strictGroups().has(group.path) && group.exists();
  }

  /** Whether memory is booked for the group. */
  get isBooked(): boolean {
    return !memoryNodesOf(this.pod, this.container).isEmpty;
  }
}

// Steps: how groups below the cgroup root become what they are to be. Each is done, or undone and an
// error, and is read back by the group that it changes.
import type { CpusetHierarchy } from '../../cgroups/cpuset-hierarchy.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';

export type Step =
  | { readonly kind: 'fit'; readonly path: string; readonly cpus: CpuSet }
  | { readonly kind: 'bind'; readonly path: string; readonly nodes: NodeSet }
  /** The root; no CPUs end its partition. */
  | { readonly kind: 'partition'; readonly cpus: CpuSet }
  /** Makes the group where it is not there. */
  | { readonly kind: 'isolate'; readonly name: string; readonly cpus: CpuSet }
  /** `home`: the folder of the group for the processes that are in it. */
  | { readonly kind: 'remove'; readonly path: string; readonly home: string };

/**
 * Takes the steps of differences, and stops at the first that fails. REQUIRES: the state's lock.
 * @throws ERR_CGROUP
 */
export function mend(
  hierarchy: CpusetHierarchy,
  differences: readonly { readonly steps: readonly Step[] }[],
): void {
  for (const { steps } of differences) for (const step of steps) takeStep(hierarchy, step);
}

function takeStep(hierarchy: CpusetHierarchy, step: Step): void {
  switch (step.kind) {
    case 'fit':
      hierarchy.at(step.path).setCpus(step.cpus);
      return;
    case 'bind':
      // Whether pages move along is what was asked for when something came in.
      hierarchy.at(step.path).setMems(step.nodes);
      return;
    case 'partition':
      hierarchy.setPartition(step.cpus.isEmpty ? 'member' : 'root', step.cpus);
      return;
    case 'isolate': {
      const group = hierarchy.group(step.name);
      if (!group.exists()) group.create(step.cpus, hierarchy.group().effectiveMems());
      group.setPartition('isolated', step.cpus);
      return;
    }
    case 'remove':
      hierarchy.at(step.path).remove(step.home);
  }
}

// Steps: how to mend groups below the cgroup root. The group that a step changes reads the change
// back. A step that fails is undone.
import type { CpusetHierarchy } from '../../cgroups/cpuset-hierarchy.js';
import type { CpuSet, NodeSet } from '../../machine/cpu-set.js';

export type Step =
  | { readonly kind: 'fit'; readonly path: string; readonly cpus: CpuSet }
  | { readonly kind: 'bind'; readonly path: string; readonly nodes: NodeSet }
  /** Changes the root; no CPUs end its partition. */
  | { readonly kind: 'partition'; readonly cpus: CpuSet }
  /** Makes the group if it does not exist. */
  | { readonly kind: 'isolate'; readonly name: string; readonly cpus: CpuSet }
  /** `home`: the folder of the group that its processes move to. */
  | { readonly kind: 'remove'; readonly path: string; readonly home: string };

/**
 * Takes the steps of differences, and stops at the first failure. REQUIRES: the state's lock.
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
      // Whether pages move was set when processes entered.
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

// Facts: what the groups below the cgroup root have now, read once. Synchronous; changes nothing.
import { native } from '../../base/native.js';
import type { CpusetHierarchy } from '../../cgroups/cpuset-hierarchy.js';
import type { CpusetGroup } from '../../cgroups/groups/cpuset-group.js';
import type { Partition } from '../../cgroups/groups/cpuset-tree.js';
import { CpuSet, NodeSet } from '../../machine/cpu-set.js';
import { readOnlineCpus } from '../../machine/online-cpus.js';
import type { LayoutGroup } from './layout.js';

export interface GroupFacts {
  readonly path: string;
  readonly cpus: CpuSet;
  /** The CPUs that the cgroups above leave it. Read only to compare, and only with cgroup v2. */
  readonly effective?: CpuSet;
  /** Only for a group that is bound to memory nodes, or was. */
  readonly mems: NodeSet | undefined;
  /** Only for a group that is to be isolated. */
  readonly partition: Partition | undefined;
}

/** Facts of the groups of grants. */
export interface GrantFacts {
  /** The CPUs that a group can have; undefined: all. */
  readonly online: CpuSet | undefined;
  /** The CPUs that are online now; undefined where `effective` was not read, or if hidden. */
  readonly present?: CpuSet | undefined;
  /** The groups of a layout that exist, by name. */
  readonly groups: ReadonlyMap<string, GroupFacts>;
  /** The memory nodes that a group can have: those of the root. */
  readonly nodes: NodeSet;
}

/** Facts of the root, and what it could have: CPUs and memory nodes of the cgroup above. */
export interface RootFacts {
  readonly path: string;
  /** Empty with cgroup v2: those of the cgroup above. A partition has only those of its grants. */
  readonly cpus: CpuSet;
  readonly isPartition: boolean;
  readonly mems: NodeSet;
  readonly above: { readonly cpus: CpuSet; readonly mems: NodeSet };
}

/** Facts of a root that may be a partition. */
export type PartitionFacts = NonNullable<ReturnType<typeof readPartition>>;

/** Facts of the groups that have the shared pool. */
export type PoolFacts = ReturnType<typeof readPools>;

/** `isWhole`: also reads what only comparisons need. @throws ERR_CGROUP */
export function readGrants(
  hierarchy: CpusetHierarchy,
  groups: readonly LayoutGroup[],
  isWhole = false,
): GrantFacts {
  const found = new Map<string, GroupFacts>();
  const readsEffective = isWhole && hierarchy.version === 2;
  let nodes = NodeSet.EMPTY;
  for (const { name, isolatesCpus, mems, isUnbound } of groups) {
    const group = hierarchy.group(name);
    if (!group.exists()) continue;
    const isBound = !mems.isEmpty || isUnbound;
    if (isBound && nodes.isEmpty) nodes = hierarchy.group().effectiveMems();
    const facts = readGroup(group, isolatesCpus, isBound);
    found.set(name, readsEffective ? { ...facts, effective: group.effectiveCpus() } : facts);
  }
  const present = readsEffective ? readOnlineCpus() : undefined;
  return { online: onlineFor(hierarchy), present, groups: found, nodes };
}

/** Undefined with cgroup v1, which has no partitions. @throws ERR_CGROUP */
export function readPartition(hierarchy: CpusetHierarchy, grants: GrantFacts) {
  if (hierarchy.version === 1) return undefined;
  return { ...grants, rootPath: hierarchy.rootPath, root: hierarchy.partition() };
}

/** Undefined if there is no root with a cpuset. @throws ERR_CGROUP */
export function readRoot(hierarchy: CpusetHierarchy): RootFacts | undefined {
  const root = hierarchy.group();
  if (!root.exists()) return undefined;
  const { kind, cpus } = root.partition();
  if (hierarchy.version === 2 && kind === 'none') return undefined;
  const isPartition = kind === 'root' || kind === 'isolated';
  return { path: root.path, cpus, isPartition, mems: root.mems(), above: hierarchy.aboveRoot() };
}

/** Groups that do not exist are left out. @throws ERR_CGROUP */
export function readPools(hierarchy: CpusetHierarchy, groups: readonly CpusetGroup[]) {
  const found = groups.filter((group) => group.exists()).map((group) => readGroup(group, false, false));
  return { online: onlineFor(hierarchy), groups: found };
}

function readGroup(group: CpusetGroup, isolatesCpus: boolean, isBound: boolean): GroupFacts {
  const partition = isolatesCpus ? group.partition() : undefined;
  const mems = isBound ? group.mems() : undefined;
  return { path: group.path, cpus: group.cpus(), mems, partition };
}

// With cgroup v1 the kernel removes a CPU that goes offline from all cpusets, and lets none have
// it.
function onlineFor({ version }: CpusetHierarchy): CpuSet | undefined {
  return version === 1 ? new CpuSet(native.onlineCpus()) : undefined;
}

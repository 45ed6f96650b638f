// Differences: where facts differ from a layout, and the steps that mend them. Commits and
// reconciling both use this comparison. Pure.
import type { PodAssignment } from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import type { Partition } from '../../cgroups/groups/cpuset-tree.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { GrantFacts, GroupFacts, PartitionFacts, PoolFacts, RootFacts } from './facts.js';
import { containerOf, isPartitioned, type Layout, type LayoutGroup } from './layout.js';
import type { Step } from './steps.js';

export interface GroupDifference {
  /** `cgroup`: the group of a grant. `pool`: a group that has the shared pool. */
  readonly kind: 'cgroup' | 'memory' | 'partition' | 'pool' | 'leftover';
  /** The grant whose group it is. */
  readonly pod: PodAssignment | null;
  /** For memory nodes: the container's name, or ALL_CONTAINERS. */
  readonly container?: string;
  readonly path: string;
  /** A description in words. */
  readonly what: string;
  /**
   * True if another program made the change: numalign itself causes such a difference only while it
   * changes a grant.
   */
  readonly isDrift: boolean;
  readonly steps: readonly Step[];
}

/** A difference in the memory nodes of a group. */
export interface MemoryDifference extends GroupDifference {
  readonly kind: 'memory';
  readonly pod: PodAssignment;
  readonly container: string;
}

// A difference of no grant's group, which only another program can make.
const drift = (kind: GroupDifference['kind'], path: string, what: string, step: Step): GroupDifference => ({
  kind,
  pod: null,
  path,
  what,
  isDrift: true,
  steps: [step],
});

const within = (online: CpuSet | undefined, cpus: CpuSet) => (online ? cpus.intersection(online) : cpus);

/** Groups of grants that have other CPUs than the layout says. */
export function groupDifferences(
  groups: readonly LayoutGroup[],
  facts: GrantFacts,
): readonly GroupDifference[] {
  return groups.flatMap(({ pod, name, cpus }) => {
    const found = facts.groups.get(name);
    const target = within(facts.online, cpus);
    if (!found || target.isEmpty) return [];
    const { path } = found;
    const isSet = found.cpus.equals(target);
    if (isSet && withheld(found, target, facts).isEmpty) return [];
    const has = isSet ? `only CPUs ${found.effective} of the cgroups above` : `CPUs ${found.cpus}`;
    const what = `${path} has ${has} instead of ${cpus}`;
    // While a grant changes, its group may have all that the grant holds.
    const set = within(facts.online, found.cpus);
    const isDrift = isSet || !target.isSubsetOf(set) || !set.isSubsetOf(cpusOf(pod));
    return [{ kind: 'cgroup', pod, path, what, isDrift, steps: [{ kind: 'fit', path, cpus: target }] }];
  });
}

// What the cgroups above keep from a group. With cgroup v1 they cannot.
const withheld = (
  { effective }: Pick<GroupFacts, 'effective'>,
  target: CpuSet,
  { present }: GrantFacts,
): CpuSet => (effective && present ? target.intersection(present).difference(effective) : CpuSet.EMPTY);

/**
 * Grants whose CPUs the group of another grant has, or that lack some in their own groups. Within a
 * partition, what a group lacks is still kept from everyone else.
 */
export function uncoveredPods(
  pods: readonly PodAssignment[],
  groups: readonly LayoutGroup[],
  facts: GrantFacts,
): ReadonlySet<PodAssignment> {
  const uncovered = new Set<PodAssignment>();
  for (const { pod, name, cpus } of groups) {
    const group = facts.groups.get(name);
    if (!group) continue;
    const used = group.effective ?? group.cpus;
    const isWhole = within(facts.online ?? facts.present, cpus).isSubsetOf(used);
    if (!isWhole && !isPartitioned(pod)) uncovered.add(pod);
    for (const other of pods) if (other !== pod && used.intersects(cpusOf(other))) uncovered.add(other);
  }
  return uncovered;
}

/**
 * A root without CPUs or memory nodes that the cgroup above has: no group below could have them.
 * `machine`: all of them. Partitions have {@link partitionDifferences}.
 */
export function rootDifferences(
  { partition }: Layout,
  machine: Pick<RootFacts, 'cpus' | 'mems'>,
  root: RootFacts | undefined,
): readonly GroupDifference[] {
  if (!root) return [];
  const { path, cpus, mems, above } = root;
  const found: GroupDifference[] = [];
  const lostCpus = machine.cpus.intersection(above.cpus).difference(cpus);
  if (!root.isPartition && partition.isEmpty && !cpus.isEmpty && !lostCpus.isEmpty) {
    const what = `${path} has CPUs ${cpus} without ${lostCpus}`;
    found.push(drift('cgroup', path, what, { kind: 'fit', path, cpus: cpus.union(lostCpus) }));
  }
  const lostMems = machine.mems.intersection(above.mems).difference(mems);
  if (!mems.isEmpty && !lostMems.isEmpty) {
    const what = `${path} has memory nodes ${mems} without ${lostMems}`;
    found.push(drift('memory', path, what, { kind: 'bind', path, nodes: mems.union(lostMems) }));
  }
  return found;
}

/**
 * Groups of grants whose memory nodes are not those of the booked memory. Nodes that the root does
 * not have are ignored, since no group below can have them.
 */
export function memoryDifferences(
  groups: readonly LayoutGroup[],
  { groups: found, nodes }: GrantFacts,
): readonly MemoryDifference[] {
  return groups.flatMap(({ pod, name, mems, isUnbound }) => {
    const group = found.get(name);
    const target = isUnbound ? nodes : mems.intersection(nodes);
    if (!group?.mems || target.isEmpty || group.mems.equals(target)) return [];
    const { path } = group;
    const what = `${path} has memory nodes ${group.mems.isEmpty ? 'of the group above' : group.mems} instead of ${target}`;
    const steps: Step[] = [{ kind: 'bind', path, nodes: target }];
    return [{ kind: 'memory', pod, container: containerOf(name), path, what, isDrift: true, steps }];
  });
}

/** The root and the isolated groups in it: no difference, or one. */
export function partitionDifferences(
  layout: Layout,
  facts: PartitionFacts | undefined,
): readonly GroupDifference[] {
  if (!facts) return [];
  const { root, rootPath: path } = facts;
  const isolated = layout.partition.isEmpty ? [] : layout.groups.filter(({ isolatesCpus }) => isolatesCpus);
  const nested = isolated.flatMap(({ name }) => facts.groups.get(name)?.partition?.effective ?? []);
  const effective = nested.reduce((all, each) => all.union(each), root.effective);
  const isRootRight =
    isPartitionOf(root, layout.partition) && withheld({ effective }, layout.partition, facts).isEmpty;
  const open = isolated.filter(({ name }) => !isIsolatedPartition(facts.groups.get(name)));
  if (isRootRight && open.length === 0) return [];
  const target = layout.partition.isEmpty ? 'no partition' : `a partition of ${layout.partition}`;
  const what = `${path} is "${root.text}" with CPUs ${root.cpus} instead of ${target}`;
  // The next commit makes a group that does not exist yet.
  const isDrift = !isRootRight || open.some(({ name }) => facts.groups.has(name));
  const steps: Step[] = [
    ...shrinkings(layout, facts),
    { kind: 'partition', cpus: layout.partition },
    // A new group becomes isolated before any process is in it.
    ...(isRootRight ? open : isolated).map(({ name, cpus }) => ({ kind: 'isolate', name, cpus }) as const),
  ];
  return [{ kind: 'partition', pod: null, path, what, isDrift, steps }];
}

// Linux 6.12 can call a partition valid that runs on CPUs of the cgroup above.
function isPartitionOf({ kind, valid, cpus, effective }: Partition, target: CpuSet): boolean {
  if (target.isEmpty) return kind !== 'root';
  return kind === 'root' && valid && cpus.equals(target) && effective.isSubsetOf(target);
}

// A kernel without such a file isolates nothing.
const isIsolatedPartition = (found: GroupFacts | undefined) =>
  found?.partition !== undefined && (found.partition.valid || found.partition.kind === 'none');

// The groups inside must give up what the partition loses first.
function shrinkings({ groups, partition }: Layout, facts: GrantFacts): Step[] {
  return groups.flatMap(({ name }) => {
    const found = facts.groups.get(name);
    const remainder = found?.cpus.intersection(partition);
    if (!found || !remainder || remainder.isEmpty || remainder.equals(found.cpus)) return [];
    return [{ kind: 'fit', path: found.path, cpus: remainder }];
  });
}

/** Groups whose CPUs are not those of the shared pool. */
export function poolDifferences(pool: CpuSet, { online, groups }: PoolFacts): readonly GroupDifference[] {
  const target = within(online, pool);
  return groups
    .filter(({ cpus }) => !target.isEmpty && !cpus.equals(target))
    .map(({ path, cpus }) => {
      const what = `${path} has CPUs ${cpus} instead of the shared pool's ${pool}`;
      return drift('pool', path, what, { kind: 'fit', path, cpus: target });
    });
}

/** Groups whose grants have ended, by their paths. */
export function leftoverDifferences(paths: readonly string[], home: string): readonly GroupDifference[] {
  return paths.map((path) =>
    drift('leftover', path, `${path} remains of a grant that has ended`, { kind: 'remove', path, home }),
  );
}

// Comparison of the groups of grants with their layout.
import type { Assignments } from '../account/assignments.js';
import { cpusOfSome } from '../account/cpus-of-pods.js';
import { cpusOf, memoryOf, nodesOf } from '../account/pod-holdings.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Cpusets } from './cpusets/cpusets.js';
import type { Found } from './drift.js';
import {
  type Difference,
  groupDifferences,
  leftoverDifferences,
  memoryDifferences,
  partitionDifferences,
  poolDifferences,
  rootDifferences,
} from './layout/differences.js';
import { type RootFacts, readGrants, readPartition, readPools, readRoot } from './layout/facts.js';
import { layoutOf, podsInPartition } from './layout/layout.js';
import { mend } from './layout/steps.js';
import { grantKey } from './layout/transition.js';
import type { MachineConfiner } from './machine-confiner.js';
import type { Confinement } from './members/confinement.js';
import type { SharedMember } from './members/shared-member.js';

/** What a comparison needs. */
export interface Compared {
  readonly confiner: MachineConfiner;
  readonly state: Assignments;
  /** True for keys of what will not be repaired. */
  readonly isGivenUp: (key: string) => boolean;
  /** Moves a process to the shared pool. REQUIRES: the lock. */
  readonly share: (pid: number) => void;
}

interface ComparedGroups {
  /** The number of groups compared. */
  readonly checked: number;
  readonly drift: readonly Difference[];
}

/** What groups should have. */
interface GroupTargets {
  readonly pool: CpuSet;
  readonly members: readonly SharedMember[];
  /** All CPUs and memory nodes, for the root. */
  readonly machine: Pick<RootFacts, 'cpus' | 'mems'>;
}

export function compareGroups(
  cpusets: Cpusets,
  state: Assignments,
  { pool, members, machine }: GroupTargets,
): ComparedGroups {
  const { hierarchy, grants, home } = cpusets;
  const layout = layoutOf([state]);
  const found = readGrants(hierarchy, layout.groups, true);
  const root = readPartition(hierarchy, found);
  // With a partition, the shared pool has no groups.
  const pools = root?.root.kind === 'root' ? [] : cpusets.poolGroups(members);
  const poolFacts = readPools(hierarchy, pools);
  // Without groups below, the root is put right when the first one is made.
  const isUsed = found.groups.size > 0 || poolFacts.groups.length > 0;
  const leftovers = grants.leftovers(state.pods).filter((group) => group.isMade());
  const differences = [
    // The groups below cannot be put right before it.
    ...rootDifferences(layout, machine, isUsed ? readRoot(hierarchy) : undefined),
    ...partitionDifferences(layout, root),
    ...groupDifferences(layout.groups, found),
    ...memoryDifferences(layout.groups, found),
    ...poolDifferences(pool, poolFacts),
    ...leftoverDifferences(
      leftovers.map(({ path }) => path),
      home,
    ),
  ];
  return {
    checked: (root || isUsed ? 1 : 0) + found.groups.size + (pool.isEmpty ? 0 : poolFacts.groups.length),
    drift: differences.filter(({ isDrift }) => isDrift),
  };
}

export function groupFound(
  { confiner, state }: Compared,
  { hierarchy }: Cpusets,
  difference: Difference,
  { taken, pods }: Confinement,
): Found {
  const { kind, pod, path, what, container } = difference;
  const partition = cpusOfSome(podsInPartition(pods));
  const has = pod && (kind === 'memory' ? nodesOf(memoryOf(pod)) : cpusOf(pod));
  const of = pod ? `${grantKey(pod)} ${has}` : `${taken} ${partition}`;
  const repairPartition = () => {
    try {
      confiner.setPartition([state], [], true);
    } finally {
      // The kernel has reset masks with the partition.
      confiner.confine([state], []);
    }
  };
  const repair = () => {
    if (kind === 'partition') repairPartition();
    else mend(hierarchy, [difference]);
    return 0;
  };
  return { kind, uid: pod?.uid ?? null, container, what, key: `${kind} ${path} ${of}`, repair };
}

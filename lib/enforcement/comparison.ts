// Comparison: finds what differs from a state, below the cgroup root and among the shared members.
// Changes nothing; each difference knows its repair.
import type { Assignments } from '../account/assignments.js';
import { cpusOfSome } from '../account/cpus-of-pods.js';
import { BY_RECORD, type EnforcementLevel } from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { cpusOf, memoryOf, nodesOf } from '../account/pod-holdings.js';
import { NumalignError } from '../base/errors.js';
import { NodeSet } from '../machine/cpu-set.js';
import { pidNamespace } from '../processes/process-identity.js';
import type { Comparison, RepairableDrift } from './drift.js';
import type { Cpusets } from './layout/cpusets.js';
import {
  type GroupDifference,
  groupDifferences,
  leftoverDifferences,
  memoryDifferences,
  partitionDifferences,
  poolDifferences,
  rootDifferences,
  uncoveredPods,
} from './layout/differences.js';
import { readGrants, readPartition, readPools, readRoot } from './layout/facts.js';
import { isPartitioned, layoutOf, podsInPartition } from './layout/layout.js';
import { mend } from './layout/steps.js';
import { grantKey } from './layout/transition.js';
import { differentPools, levelOf, type MachineConfiner } from './machine-confiner.js';
import { type Confinement, type StrayMember, stuckText } from './members/confinement.js';
import type { ProcessEntry, Registered } from './members/member-entry.js';
import { memberOf, type SharedMember } from './members/shared-member.js';

/** What a comparison needs. */
interface Compared {
  readonly confiner: MachineConfiner;
  readonly state: Assignments;
  /** True for keys of what will not be repaired. */
  readonly isGivenUp: (key: string) => boolean;
  /** Moves a process to the shared pool. REQUIRES: the lock. */
  readonly share: (pid: number) => void;
}

/** @throws ERR_CGROUP */
export function compare(options: Compared): Comparison {
  const { confiner, state, isGivenUp } = options;
  const confinement = confiner.confinement([state], []);
  const { pool, pods } = confinement;
  const cpusets = confiner.cpusetsOf(state.settings);
  const members = confiner.members.registry.look();
  const list = members.map(({ entry }) => memberOf(entry));
  const groups = cpusets
    ? compareGroups(options, cpusets, list, confinement)
    : { checked: 0, drifts: [] as RepairableDrift[] };
  const outside = cpusets ? outsiders(cpusets, members, confinement) : [];
  const outsideDrifts = outside.map((entry) => outsiderDrift(options, entry, confinement));
  const watchedPids = new Set(
    outside.filter((_, i) => !isGivenUp(outsideDrifts[i]!.key)).map(({ pid }) => pid),
  );
  const isPoolSet =
    cpusets !== undefined &&
    !cpusets.isPartition &&
    !groups.drifts.some(({ kind, key }) => kind === 'pool' && isGivenUp(key));
  const strays = confiner.members.strays(
    confinement,
    (member) =>
      (member.kind === 'process' && watchedPids.has(member.pid)) ||
      (isPoolSet && cpusets.confines(member, list, pods, pool)),
  );
  return {
    checked: groups.checked + strays.checked + watchedPids.size,
    drifts: [
      ...groups.drifts,
      ...outsideDrifts,
      ...strays.found.map((stray) => strayDrift(stray, confinement)),
      ...maskDrifts(options, confinement),
    ],
  };
}

// The groups of grants and of the shared pool.
function compareGroups(
  options: Compared,
  cpusets: Cpusets,
  members: readonly SharedMember[],
  confinement: Confinement,
): { readonly checked: number; readonly drifts: readonly RepairableDrift[] } {
  const { confiner, state } = options;
  const { hierarchy, grants, home } = cpusets;
  const { cpus, numaNodes } = confiner.topology();
  const layout = layoutOf([state]);
  const facts = readGrants(hierarchy, layout.groups, true);
  const root = readPartition(hierarchy, facts);
  // With a partition, the shared pool has no groups.
  const pools = root?.root.kind === 'root' ? [] : cpusets.poolGroups(members);
  const poolFacts = readPools(hierarchy, pools);
  // Without groups below, the root is put right when the first one is made.
  const isUsed = facts.groups.size > 0 || poolFacts.groups.length > 0;
  const leftovers = grants.leftovers(state.pods).filter((group) => group.isMade());
  const differences = [
    // The groups below cannot be put right before it.
    ...rootDifferences(
      layout,
      { cpus, mems: NodeSet.from(numaNodes) },
      isUsed ? readRoot(hierarchy) : undefined,
    ),
    ...partitionDifferences(layout, root),
    ...groupDifferences(layout.groups, facts),
    ...memoryDifferences(layout.groups, facts),
    ...poolDifferences(confinement.pool, poolFacts),
    ...leftoverDifferences(
      leftovers.map(({ path }) => path),
      home,
    ),
  ];
  const poolCount = confinement.pool.isEmpty ? 0 : poolFacts.groups.length;
  return {
    checked: (root || isUsed ? 1 : 0) + facts.groups.size + poolCount,
    drifts: differences
      .filter(({ isDrift }) => isDrift)
      .map((each) => groupDrift(options, cpusets, each, confinement)),
  };
}

function groupDrift(
  { confiner, state }: Compared,
  { hierarchy }: Cpusets,
  difference: GroupDifference,
  { taken, pods }: Confinement,
): RepairableDrift {
  const { kind, pod, path, what, container } = difference;
  const has = pod && (kind === 'memory' ? nodesOf(memoryOf(pod)) : cpusOf(pod));
  const of = pod ? `${grantKey(pod)} ${has}` : `${taken} ${cpusOfSome(podsInPartition(pods))}`;
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

const memberDrift = (what: string, key: string, repair: () => number): RepairableDrift => ({
  kind: 'member',
  uid: null,
  what,
  key,
  repair,
});

// Processes that were moved out of the shared group: they are in none of the shared pool's cgroups
// and on no grant of theirs.
const outsiders = ({ shared }: Cpusets, members: readonly Registered[], { pods }: Confinement) =>
  members.flatMap(({ entry }) => {
    if (entry.kind !== 'process' || entry.namespace !== pidNamespace()) return [];
    const isOutside = shared.couldJoin(entry.pid) && !pods.some(({ uid }) => uid === entry.grant);
    return isOutside ? [entry] : [];
  });

function outsiderDrift({ share }: Compared, entry: ProcessEntry, { taken }: Confinement): RepairableDrift {
  const { pid, command, start } = entry;
  const what = `process ${pid} (${command}) is in no cgroup of the shared pool`;
  return memberDrift(what, `member ${pid} ${start} cgroup ${taken}`, () => {
    share(pid);
    return 0;
  });
}

function strayDrift(
  { member, process, threads, repair }: StrayMember,
  { pool, taken }: Confinement,
): RepairableDrift {
  const name = member.kind === 'process' ? ` (${member.command})` : ` in ${member.path}`;
  const what = `${threads} threads of process ${process.pid}${name} are not in the shared pool ${pool}`;
  return memberDrift(what, `member ${process.pid} ${process.start} masks ${taken}`, () => {
    const { moved, reason } = repair();
    if (reason === undefined) return moved;
    const message = stuckText({ member, reason, names: [] });
    throw new NumalignError('ERR_MEMBER_UNMOVABLE', message, { value: member });
  });
}

function maskDrifts({ confiner, state }: Compared, { taken }: Confinement): RepairableDrift[] {
  const late = confiner.restoreAskedMasks(state, true);
  if (late === 0) return [];
  const what = `${late} threads of this process may run on CPUs that they did not choose`;
  return [memberDrift(what, `choices ${taken}`, () => confiner.restoreAskedMasks(state, false))];
}

/** See {@link Enforcer.levelsNow}. */
export function levelsNow(
  confiner: MachineConfiner,
  state: Assignments,
): (pod: PodAssignment) => EnforcementLevel {
  const confinement = confiner.confinement([state], []);
  const { pods, pool } = confinement;
  const cpusets = confiner.cpusetsOf(state.settings);
  const list = confiner.members.list();
  const isPlain = cpusets !== undefined && !cpusets.isPartition;
  const groups = confiner.groupsNow([state], undefined, true);
  const uncovered = groups ? uncoveredPods(state.pods, groups.groups, groups.facts) : new Set();
  const isConfined = (member: SharedMember) => isPlain && cpusets.confines(member, list, pods, pool);
  const { found, byMask } = confiner.members.strays(confinement, isConfined);
  const isOpen = isPlain && differentPools(cpusets, pool, list).length > 0;
  const level = isOpen ? BY_RECORD : levelOf({ stuck: found, byMask, members: list.length });
  return (pod) => {
    if (uncovered.has(pod)) return BY_RECORD;
    return isPartitioned(pod) ? pod.enforcement.level : level;
  };
}

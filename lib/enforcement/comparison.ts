// Comparison: what is not as a state says, below the cgroup root and of the shared members. Changes
// nothing, and says how to repair what it finds.
import type { Assignments } from '../account/assignments.js';
import type { EnforcementLevel } from '../account/pod-assignment.js';
import { cpusOf, cpusOfPods } from '../account/pod-holdings.js';
import { NumalignError } from '../base/errors.js';
import type { CpuSet } from '../machine/cpu-set.js';
import { pidNamespace } from '../processes/process-identity.js';
import type { Cpusets } from './cpusets/cpusets.js';
import type { Comparison, Found } from './drift.js';
import {
  type Difference,
  groupDifferences,
  leftoverDifferences,
  partitionDifferences,
  poolDifferences,
} from './layout/differences.js';
import { readGrants, readPartition, readPools } from './layout/facts.js';
import { isPartitioned, layoutOf } from './layout/layout.js';
import { mend } from './layout/steps.js';
import { grantKey } from './layout/transition.js';
import { differentPools, levelOf, type MachineConfiner } from './machine-confiner.js';
import { type Confinement, type SharedMember, type StrayMember, told } from './members/confinement.js';
import type { Registered } from './members/member-entry.js';
import { stuckText } from './members/member-texts.js';

/** What a state is compared with. */
export interface Compared {
  readonly confiner: MachineConfiner;
  readonly state: Assignments;
  /** Of what will not be repaired. */
  readonly isGivenUp: (key: string) => boolean;
  /** A process goes to the shared pool. REQUIRES: the lock. */
  readonly share: (pid: number) => void;
}

/** @throws ERR_CGROUP */
export function compare(compared: Compared): Comparison {
  const { confiner, state, isGivenUp } = compared;
  const confinement = confiner.confinement([state], []);
  const { pool, pods } = confinement;
  const cpusets = confiner.cpusetsOf(state.settings);
  const members = confiner.members.registry.look();
  const list = members.map(({ entry }) => told(entry));
  const groups = cpusets ? compareGroups(cpusets, state, pool, list) : { checked: 0, drift: [] };
  const foundGroups = groups.drift.map((each) => groupFound(compared, cpusets!, each, confinement));
  const outside = cpusets ? outsiders(cpusets, members, confinement) : [];
  const foundOutside = outside.map((entry) => outsiderFound(compared, entry, confinement));
  const watched = new Set(outside.filter((_, i) => !isGivenUp(foundOutside[i]!.key)).map(({ pid }) => pid));
  const isPoolSet =
    cpusets !== undefined &&
    !cpusets.isPartition &&
    !foundGroups.some(({ kind, key }) => kind === 'pool' && isGivenUp(key));
  const strays = confiner.members.strays(
    confinement,
    (member) =>
      (member.kind === 'process' && watched.has(member.pid)) ||
      (isPoolSet && cpusets.confines(member, list, pods, pool)),
  );
  return {
    checked: groups.checked + strays.checked + watched.size,
    found: [
      ...foundGroups,
      ...foundOutside,
      ...strays.found.map((stray) => memberFound(stray, confinement)),
      ...choicesFound(compared, confinement),
    ],
  };
}

interface ComparedGroups {
  /** How many groups there were to look at. */
  readonly checked: number;
  readonly drift: readonly Difference[];
}

function compareGroups(
  cpusets: Cpusets,
  state: Assignments,
  pool: CpuSet,
  members: readonly SharedMember[],
): ComparedGroups {
  const { hierarchy, grants, home } = cpusets;
  const layout = layoutOf([state]);
  const found = readGrants(hierarchy, layout.groups);
  const root = readPartition(hierarchy, found);
  // In a partition the shared pool has no groups.
  const pools = root?.root.kind === 'root' ? [] : cpusets.poolGroups(members);
  const poolFacts = readPools(hierarchy, pools);
  const left = grants.leftovers(state.pods).filter((group) => group.isMade());
  const differences = [
    ...partitionDifferences(layout, root),
    ...groupDifferences(layout.groups, found),
    ...poolDifferences(pool, poolFacts),
    ...leftoverDifferences(
      left.map(({ path }) => path),
      home,
    ),
  ];
  return {
    checked: (root ? 1 : 0) + found.groups.size + (pool.isEmpty ? 0 : poolFacts.groups.length),
    drift: differences.filter(({ isDrift }) => isDrift),
  };
}

function groupFound(
  { confiner, state }: Compared,
  { hierarchy }: Cpusets,
  difference: Difference,
  { taken, pods }: Confinement,
): Found {
  const { kind, pod, path, what } = difference;
  const partition = cpusOfPods(pods.filter(isPartitioned));
  const of = pod ? `${grantKey(pod)} ${cpusOf(pod)}` : `${taken} ${partition}`;
  const repairPartition = () => {
    try {
      confiner.setPartition([state]);
    } finally {
      // The kernel has reset masks by that.
      confiner.confine([state], []);
    }
  };
  const once = () => {
    if (kind === 'partition') repairPartition();
    else mend(hierarchy, [difference]);
    return 0;
  };
  return { kind, uid: pod?.uid ?? null, what, key: `${kind} ${path} ${of}`, repair: once };
}

type Outsider = Extract<Registered['entry'], { kind: 'process' }>;

// Processes that were taken out of the shared group.
function outsiders({ shared }: Cpusets, members: readonly Registered[], { pods }: Confinement): Outsider[] {
  return members.flatMap(({ entry }) => {
    if (entry.kind !== 'process' || entry.namespace !== pidNamespace()) return [];
    const isOutside = shared.couldJoin(entry.pid) && !pods.some(({ uid }) => uid === entry.grant);
    return isOutside ? [entry] : [];
  });
}

function outsiderFound({ share }: Compared, entry: Outsider, { taken }: Confinement): Found {
  const { pid, command, start } = entry;
  return {
    kind: 'member',
    uid: null,
    what: `process ${pid} (${command}) is in no cgroup of the shared pool`,
    key: `member ${pid} ${start} cgroup ${taken}`,
    repair: () => {
      share(pid);
      return 0;
    },
  };
}

function memberFound({ member, process, threads, repair }: StrayMember, { pool, taken }: Confinement): Found {
  const name = member.kind === 'process' ? ` (${member.command})` : ` in ${member.path}`;
  return {
    kind: 'member',
    uid: null,
    what: `${threads} threads of process ${process.pid}${name} are not in the shared pool ${pool}`,
    key: `member ${process.pid} ${process.start} masks ${taken}`,
    repair: () => {
      const { moved, reason } = repair();
      if (reason === undefined) return moved;
      throw new NumalignError('ERR_MEMBER_UNMOVABLE', stuckText({ member, reason, names: [] }), {
        value: member,
      });
    },
  };
}

function choicesFound({ confiner, state }: Compared, { taken }: Confinement): Found[] {
  const late = confiner.settleChoices(state, true);
  if (late === 0) return [];
  return [
    {
      kind: 'member',
      uid: null,
      what: `${late} threads of this process may run on CPUs that they have not chosen`,
      key: `choices ${taken}`,
      repair: () => confiner.settleChoices(state, false),
    },
  ];
}

/** The level at which CPUs are kept from the shared members now, with no partition. */
export function levelNow(confiner: MachineConfiner, state: Assignments): EnforcementLevel {
  const confinement = confiner.confinement([state], []);
  const { pods, pool } = confinement;
  const cpusets = confiner.cpusetsOf(state.settings);
  const list = confiner.members.list();
  const isPlain = cpusets !== undefined && !cpusets.isPartition;
  if (isPlain && differentPools(cpusets, pool, list).length > 0) return 'recorded';
  const isConfined = (member: SharedMember) => isPlain && cpusets.confines(member, list, pods, pool);
  const { found, byMask } = confiner.members.strays(confinement, isConfined);
  return levelOf({ stuck: found, byMask, members: list.length });
}

// Comparison: what is not as a state says, below the cgroup root and of the shared members. Changes
// nothing, and says how to repair what it finds.
import type { Assignments } from '../account/assignments.js';
import { cpusOf, type EnforcementLevel } from '../account/pod-assignment.js';
import { NumalignError } from '../base/errors.js';
import { pidNamespace } from '../processes/process-identity.js';
import { allCpusOf, type CpusetLayout, isPartitioned, type Stray } from './cpuset-layout.js';
import type { Comparison, Found } from './drift.js';
import { levelOf, type MachineConfiner } from './machine-confiner.js';
import { type Confinement, type SharedMember, type StrayMember, told } from './members/confinement.js';
import type { Registered } from './members/member-entry.js';
import { stuckText } from './members/stuck-text.js';
import { grantKey } from './transition.js';

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
  const layout = confiner.layoutOf(state.settings);
  const members = confiner.members.registry.look();
  const list = members.map(({ entry }) => told(entry));
  const groups = layout?.strays(pods, pool, list) ?? { checked: 0, found: [] };
  const foundGroups = groups.found.map((stray) => groupFound(compared, stray, confinement));
  const outside = layout ? outsiders(layout, members, confinement) : [];
  const foundOutside = outside.map((entry) => outsiderFound(compared, entry, confinement));
  const watched = new Set(outside.filter((_, i) => !isGivenUp(foundOutside[i]!.key)).map(({ pid }) => pid));
  const isPoolSet =
    layout !== undefined &&
    !layout.isPartition &&
    !foundGroups.some(({ kind, key }) => kind === 'pool' && isGivenUp(key));
  const strays = confiner.members.strays(
    confinement,
    (member) =>
      (member.kind === 'process' && watched.has(member.pid)) ||
      (isPoolSet && layout.confines(member, list, pods, pool)),
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

function groupFound(
  { confiner, state }: Compared,
  { kind, pod, path, what, repair }: Stray,
  { taken, pods }: Confinement,
): Found {
  const of = pod ? `${grantKey(pod)} ${cpusOf(pod)}` : `${taken} ${allCpusOf(pods.filter(isPartitioned))}`;
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
    else repair();
    return 0;
  };
  return { kind, uid: pod?.uid ?? null, what, key: `${kind} ${path} ${of}`, repair: once };
}

type Outsider = Extract<Registered['entry'], { kind: 'process' }>;

// Processes that were taken out of the shared group.
function outsiders(layout: CpusetLayout, members: readonly Registered[], { pods }: Confinement): Outsider[] {
  return members.flatMap(({ entry }) => {
    if (entry.kind !== 'process' || entry.namespace !== pidNamespace()) return [];
    const isOutside = layout.couldJoinShared(entry.pid) && !pods.some(({ uid }) => uid === entry.grant);
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
  const layout = confiner.layoutOf(state.settings);
  const list = confiner.members.list();
  if (layout?.strays(pods, pool, list).found.some(({ kind }) => kind === 'pool')) return 'recorded';
  const isConfined = (member: SharedMember) =>
    layout !== undefined && !layout.isPartition && layout.confines(member, list, pods, pool);
  const { found, byMask } = confiner.members.strays(confinement, isConfined);
  return levelOf({ stuck: found, byMask, members: list.length });
}

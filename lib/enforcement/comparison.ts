// Comparison: finds what differs from a state, below the cgroup root and among the shared members.
// Changes nothing; each difference knows its repair.
import type { Assignments } from '../account/assignments.js';
import { BY_RECORD, type EnforcementLevel } from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { NodeSet } from '../machine/cpu-set.js';
import type { Comparison } from './drift.js';
import { type Compared, compareGroups, groupFound } from './group-comparison.js';
import { uncoveredPods } from './layout/differences.js';
import { isPartitioned } from './layout/layout.js';
import { differentPools, levelOf, type MachineConfiner } from './machine-confiner.js';
import { choicesFound, memberFound } from './member-comparison.js';
import { memberOf, type SharedMember } from './members/shared-member.js';
import { outsiderFound, outsiders } from './outsiders.js';

/** @throws ERR_CGROUP */
export function compare(options: Compared): Comparison {
  const { confiner, state, isGivenUp } = options;
  const confinement = confiner.confinement([state], []);
  const { pool, pods } = confinement;
  const cpusets = confiner.cpusetsOf(state.settings);
  const members = confiner.members.registry.look();
  const list = members.map(({ entry }) => memberOf(entry));
  const topology = confiner.topology();
  const machine = { cpus: topology.cpus, mems: NodeSet.from(topology.numaNodes) };
  const groups = cpusets
    ? compareGroups(cpusets, state, { pool, members: list, machine })
    : { checked: 0, drift: [] };
  const foundGroups = groups.drift.map((each) => groupFound(options, cpusets!, each, confinement));
  const outside = cpusets ? outsiders(cpusets, members, confinement) : [];
  const foundOutside = outside.map((entry) => outsiderFound(options, entry, confinement));
  const watchedPids = new Set(
    outside.filter((_, i) => !isGivenUp(foundOutside[i]!.key)).map(({ pid }) => pid),
  );
  const isPoolSet =
    cpusets !== undefined &&
    !cpusets.isPartition &&
    !foundGroups.some(({ kind, key }) => kind === 'pool' && isGivenUp(key));
  const strays = confiner.members.strays(
    confinement,
    (member) =>
      (member.kind === 'process' && watchedPids.has(member.pid)) ||
      (isPoolSet && cpusets.confines(member, list, pods, pool)),
  );
  return {
    checked: groups.checked + strays.checked + watchedPids.size,
    found: [
      ...foundGroups,
      ...foundOutside,
      ...strays.found.map((stray) => memberFound(stray, confinement)),
      ...choicesFound(options, confinement),
    ],
  };
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

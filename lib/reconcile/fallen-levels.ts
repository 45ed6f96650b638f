// Fallen levels: what others did lowered the recorded level of grants. It is raised again once they
// are kept off as before.
import type { Assignments } from '../account/assignments.js';
import { BY_MASKS, type EnforcementLevel, isAtLeast, weaker } from '../account/levels.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Host } from '../admission/host.js';
import type { EnforcedCommit } from '../admission/transact.js';
import type { Comparison } from '../enforcement/drift.js';
import { isPartitioned } from '../enforcement/layout/layout.js';

const originalOf = ({ enforcement: { level, fallenFrom } }: PodAssignment) => fallenFrom ?? level;
const isOfPartition = (level: EnforcementLevel) => isPartitioned({ enforcement: { level, target: null } });

/** A state with other levels. A level that fell is remembered until it is reached again. */
export function withLevels(
  state: Assignments,
  levelOf: (pod: PodAssignment) => EnforcementLevel,
): Assignments {
  const pods = state.pods.map((pod) => {
    const level = levelOf(pod);
    if (level === pod.enforcement.level) return pod;
    const fallenFrom = level === originalOf(pod) ? undefined : originalOf(pod);
    return { ...pod, enforcement: { ...pod.enforcement, level, fallenFrom } };
  });
  return { ...state, pods };
}

/** The level to which a grant can be raised, if the kernel makes a partition. */
function reachableLevels({ enforcer }: Host, state: Assignments, mayPartition: boolean) {
  const levelNow = enforcer.levelsNow(state);
  const cpusets = enforcer.cpusetsOf(state.settings);
  const canPartition = mayPartition && cpusets !== undefined && !cpusets.whyNoPartition(state.pods);
  return (pod: PodAssignment): EnforcementLevel => {
    const { level } = pod.enforcement;
    const original = originalOf(pod);
    const wasPartitioned = isOfPartition(original);
    if (wasPartitioned && canPartition) return original;
    // Without its partition a grant has no group that keeps others off.
    const reached = weaker(wasPartitioned ? BY_MASKS : original, levelNow(pod));
    return isAtLeast(reached, level) ? reached : level;
  };
}

/** Finds the grants whose level can be raised. */
export function compareLevels(host: Host, state: Assignments): Comparison {
  const fallen = state.pods.filter(({ enforcement }) => enforcement.fallenFrom !== undefined);
  if (fallen.length === 0) return { checked: 0, drifts: [] };
  const reachable = reachableLevels(host, state, true);
  const drifts = fallen.flatMap((pod) => {
    const { uid, enforcement } = pod;
    const level = reachable(pod);
    if (level === enforcement.level) return [];
    const what = `the CPUs of grant ${uid} are kept from others at the level ${enforcement.level}, and ${level} is possible again`;
    // The kernel alone knows whether it makes a partition: after two refusals others must change
    // what it depends on.
    const isPartition = isOfPartition(level);
    const around = isPartition ? host.enforcer.cpusetsOf(state.settings)?.surroundings() : '';
    return [{ kind: 'level' as const, uid, what, key: `level ${uid} ${level} ${around}`, repair: () => 0 }];
  });
  return { checked: 0, drifts };
}

/** Raises the levels of these grants, and makes their partitions. REQUIRES: the state's lock. */
export async function raiseLevels(
  host: Host,
  state: Assignments,
  uids: ReadonlySet<string | null>,
  commit: EnforcedCommit,
): Promise<Assignments> {
  if (uids.size === 0) return state;
  const { enforcer } = host;
  const raised = (mayPartition: boolean) => {
    const reachable = reachableLevels(host, state, mayPartition);
    return withLevels(state, (pod) => (uids.has(pod.uid) ? reachable(pod) : pod.enforcement.level));
  };
  let next = raised(true);
  if (next.pods.some((pod, i) => isPartitioned(pod) && !isPartitioned(state.pods[i]!))) {
    const { failed } = enforcer.apply(next);
    const { drifts } = enforcer.compare(next, () => false);
    if (failed.length > 0 || drifts.some(({ kind }) => kind === 'partition' || kind === 'cgroup')) {
      next = raised(false);
      enforcer.apply(next);
    }
  }
  if (next.pods.every((pod, i) => pod === state.pods[i])) return state;
  await commit(next);
  return next;
}

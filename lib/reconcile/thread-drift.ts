// Thread drift: whether the threads that this process has put on grants are there, and in the
// grants' cgroups.
import type { Assignments } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { secondPlace, type ThreadShare, threadShares } from '../account/pod-holdings.js';
import type { Host } from '../admission/host.js';
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { type Comparison, type RepairableDrift, together } from '../enforcement/drift.js';
import { GrantGroup } from '../enforcement/grant-group.js';
import { grantKey } from '../enforcement/layout/transition.js';
import { CpuSet } from '../machine/cpu-set.js';

/** `isGivenUp`: true for keys of what is contested. */
export function compareThreads(
  host: Host,
  state: Assignments,
  isGivenUp: (key: string) => boolean,
): Comparison {
  const { owners } = host.ledger;
  const isOurs = ({ owner, formerOwner }: PodAssignment) =>
    formerOwner === null && (owner.kind !== 'process' || owners.isOwn(owner));
  const comparisons = state.pods.filter(isOurs).flatMap((pod) => {
    const groupOf = () => GrantGroup.of(host, state.settings, pod);
    return sharesNow(pod).map((share) => threadsOfShare(pod, share, groupOf, isGivenUp));
  });
  return together(comparisons);
}

// During a change, threads may be on the CPUs of both places. A grant with parts cannot be resized.
function sharesNow(pod: PodAssignment): readonly ThreadShare[] {
  const [rest, ...parts] = threadShares(pod);
  return [{ ...rest, cpus: rest.cpus.union(secondPlace(pod).cpus) }, ...parts];
}

function threadsOfShare(
  pod: PodAssignment,
  share: ThreadShare,
  groupOf: () => GrantGroup | undefined,
  isGivenUp: (key: string) => boolean,
): Comparison {
  const { part, cpus } = share;
  const { uid } = pod;
  const tids = native.grantThreads(uid, part);
  if (tids.length === 0) return { checked: 0, drifts: [] };
  const group = groupOf();
  const drifts: RepairableDrift[] = [];
  const missing = group?.wasEntered ? group.missing(tids) : [];
  const groupKey = `${grantKey(pod)} ${cpus} threads`;
  if (group && missing.length > 0) {
    drifts.push({
      kind: 'cgroup',
      uid,
      key: groupKey,
      what: `${missing.length} threads of this process are not in ${group.path}`,
      repair: () => {
        group.bringBack(missing);
        return putBack(uid, share, missing);
      },
    });
  }
  for (const { tid, before } of native.strayThreads(uid, part, cpus.words)) {
    // The other cgroup has set their masks.
    if (missing.includes(tid) && !isGivenUp(groupKey)) continue;
    drifts.push({
      kind: 'thread',
      uid,
      key: `${grantKey(pod)} ${cpus} thread ${tid}`,
      what: `thread ${tid} of this process may run on CPUs ${new CpuSet(before)} instead of ${cpus}`,
      repair: () => putBack(uid, share, [tid]),
    });
  }
  return { checked: tids.length + (group ? 1 : 0), drifts };
}

function putBack(uid: string, { part, cpus }: ThreadShare, tids: readonly number[]): number {
  const { moved, unmovable } = native.recallThreads(uid, part, cpus.words, tids);
  const [stuck] = unmovable;
  if (!stuck) return moved.length;
  throw new NumalignError('ERR_SYSCALL', `thread ${stuck.tid} cannot be moved to CPUs ${cpus}`, {
    syscall: 'sched_setaffinity',
    errno: stuck.errno,
    value: stuck.tid,
    valid: cpus.toString(),
  });
}

// EarlierMasks: whether a process has its mask from numalign, though the record does not show it any
// more.
import { join } from 'node:path';
import type { Assignments } from '../../account/assignments.js';
import type { OwnerRecord } from '../../account/pod-assignment.js';
import { cpusOf } from '../../account/pod-holdings.js';
import { type CpuSnapshot, sharedPool } from '../../account/pools.js';
import { textOf, unlessRefused } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';
import type { CpuSet } from '../../machine/cpu-set.js';
import { hasEnded, identifyProcess, type ProcessIdentity } from '../../processes/process-identity.js';
import { withChild, withExisting } from '../../state/folder/existing.js';
import { readBootId } from '../../state/folder/folder.js';
import { statesBetween } from '../../state/past-states.js';
import { lineageOf } from './lineage.js';
import { SharedMembers } from './shared-members.js';

/** The mask of this process, its cpuset, and the CPUs of the machine. */
export interface MaskQuestion {
  readonly mask: CpuSet;
  readonly limit: CpuSet;
  readonly present: CpuSnapshot;
}

// Whether a process has loaded the addon, also one that an update has removed since. Most that have
// were members.
const hasNumalign = ({ pid }: ProcessIdentity) =>
  /\/numalign(\.\w+)?\.node( \(deleted\))?$/m.test(textOf(`/proc/${pid}/maps`) ?? '');

// Whether what has this pid now has had it since before this process started. Pids are reused.
const isOlder = (pid: number, { start }: ProcessIdentity) =>
  !hasEnded(pid) && Number(identifyProcess(pid)?.start ?? 0) < Number(start);

// The record tells when a state was in force, /proc when a process started, both not exactly. Masks
// change some milliseconds before or after a commit.
const SLACK_MS = 250;

/**
 * Whether this process, or a parent that it has the mask from, has the mask from numalign, though
 * the record does not show it any more. That is so if numalign gave it to one of them; or if the one
 * that had it first was started by a member (or one that was) or an owner of a grant, and members or
 * that grant had this mask when it started. What has ended may have been one of these.
 */
export function isFromBefore(stateDir: string, { mask, limit, present }: MaskQuestion): boolean {
  const { heirs, began, starter } = lineageOf(mask);
  const own = mask.intersection(limit);
  const all = present.online.difference(present.isolated).intersection(limit);
  const isPoolOf = (state: Assignments) => {
    const pool = sharedPool(state, present).difference(present.isolated);
    return own.equals(pool.intersection(limit));
  };
  const mayBeOwner = ({ kind, pid }: OwnerRecord) =>
    kind === 'process' && (starter === 'ended' ? !isOlder(pid!, heirs.at(-1)!) : starter?.pid === pid);
  const isGrantOf = ({ pods }: Assignments) =>
    pods.some((pod) => mayBeOwner(pod.owner) && own.isSubsetOf(cpusOf(pod)));
  const judge = (folder: NativeFolder, members: SharedMembers) => {
    if (heirs.some((each) => members.hasGiven(each, mask, all))) return true;
    if (starter === undefined) return false;
    let isMember: boolean | undefined;
    const mayBeMember = () =>
      (isMember ??= starter === 'ended' || members.registry.knows(starter) || hasNumalign(starter));
    const bootId = readBootId();
    for (const state of statesBetween(folder, began - SLACK_MS, began + SLACK_MS)) {
      if (state.bootId !== bootId) continue;
      if (isGrantOf(state.assignments) || (isPoolOf(state.assignments) && mayBeMember())) return true;
    }
    return false;
  };
  const path = join(stateDir, 'members');
  const look = (folder?: NativeFolder) =>
    folder !== undefined &&
    withChild(
      folder,
      'members',
      (members) => members !== undefined && judge(folder, new SharedMembers(members, path)),
    );
  return unlessRefused(() => withExisting(stateDir, look), false);
}

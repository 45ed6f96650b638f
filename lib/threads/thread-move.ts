// ThreadMove: how the threads that this process has pinned for a grant move with it to other CPUs.
import { type Booked, threadShares } from '../account/pod-holdings.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import { affinity, type PinResult, toPinResult } from '../machine/affinity.js';
import { CpuSet } from '../machine/cpu-set.js';

/** A thread that was put on only some CPUs of its share. */
interface PlacedThread {
  readonly tid: number;
  readonly part: string;
  readonly cpus: CpuSet;
}

function placedThreads(uid: string, place: Booked): readonly PlacedThread[] {
  return threadShares(place).flatMap(({ part, cpus: all }) =>
    native.grantThreads(uid, part).flatMap((tid) => {
      const cpus = unlessRefused(() => affinity(tid));
      return cpus?.isSubsetOf(all) && !cpus.equals(all) ? [{ tid, part, cpus }] : [];
    }),
  );
}

/**
 * The remaining CPUs of a grant that grows or shrinks; otherwise the n-th CPU of one set for the
 * n-th of another.
 */
function counterparts(cpus: CpuSet, from: CpuSet, to: CpuSet): CpuSet {
  const [old, next] = [from.toArray(), to.toArray()];
  const common = from.isSubsetOf(to) || to.isSubsetOf(from) ? cpus.intersection(to) : CpuSet.EMPTY;
  if (!common.isEmpty) return common;
  return CpuSet.from([...cpus].map((cpu) => next[old.indexOf(cpu) % next.length]!));
}

/** The request of {@link moveThreads}. */
export interface ThreadMoveRequest {
  readonly uid: string;
  /** The uuid of the grant's owner. */
  readonly owner: string;
  readonly from: Booked;
  readonly to: Booked;
}

/**
 * Moves threads from one place of the grant to another; each keeps its number of CPUs. `place`
 * restores the threads that were on only some of the CPUs. Call it once the cgroup has its final
 * CPUs, since that may reset their masks.
 * @throws ERR_SYSCALL if a thread cannot leave
 */
export function moveThreads({ uid, owner, from, to }: ThreadMoveRequest): {
  readonly result: PinResult;
  readonly place: () => void;
} {
  const threads = placedThreads(uid, from);
  const [before, after] = [threadShares(from), threadShares(to)];
  const outcomes = after.map(({ part, cpus }) => native.followGrant(uid, part, cpus.words));
  const moves = outcomes.flatMap((each) => each.moved);
  const result = toPinResult({ moved: moves, unmovable: outcomes.flatMap((each) => each.unmovable) }, true);
  const all = after.reduce((sum, { cpus }) => sum.union(cpus), CpuSet.EMPTY);
  const stuck = result.unmovable.find(({ cpus }) => !cpus.isSubsetOf(all));
  if (stuck) {
    throw new NumalignError(
      'ERR_SYSCALL',
      `thread ${stuck.tid} cannot leave CPUs ${stuck.cpus}: ${stuck.reason}`,
      {
        ...{ syscall: 'sched_setaffinity', value: stuck.tid, valid: all.toString() },
      },
    );
  }
  const place = () => {
    for (const { tid, part, cpus } of threads) {
      const shareOf = (shares: typeof after) => shares.find((share) => share.part === part)!.cpus;
      const target = counterparts(cpus, shareOf(before), shareOf(after));
      const call = { tid, cpus: target.words, grant: uid, part, owner, replace: false };
      // The thread may have ended.
      unlessRefused(() => native.pin(call));
    }
  };
  return { result, place };
}

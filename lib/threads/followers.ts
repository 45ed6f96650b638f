// Followers: how the threads that this process has pinned for a grant follow changes of its CPUs.
import { type Booked, type ThreadShare, threadShares } from '../account/pod-holdings.js';
import { NumalignError, unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativePinOutcome } from '../base/native-threads.js';
import { type PinResult, toPinResult } from '../machine/affinity.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Store } from '../state/store.js';
import { checkNoChild } from './children.js';

/** The threads of this process that run on the grant. */
export interface Followers<T> {
  /** Moves them off the CPUs that the grant is about to lose. @throws if a thread cannot leave */
  narrow(cpus: CpuSet): T;
  /** Lets them use all of the grant, again or for the first time. `pod`: the grant at that time. */
  widen(cpus: CpuSet, pod: Booked): T;
}

/** The threads of this process that run on the grant. */
export interface ParkableFollowers<T> extends Followers<T> {
  /** Moves them to the shared pool until {@link Followers.widen} brings them back. */
  park(pool: CpuSet): T;
  /** @throws if something on the grant cannot leave, like {@link Followers.narrow} */
  checkCanLeave(): void;
}

/** The threads that this process has pinned for a grant; `before`: the grant as it is now. */
export function threadsOf(store: Store, uid: string, before: Booked): ParkableFollowers<PinResult> {
  const move = (pod: Booked, moveShare: (share: ThreadShare) => NativePinOutcome) => {
    const outcomes = threadShares(pod).map(moveShare);
    const moves = outcomes.flatMap((each) => each.moved);
    return toPinResult({ moved: moves, unmovable: outcomes.flatMap((each) => each.unmovable) }, true);
  };
  // Threads of a part without a present CPU wait on the rest of the grant.
  const follow = (pod: Booked, lasting: CpuSet, present: CpuSet) => {
    const rest = lasting.intersection(present);
    return move(pod, ({ part, cpus }) => {
      const share = cpus.intersection(lasting);
      return share.intersects(rest) || rest.isEmpty
        ? native.followGrant(uid, part, share.words)
        : native.parkGrant(uid, part, rest.words);
    });
  };
  return {
    narrow: (cpus) => {
      checkNoChild(store, { uid }, 'taken from it');
      const result = follow(before, cpus, cpus);
      const stuck = result.unmovable.find((thread) => !thread.cpus.isSubsetOf(cpus));
      if (!stuck) return result;
      const message = `thread ${stuck.tid} cannot leave CPUs ${stuck.cpus}: ${stuck.reason}`;
      const details = { syscall: 'sched_setaffinity', value: stuck.tid, valid: cpus.toString() };
      throw new NumalignError('ERR_SYSCALL', message, details);
    },
    // It may undo a step that failed because no file can be opened.
    widen: (cpus, pod) => {
      const online = unlessRefused(() => new CpuSet(native.onlineCpus()), cpus);
      return follow(pod, cpus, online);
    },
    park: (pool) => move(before, ({ part }) => native.parkGrant(uid, part, pool.words)),
    checkCanLeave: () => checkNoChild(store, { uid }, 'taken from it'),
  };
}

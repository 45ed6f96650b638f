// How the threads of this process that are pinned for a grant follow its CPUs when these change.
import { NumalignError } from '../base/errors.js';
import { native } from '../base/native.js';
import { type PinResult, toPinResult } from '../machine/affinity.js';
import type { CpuSet } from '../machine/cpu-set.js';
import type { Store } from '../state/store.js';
import { checkNoChild } from './children.js';

/** The threads of this process that run on the grant. */
export interface Followers<T> {
  /** They leave what the grant loses; called before it does. @throws where one does not */
  narrow(cpus: CpuSet): T;
  /** They may use all of the grant, again or for the first time. */
  widen(cpus: CpuSet): T;
}

/** The threads of this process that run on the grant. */
export interface GrantThreads<T> extends Followers<T> {
  /** They wait in the shared pool until {@link Followers.widen} brings them back. */
  park(pool: CpuSet): T;
  /** @throws where something runs on the grant that cannot leave, as {@link Followers.narrow} */
  checkCanLeave(): void;
}

/** The threads of this process that are pinned for a grant. */
export function threadsOf(store: Store, uid: string): GrantThreads<PinResult> {
  const follow = (cpus: CpuSet) => toPinResult(native.followGrant(uid, cpus.words), true);
  return {
    narrow: (cpus) => {
      checkNoChild(store, { uid }, 'taken from it');
      const result = follow(cpus);
      const stuck = result.unmovable.find((thread) => !thread.cpus.isSubsetOf(cpus));
      if (!stuck) return result;
      throw new NumalignError(
        'ERR_SYSCALL',
        `thread ${stuck.tid} cannot leave CPUs ${stuck.cpus}: ${stuck.reason}`,
        {
          syscall: 'sched_setaffinity',
          value: stuck.tid,
          valid: cpus.toString(),
        },
      );
    },
    widen: follow,
    park: (pool) => toPinResult(native.parkGrant(uid, pool.words), true),
    checkCanLeave: () => checkNoChild(store, { uid }, 'taken from it'),
  };
}

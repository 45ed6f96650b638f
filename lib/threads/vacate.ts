// Vacate: how the threads that this process has pinned for a grant leave its CPUs, and return if
// the grant does not end.
import type { PodAssignment } from '../account/pod-assignment.js';
import { type Booked, runningCpus } from '../account/pod-holdings.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeDeparture } from '../base/native-threads.js';
import type { GrantGroup } from '../enforcement/grant-group.js';
import type { UnpinnedThread } from '../enforcement/members/confinement.js';
import {
  affinity,
  CLIPPED,
  type MovedThread,
  type PinResult,
  toPinResult,
  type UnmovableThread,
} from '../machine/affinity.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import { unpinMemory } from './memory.js';

/**
 * How a grant ends: threads of this process leave its CPUs for the shared pool, and return if the
 * grant does not end.
 */
export interface Vacate<T, R> {
  leave(pool: CpuSet): T;
  /** The threads that left. */
  threads(departure: T): readonly UnpinnedThread[];
  /** Where they are once the CPUs belong to the shared pool again. */
  settled(departure: T): R;
  comeBack(departure: T): void;
}

// The shared pool may have grown since they were moved. A thread that has ended keeps its earlier
// result.
export function readAgain({ moved, unmovable, ...result }: PinResult): PinResult {
  const now = <T extends MovedThread>(thread: T): T => ({
    ...thread,
    cpus: affinityIfThere(thread.tid) ?? thread.cpus,
  });
  return { ...result, moved: moved.map(now), unmovable: unmovable.map(now) };
}

function affinityIfThere(tid: number): CpuSet | undefined {
  return unlessRefused(() => affinity(tid));
}

export const NOTHING_MOVED: PinResult = Object.freeze({ moved: [], unmovable: [], guaranteed: true });

/** Threads that have left a grant. */
export interface Unpinned {
  readonly result: PinResult;
  readonly threads: readonly UnpinnedThread[];
  /** Brings the threads back, except those that have ended. */
  readonly comeBack: () => void;
}

// Threads leave their cgroup first, if there is one: it would not let masks have CPUs of the shared
// pool. What the shared pool's own cpuset excludes from a mask is its business.
function undoPin(topology: Topology, group: GrantGroup | undefined, uid: string, pool: CpuSet): Unpinned {
  const maskCpus = group?.leave(pool);
  const outcome = native.undoPin(uid, (maskCpus ?? pool).words);
  group?.forgetHome();
  return unpinned(topology, maskCpus && group, outcome, maskCpus === undefined || maskCpus === pool);
}

/**
 * Like {@link undoPin}, for some threads of this process, whichever grant they are pinned for.
 * REQUIRES: {@link GrantGroup.checkSingleThreads}.
 */
export function sharePinned(
  topology: Topology,
  group: GrantGroup | undefined,
  pod: Booked & Pick<PodAssignment, 'uid'>,
  tids: readonly number[],
  pool: CpuSet,
): Unpinned {
  const maskCpus = group?.leaveThreads(tids, pool) ?? pool;
  const outcome = native.shareThreads(pod.uid, runningCpus(pod).words, tids, maskCpus.words);
  return unpinned(topology, group, outcome, maskCpus === pool);
}

// `group`: that they have left; `isByMask`: masks keep the threads in the shared pool, and not a
// cpuset.
function unpinned(
  topology: Topology,
  group: GrantGroup | undefined,
  outcome: NativeDeparture,
  isByMask: boolean,
): Unpinned {
  const threads = [...outcome.moved, ...outcome.unmovable].map(({ tid, now, earlier = now }) => ({
    tid,
    // The record must not have CPUs that the machine does not have, even if a thread may use any.
    earlier: new CpuSet(earlier).intersection(topology.cpus),
  }));
  const { moved, unmovable, guaranteed } = toPinResult(outcome, true);
  const comeBack = () => {
    group?.comeBack(threads.map(({ tid }) => tid));
    outcome.comeBack();
  };
  if (isByMask) return { threads, comeBack, result: { moved, unmovable, guaranteed } };
  const hasLeft = (thread: UnmovableThread) => thread.reason === CLIPPED;
  return {
    threads,
    comeBack,
    result: {
      moved: [...moved, ...unmovable.filter(hasLeft)],
      unmovable: unmovable.filter((each) => !hasLeft(each)),
      guaranteed,
    },
  };
}

// Takes the threads that were pinned for a grant off its CPUs, and back.
export function vacateOf(
  topology: Topology,
  group: GrantGroup | undefined,
  pod: PodAssignment,
): Vacate<Unpinned, PinResult> {
  const { uid } = pod;
  let pinMemoryAgain = () => {};
  return {
    leave: (pool) => {
      const departure = undoPin(topology, group, uid, pool);
      pinMemoryAgain = unpinMemory(uid);
      return departure;
    },
    threads: ({ threads }) => threads,
    settled: ({ result }) => readAgain(result),
    comeBack: ({ comeBack }) => {
      comeBack();
      pinMemoryAgain();
    },
  };
}

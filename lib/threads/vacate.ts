// Vacate: how the threads that this process has pinned for a grant leave its CPUs, and return if
// the grant does not end.
import type { MachineSettings } from '../account/assignments.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { runningCpus } from '../account/pod-holdings.js';
import { unlessRefused } from '../base/errors.js';
import { native } from '../base/native.js';
import type { NativeDeparture } from '../base/native-threads.js';
import type { Machine } from '../enforcement/enforcer.js';
import { GrantGroup } from '../enforcement/grant-group.js';
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
import { unpinMemory } from './memory.js';

/** Threads of this process that have left a grant for the shared pool. */
export interface Departure {
  readonly threads: readonly UnpinnedThread[];
  /** Where they are once the CPUs belong to the shared pool again. */
  settled(): PinResult;
  /** Brings the threads back, except those that have ended. */
  comeBack(): void;
}

// The shared pool may have grown since they were moved. A thread that has ended keeps its earlier
// result.
function readAgain({ moved, unmovable, guaranteed }: PinResult): PinResult {
  const now = <T extends MovedThread>(thread: T): T => ({
    ...thread,
    cpus: unlessRefused(() => affinity(thread.tid)) ?? thread.cpus,
  });
  return { moved: moved.map(now), unmovable: unmovable.map(now), guaranteed };
}

export const NOTHING_MOVED: PinResult = Object.freeze({ moved: [], unmovable: [], guaranteed: true });

/**
 * Takes the threads that were pinned for a grant off its CPUs. They leave their cgroup first, if
 * there is one: it would not let masks have CPUs of the shared pool. What the shared pool's own
 * cpuset excludes from a mask is its business.
 * @throws ERR_CGROUP if they cannot leave it
 */
export function leaveGrant(
  machine: Machine,
  settings: MachineSettings,
  pod: PodAssignment,
  pool: CpuSet,
): Departure {
  const { uid } = pod;
  const group = GrantGroup.of(machine, settings, pod);
  const maskCpus = group?.leave(pool);
  const cpus = maskCpus ?? pool;
  const outcome = native.undoPin(uid, cpus.words) ?? { moved: [], unmovable: [], comeBack: () => {} };
  group?.forgetHome();
  const { threads, settled, comeBack } = departureOf(machine, maskCpus && group, outcome, cpus === pool);
  const pinMemoryAgain = unpinMemory(uid);
  const bothComeBack = () => {
    comeBack();
    pinMemoryAgain();
  };
  return { threads, settled, comeBack: bothComeBack };
}

/**
 * Like {@link leaveGrant}, for some threads of this process, whichever grant they are pinned for.
 * REQUIRES: {@link GrantGroup.checkSingleThreads}.
 * @throws ERR_CGROUP if they cannot leave it
 */
export function leaveSingly(
  machine: Machine,
  settings: MachineSettings,
  pod: PodAssignment,
  leaving: { readonly tids: readonly number[]; readonly pool: CpuSet },
): Departure {
  const { tids, pool } = leaving;
  const group = GrantGroup.of(machine, settings, pod);
  const maskCpus = group?.leaveThreads(tids, pool) ?? pool;
  const outcome = native.shareThreads(pod.uid, runningCpus(pod).words, tids, maskCpus.words);
  return departureOf(machine, group, outcome, maskCpus === pool);
}

// `group`: that they have left; `isByMask`: masks keep the threads in the shared pool, and not a
// cpuset.
function departureOf(
  { topology }: Machine,
  group: GrantGroup | undefined,
  outcome: NativeDeparture,
  isByMask: boolean,
): Departure {
  const threads = [...outcome.moved, ...outcome.unmovable].map(({ tid, now, earlier = now }) => ({
    tid,
    // The record must not have CPUs that the machine does not have, even if a thread may use any.
    earlier: new CpuSet(earlier).intersection(topology.cpus),
  }));
  const { moved, unmovable, guaranteed } = toPinResult(outcome, true);
  const hasLeft = ({ reason }: UnmovableThread) => !isByMask && reason === CLIPPED;
  const result = {
    moved: [...moved, ...unmovable.filter(hasLeft)],
    unmovable: unmovable.filter((each) => !hasLeft(each)),
    guaranteed,
  };
  return {
    threads,
    settled: () => readAgain(result),
    comeBack: () => {
      group?.comeBack(threads.map(({ tid }) => tid));
      outcome.comeBack();
    },
  };
}

// What of a grant must be known to put threads on it, and that threads run on it.
import { cpusNow } from '../account/cpus-now.js';
import { runningCpus, threadShares } from '../account/pod-holdings.js';
import { sharedPool } from '../account/pools.js';
import { checkNotAttached } from '../admission/grants/attachment.js';
import type { GrantRecord } from '../admission/grants/grant-record.js';
import { recordedState } from '../admission/on-record.js';
import { transact } from '../admission/transact.js';
import { beginAudit } from '../audit/grant-audits.js';
import type { PinResult } from '../machine/affinity.js';
import { type GrantedThreads, needsOneToOne } from '../threads/granted-threads.js';
import { leaveSingly } from '../threads/vacate.js';
import { partCpus } from './grant-part.js';

/**
 * What may run on a grant, or on a part of it.
 * @throws ERR_GRANT_RELEASED, ERR_OWNER_ALIVE, ERR_SIMULATED_MACHINE, ERR_UNKNOWN_PART
 */
export function grantedThreads(record: GrantRecord, part = ''): GrantedThreads {
  record.checkRunnable();
  const { host, pod, group } = record;
  const { enforcement } = pod;
  const all = part === '' ? threadShares(pod)[0].cpus : partCpus(record, part);
  const near = part === '' ? runningCpus(pod) : all;
  return {
    grant: pod.uid,
    part,
    owner: pod.owner.uuid,
    cpus: all.intersection(record.cpusToStay(pod)),
    memoryNodes: record.memoryNodesNear(near, pod),
    preferredNodes: record.preferredNodesNear(near, pod),
    // Not every caller asks, and one CPU needs no look at the machine.
    get oneToOne() {
      const place = { cpus: all, enforcement: enforcement.level };
      return all.size > 1 && needsOneToOne(place, cpusNow(host.topology).unbalanced);
    },
    onPart: (name) => {
      partCpus(record, name);
      return grantedThreads(record, name);
    },
    group,
    share: pod.mixed === undefined ? undefined : (tids) => shareThreads(record, tids),
    learnAskedMasks: () => host.enforcer.learnAskedMasks(recordedState(host).settings),
  };
}

// Under the lock: until they are known to be in the pool, no grant takes CPUs from it.
function shareThreads({ host, pod }: GrantRecord, tids: readonly number[]): Promise<PinResult> {
  const { topology, enforcer } = host;
  return transact(host, undefined, async (state) => {
    checkNotAttached(host, state, process.pid);
    const registry = enforcer.members?.registry;
    // As a member, also where the manager was opened without, it follows the pool.
    if (registry?.ownName === undefined) registry?.addProcess(process.pid);
    const pool = sharedPool(state, cpusNow(topology));
    const left = leaveSingly(host, state.settings, pod, { tids, pool });
    try {
      enforcer.apply(state, left.threads);
    } catch (error) {
      left.comeBack();
      throw error;
    }
    return left.settled();
  });
}

/** Threads of this process run on it from now on. */
export function noteRunning({ host, pod }: Pick<GrantRecord, 'host' | 'pod'>): void {
  if (pod.owner.kind !== 'process') host.enforcer.members?.registry.notePinned(pod.uid);
  beginAudit(host, pod);
}

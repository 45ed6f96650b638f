// Release: how a grant ends.
import type { Assignments } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { removePods } from '../../account/pod-changes.js';
import { sharedPool } from '../../account/pools.js';
import type { HintProviders } from '../../decision/hints/hint-providers.js';
import type { Vacate } from '../../threads/vacate.js';
import type { Site } from '../site.js';
import { type EnforcedCommit, FEW_CGROUPS, transact } from '../transact.js';
import { checkReleasable, findGrant, unknownGrant } from './held-grant.js';

/**
 * Ends a grant: its threads leave, then it commits. The threads leave first, under the lock: after
 * the commit the CPUs may belong to another grant.
 * @throws ERR_UNKNOWN_GRANT (the threads have left all the same), ERR_OWNER_ALIVE, and the ledger's
 *   errors.
 */
export function release<T, R>(site: Site, grant: PodAssignment, vacate: Vacate<T, R>): Promise<R> {
  const { topology, ledger, providers } = site;
  const { uid } = grant;
  const end = async (state: Assignments, commit: EnforcedCommit, recorded: Assignments) => {
    if (commit.refusal) throw commit.refusal;
    const pod = findGrant(recorded, grant);
    if (pod) checkReleasable(site, pod);
    const next = pod ? removePods(state, new Set([uid])) : state;
    const left = vacate.leave(sharedPool(next, cpusNow(topology, recorded.pods)));
    if (!pod) {
      site.enforcer.apply(state, vacate.threads(left));
      throw unknownGrant(uid, state, ledger.path);
    }
    try {
      await commit(next, providers.isEmpty, { unpinned: vacate.threads(left) });
    } catch (error) {
      vacate.comeBack(left);
      throw error;
    }
    tellProviders(providers, pod, next);
    return left;
  };
  return transact(site, undefined, end, FEW_CGROUPS).then((left) => vacate.settled(left));
}

/**
 * Gives up this process's share of a grant. Resolves with true if a child keeps the grant, which is
 * released otherwise.
 * @throws ERR_OWNER_SHARED
 */
export function handOver<T, R>(site: Site, grant: PodAssignment, vacate: Vacate<T, R>): Promise<boolean> {
  const { topology, ledger, providers } = site;
  const { uid } = grant;
  return transact(site, undefined, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    const pod = findGrant(state, grant);
    if (!pod) return false;
    checkReleasable(site, pod);
    // From here on this process no longer owns the grant. If the commit fails, the next transaction
    // takes it back as one of a dead owner.
    const isAlive = ledger.owners.handOver(uid);
    const left = vacate.leave(sharedPool(state, cpusNow(topology)));
    if (isAlive) {
      site.enforcer.apply(state, vacate.threads(left));
      return true;
    }
    const next = removePods(state, new Set([uid]));
    await commit(next, providers.isEmpty, { unpinned: vacate.threads(left) });
    tellProviders(providers, pod, next);
    return false;
  });
}

/**
 * Has providers release what they hold for a pod that is off the record. The lock is still held:
 * after it, another pod may have the uid.
 * @throws ERR_HINT_PROVIDER if a provider fails
 */
function tellProviders(providers: HintProviders, pod: PodAssignment, { pods }: Assignments): void {
  // Another manager may have admitted it.
  providers.keep(pod);
  const error = providers.releaseAllBut(pods, pod.uid);
  if (error !== undefined) throw error;
}

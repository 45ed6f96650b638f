// Release: the one way from a grant to free CPUs. Its threads leave first, under the lock: after the
// commit the CPUs may belong to another grant.
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { removePods } from '../account/pod-changes.js';
import { presentCpus } from '../account/pod-holdings.js';
import { sharedPool } from '../account/pools.js';
import { traced } from '../admission/diagnostics.js';
import { endingGrants } from '../admission/grants/grant-record.js';
import { checkReleasable, findGrant, unknownGrant } from '../admission/grants/held-grant.js';
import type { Host } from '../admission/host.js';
import { type EnforcedCommit, FEW_CGROUPS, transact } from '../admission/transact.js';
import { endAudit } from '../audit/grant-audits.js';
import { ENVIRONMENT } from '../base/collections/registry.js';
import { dropListeners } from '../changes/move-event.js';
import type { HintProviders } from '../decision/hints/hint-providers.js';
import type { PinResult } from '../machine/affinity.js';
import { forgetBuffers } from '../threads/buffers.js';
import { checkNoChild } from '../threads/children.js';
import { leaveGrant } from '../threads/vacate.js';

/**
 * Locks, reloads, lets the threads of this process leave, and commits; they come back if that
 * fails.
 * @throws ERR_CHILD_ALIVE while a child of this process runs on it; ERR_UNKNOWN_GRANT (the threads
 *   have left all the same), ERR_OWNER_ALIVE, and the ledger's errors; ERR_HINT_PROVIDER once the
 *   CPUs are released
 */
export async function release(host: Host, grant: PodAssignment): Promise<PinResult> {
  checkNoChild(host.ledger, grant, 'released');
  const { topology, ledger, providers, enforcer } = host;
  const left = await ending(host, grant, async (state, commit, recorded) => {
    if (commit.refusal) throw commit.refusal;
    const pod = findGrant(recorded, grant);
    if (pod) checkReleasable(host, pod);
    const next = pod ? removePods(state, new Set([pod.uid])) : state;
    const pool = sharedPool(next, cpusNow(topology, recorded.pods));
    const departure = leaveGrant(host, state.settings, grant, pool);
    if (!pod) {
      enforcer.apply(state, departure.threads);
      throw unknownGrant(grant.uid, state, ledger.path);
    }
    try {
      await commit(next, providers.isEmpty, { unpinned: departure.threads });
    } catch (error) {
      departure.comeBack();
      throw error;
    }
    tellProviders(providers, pod, next);
    return departure;
  });
  return left.settled();
}

/**
 * Gives up this process's share of a grant. Resolves with true if a child keeps the grant, which is
 * released otherwise.
 * @throws ERR_OWNER_SHARED; as {@link release}
 */
export function handOver(host: Host, grant: PodAssignment): Promise<boolean> {
  const { topology, ledger, providers, enforcer } = host;
  return ending(host, grant, async (state, commit) => {
    if (commit.refusal) throw commit.refusal;
    const pod = findGrant(state, grant);
    if (!pod) return false;
    checkReleasable(host, pod);
    // From here on this process no longer owns the grant. If the commit fails, the next transaction
    // takes it back as one of a dead owner.
    const isAlive = ledger.owners.handOver(pod.uid);
    const { threads } = leaveGrant(host, state.settings, grant, sharedPool(state, cpusNow(topology)));
    if (isAlive) {
      enforcer.apply(state, threads);
      return true;
    }
    const next = removePods(state, new Set([pod.uid]));
    await commit(next, providers.isEmpty, { unpinned: threads });
    tellProviders(providers, pod, next);
    return false;
  });
}

// Runs a step that ends a grant. Until that settles, no thread may go there again.
async function ending<T>(
  host: Host,
  grant: PodAssignment,
  step: (state: Assignments, commit: EnforcedCommit, recorded: Assignments) => Promise<T>,
): Promise<T> {
  const { uid, name } = grant;
  const all = host.ledger.registry.of(endingGrants);
  all.add(uid);
  const end = () => transact(host, undefined, step, FEW_CGROUPS);
  try {
    const result = await traced('release', host, end, ({ value }) => ({
      uid,
      name,
      cpus: presentCpus(grant).toString(),
      handedOver: value === true,
    }));
    forgetGrant(host, grant);
    return result;
  } finally {
    all.delete(uid);
  }
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

// What follows the end of a grant, by its uid.
const followers = () => new Map<string, () => void>();

/** Has `action` called once, when the grant is no longer this environment's, however it ends. */
export function onceEnded(uid: string, action: () => void): void {
  ENVIRONMENT.of(followers).set(uid, action);
}

/** Forgets what this environment keeps for a grant that it no longer has. */
export function forgetGrant(host: Pick<Host, 'topology' | 'ledger'>, { uid }: PodAssignment): void {
  endAudit(host, { uid });
  forgetBuffers(uid);
  dropListeners(host.ledger, uid);
  const all = ENVIRONMENT.of(followers);
  const action = all.get(uid);
  all.delete(uid);
  action?.();
}

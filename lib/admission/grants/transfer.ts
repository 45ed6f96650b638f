// Transfer: a grant changes hands between live processes. On record all the time, and free for
// nobody until whoever hands it over has left the CPUs.
import { randomUUID } from 'node:crypto';
import { findPod } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { replacePod } from '../../account/pod-changes.js';
import { sharedPool } from '../../account/pools.js';
import { NumalignError } from '../../base/errors.js';
import { until } from '../../state/until.js';
import type { Vacate } from '../../threads/vacate.js';
import { assignmentsOf } from '../on-record.js';
import type { Site } from '../site.js';
import { transact } from '../transact.js';
import { heldGrant, unknownGrant } from './held-grant.js';

/**
 * Puts a token on record: whoever shows it becomes the owner.
 * @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, ERR_INVALID_ARGUMENT, the ledger's errors
 */
export function offer(site: Site, grant: PodAssignment): Promise<string> {
  return transact(site, undefined, async (state, commit) => {
    const pod = heldGrant(site, state, grant);
    if (pod.owner.kind !== 'process') {
      throw new NumalignError(
        'ERR_INVALID_ARGUMENT',
        `grant ${pod.uid} belongs to no process: there is nothing to hand over`,
        { value: pod.owner.kind, valid: "a grant whose owner is 'process'" },
      );
    }
    const transfer = randomUUID();
    await commit(replacePod(state, { ...pod, transfer }), true);
    return transfer;
  });
}

/** Takes the token back; false where it has been used, or the grant has ended. */
export function withdraw(site: Site, { uid }: PodAssignment, token: string): Promise<boolean> {
  return transact(site, undefined, async (state, commit) => {
    const pod = findPod(state, uid);
    if (pod?.transfer !== token) return false;
    await commit(replacePod(state, { ...pod, transfer: null }), true);
    return true;
  });
}

/** What whoever hands a grant over does about it. */
export interface Leaving<T> extends Vacate<T, unknown> {
  /** Whether nothing runs on the CPUs that could not leave. */
  canLeave(): boolean;
}

// Tokens that this environment has shown itself: such a grant stays where it is.
const shownHere = () => new Set<string>();

// What stands in the way for a while only: a lock that is held for long, a full disk. The other
// side waits meanwhile.
async function orLater<T>(look: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof NumalignError) || error.code === 'ERR_UNKNOWN_GRANT') throw error;
    return undefined;
  }
}

/**
 * Waits until somebody has shown the token, and leaves: true. False where that cannot happen any
 * more.
 */
export function handedOver<T>(
  site: Site,
  { uid, owner }: PodAssignment,
  token: string,
  leaving: Leaving<T>,
): Promise<boolean> {
  const { ledger } = site;
  const look = () => {
    const pod = findPod(assignmentsOf(site, ledger.read()), uid);
    if (pod?.transfer === token) return undefined;
    if (pod?.formerOwner !== owner.uuid) return ledger.registry.of(shownHere).delete(token);
    if (!leaving.canLeave()) return undefined;
    return transact(site, undefined, async (state, commit) => {
      const moved = leaving.leave(sharedPool(state, cpusNow(site.topology)));
      const now = findPod(state, uid);
      try {
        if (now) await commit(replacePod(state, { ...now, formerOwner: null }));
        site.enforcer.apply(state, leaving.threads(moved));
      } catch (error) {
        leaving.comeBack(moved);
        throw error;
      }
      return true;
    });
  };
  return until(ledger, undefined, () => orLater(look));
}

/**
 * Becomes the owner, and waits until the one before has left the CPUs.
 * @throws ERR_UNKNOWN_TRANSFER, the ledger's errors; the signal's reason, while the grant is
 *   another's, then ERR_OWNER_ALIVE
 */
export async function takeOver(site: Site, token: string, signal?: AbortSignal): Promise<PodAssignment> {
  const { ledger } = site;
  const { owners } = ledger;
  let former: number | null = null;
  const { uid } = await transact(site, signal, async (state, commit) => {
    const offered = state.pods.find(({ transfer }) => transfer === token);
    if (!offered) {
      throw new NumalignError(
        'ERR_UNKNOWN_TRANSFER',
        `nobody hands a grant over by this token in ${ledger.path}: it was used or withdrawn, or its owner has ended`,
        { value: token },
      );
    }
    if (commit.refusal) throw commit.refusal;
    const owner = owners.recordFor('process');
    const isOwn = owner.uuid === offered.owner.uuid;
    former = offered.owner.pid;
    // What the former owner has announced it can carry out no more.
    const taken = {
      ...offered,
      owner,
      transfer: null,
      formerOwner: isOwn ? null : offered.owner.uuid,
      upcoming: null,
    };
    // Before anybody can see it.
    if (isOwn) ledger.registry.of(shownHere).add(token);
    try {
      await commit(replacePod(state, taken));
    } catch (error) {
      ledger.registry.of(shownHere).delete(token);
      throw error;
    }
    return taken;
  });
  const look = () => {
    const state = assignmentsOf(site, ledger.read());
    const pod = findPod(state, uid);
    if (!pod) throw unknownGrant(uid, state, ledger.path);
    return pod.formerOwner === null || !owners.isProcessAlive(pod.formerOwner) ? pod : undefined;
  };
  try {
    return await until(ledger, signal, () => orLater(look));
  } catch (cause) {
    if (!signal?.aborted) throw cause;
    throw new NumalignError(
      'ERR_OWNER_ALIVE',
      `grant ${uid} belongs to this process now, but the one that handed it over (process ${former}) has not left its CPUs yet`,
      { value: uid, pid: former, cause },
    );
  }
}

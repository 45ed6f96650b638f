// Transfer: a grant changes hands between live processes. On record all the time, and free for nobody until whoever hands it over has left the CPUs.
import { randomUUID } from 'node:crypto';
import { NumalignError } from '../errors.js';
import { onlineCpus } from '../online-cpus.js';
import { findPod, type PodAssignment, replacePod, sharedPool } from '../state/assignments.js';
import { until } from '../state/until.js';
import { assignmentsOf, checkReleasable, type Site, transact, unknownGrant, type Vacate } from './topology-manager.js';

/** Puts a token on record: whoever shows it becomes the owner. @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, ERR_INVALID_ARGUMENT, the ledger's errors */
export function offer(site: Site, { uid, admittedAt }: PodAssignment): Promise<string> {
  return transact(site, undefined, async (state, commit) => {
    const pod = findPod(state, uid);
    if (!pod || pod.admittedAt !== admittedAt) throw unknownGrant(uid, state, site.ledger.path);
    checkReleasable(site, pod);
    if (pod.owner.kind !== 'process') {
      throw new NumalignError(
        'ERR_INVALID_ARGUMENT',
        `grant ${uid} belongs to no process: there is nothing to hand over`,
        {
          value: pod.owner.kind,
          valid: "a grant whose owner is 'process'",
        },
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
export interface Leaving<T> extends Vacate<T> {
  /** Whether nothing runs on the CPUs that could not leave. */
  canLeave(): boolean;
  /** Whether the token was taken back. */
  isWithdrawn(): boolean;
}

/** Waits until somebody has shown the token, and leaves: true. False where that cannot happen any more. */
export function handedOver<T>(
  site: Site,
  { uid, owner }: PodAssignment,
  token: string,
  leaving: Leaving<T>,
): Promise<boolean> {
  const { ledger, topology } = site;
  return until(ledger, undefined, () => {
    const pod = findPod(assignmentsOf(site, ledger.read()), uid);
    if (pod?.transfer === token) return undefined;
    // Taken by this very process it stays where it is.
    if (pod?.formerOwner !== owner.uuid) return pod?.owner.uuid === owner.uuid && !leaving.isWithdrawn();
    if (!leaving.canLeave()) return undefined;
    const handing = transact(site, undefined, async (state, commit) => {
      const moved = leaving.leave(sharedPool(state, onlineCpus(topology)));
      const now = findPod(state, uid);
      try {
        if (now) await commit(replacePod(state, { ...now, formerOwner: null }));
      } catch (error) {
        leaving.comeBack(moved);
        throw error;
      }
      return true;
    });
    // The successor waits for it: a lock that is held for long, or a full disk, must not be the end of it.
    return handing.catch(() => undefined);
  });
}

/**
 * Becomes the owner, and waits until the one before has left the CPUs.
 * @throws ERR_UNKNOWN_TRANSFER, the ledger's errors; the signal's reason, while the grant is another's
 */
export async function takeOver(site: Site, token: string, signal?: AbortSignal): Promise<PodAssignment> {
  const { ledger } = site;
  const { owners } = ledger;
  const { uid } = await transact(site, signal, async (state, commit) => {
    const offered = state.pods.find(({ transfer }) => transfer === token);
    if (!offered) {
      throw new NumalignError(
        'ERR_UNKNOWN_TRANSFER',
        `nobody hands a grant over by this token in ${ledger.path}: it was used or withdrawn, or its owner has ended`,
        { value: token },
      );
    }
    const owner = owners.recordFor('process');
    const formerOwner = owner.uuid === offered.owner.uuid ? null : offered.owner.uuid;
    const taken = { ...offered, owner, transfer: null, formerOwner };
    await commit(replacePod(state, taken));
    return taken;
  });
  return until(ledger, undefined, () => {
    const state = assignmentsOf(site, ledger.read());
    const pod = findPod(state, uid);
    if (!pod) throw unknownGrant(uid, state, ledger.path);
    return pod.formerOwner === null || !owners.isProcessAlive(pod.formerOwner) ? pod : undefined;
  });
}

// Transfer: passes a grant from one living process to another. It stays on record, and its CPUs are
// not free before the former owner has left them.
import { findPod } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { replacePod } from '../../account/pod-changes.js';
import { sharedPool } from '../../account/pools.js';
import { NumalignError } from '../../base/errors.js';
import { native } from '../../base/native.js';
import { until } from '../../state/until.js';
import { hasChild } from '../../threads/children.js';
import { leaveGrant } from '../../threads/vacate.js';
import { publishError } from '../diagnostics.js';
import type { Host } from '../host.js';
import { recordedState } from '../on-record.js';
import { transact } from '../transact.js';
import { heldGrant, unknownGrant } from './held-grant.js';

/** A grant that {@link Grant.transfer} hands over. */
export interface Transfer {
  /** For {@link Manager.takeOver}. Every process that has the token can take the grant. */
  readonly token: string;
  /**
   * Resolves with true when the successor has the grant and the threads of this process have left;
   * with false once no process can take it any more.
   */
  readonly accepted: Promise<boolean>;
  /** Withdraws the token. Resolves with false if it is too late. */
  cancel(): Promise<boolean>;
}

/**
 * Records a token. The process that presents it becomes the owner.
 * @throws ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, ERR_INVALID_ARGUMENT, the ledger's errors
 */
export function offer(host: Host, grant: PodAssignment): Promise<string> {
  return transact(host, undefined, async (state, commit) => {
    const pod = heldGrant(host, state, grant);
    if (pod.owner.kind !== 'process') {
      throw new NumalignError(
        'ERR_INVALID_ARGUMENT',
        `grant ${pod.uid} belongs to no process: there is nothing to hand over`,
        { value: pod.owner.kind, valid: "a grant whose owner is 'process'" },
      );
    }
    const transfer = native.randomUuid();
    await commit(replacePod(state, { ...pod, transfer }), true);
    return transfer;
  });
}

/** Withdraws the token. Resolves with false if it was used, or the grant has ended. */
export function withdraw(host: Host, { uid }: PodAssignment, token: string): Promise<boolean> {
  return transact(host, undefined, async (state, commit) => {
    const pod = findPod(state, uid);
    if (pod?.transfer !== token) return false;
    await commit(replacePod(state, { ...pod, transfer: null }), true);
    return true;
  });
}

// Tokens that this environment presents itself: such a grant keeps its owner.
const presentedTokens = () => new Set<string>();

// Returns undefined for an obstacle that may pass, such as a held lock or a full disk: the caller
// looks again, and the other process waits.
async function orLater<T>(look: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof NumalignError) || error.code === 'ERR_UNKNOWN_GRANT') throw error;
    return undefined;
  }
}

/**
 * Waits until a process presents the token, then leaves. Resolves with true then, and with false
 * once no process can present it any more.
 */
export function awaitSuccessor(host: Host, grant: PodAssignment, token: string): Promise<boolean> {
  const { ledger, topology } = host;
  const { uid, owner } = grant;
  const look = () => {
    const pod = findPod(recordedState(host), uid);
    if (pod?.transfer === token) return undefined;
    if (pod?.formerOwner !== owner.uuid) return ledger.registry.of(presentedTokens).delete(token);
    if (hasChild(ledger, uid)) return undefined;
    return transact(host, undefined, async (state, commit) => {
      const left = leaveGrant(host, state.settings, grant, sharedPool(state, cpusNow(topology)));
      const now = findPod(state, uid);
      try {
        if (now) await commit(replacePod(state, { ...now, formerOwner: null }));
      } catch (error) {
        left.comeBack();
        throw error;
      }
      try {
        host.enforcer.apply(state, left.threads);
      } catch (error) {
        // The CPUs belong to the successor. The next change gives threads what they had chosen.
        publishError(host, 'apply', error);
      }
      return true;
    });
  };
  return until(ledger, undefined, () => orLater(look));
}

/**
 * Becomes the owner, and waits until the former one has left the CPUs.
 * @throws ERR_UNKNOWN_TRANSFER, the ledger's errors; the signal's reason while another process has
 *   the grant, ERR_OWNER_ALIVE after that
 */
export async function takeOver(host: Host, token: string, signal?: AbortSignal): Promise<PodAssignment> {
  const { ledger } = host;
  const { owners } = ledger;
  let formerPid: number | null = null;
  const { uid } = await transact(host, signal, async (state, commit) => {
    const offered = state.pods.find(({ transfer }) => transfer === token);
    if (!offered) {
      throw new NumalignError(
        'ERR_UNKNOWN_TRANSFER',
        `there is no transfer by this token in ${ledger.path}: it was used or withdrawn, or its owner has ended; its owner's handOver() gives another`,
        { value: token },
      );
    }
    if (commit.refusal) throw commit.refusal;
    const owner = owners.recordFor('process');
    const isOwn = owner.uuid === offered.owner.uuid;
    formerPid = offered.owner.pid;
    // The former owner can no longer carry out what it announced.
    const owned = {
      ...offered,
      owner,
      transfer: null,
      formerOwner: isOwn ? null : offered.owner.uuid,
      upcoming: null,
      former: undefined,
    };
    // Noted before the commit, when others can see the change.
    if (isOwn) ledger.registry.of(presentedTokens).add(token);
    try {
      await commit(replacePod(state, owned));
    } catch (error) {
      ledger.registry.of(presentedTokens).delete(token);
      throw error;
    }
    return owned;
  });
  const look = () => {
    const state = recordedState(host);
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
      `grant ${uid} belongs to this process now, but the one that handed it over (process ${formerPid}) has not left its CPUs yet`,
      { value: uid, pid: formerPid, cause },
    );
  }
}

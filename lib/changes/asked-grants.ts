// AskedGrants: the grants that one request has asked to move, and their answers. A grant that has
// moved, refuses or does not answer is not asked again.
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Host } from '../admission/host.js';
import { NumalignError } from '../base/errors.js';
import type { Move } from '../decision/changes/move.js';
import type { UnmovedGrant } from '../decision/changes/repacking-report.js';
import { isPassing } from './answer.js';
import { type MoveRequest, moveGrant } from './move-grant.js';

// How often a grant is asked whose move fails for a reason that may pass.
const MOST_PASSING = 3;
// Each of them may take its whole notice to answer.
const MOST_UNMOVED = 8;

export class AskedGrants {
  readonly #moved = new Set<string>();
  readonly #unmoved = new Map<string, UnmovedGrant>();
  readonly #passing = new Map<string, number>();

  /** True if the grant may be asked. */
  mayAsk({ uid }: PodAssignment): boolean {
    return (
      this.#unmoved.size < MOST_UNMOVED &&
      !this.#moved.has(uid) &&
      !this.#unmoved.has(uid) &&
      (this.#passing.get(uid) ?? 0) < MOST_PASSING
    );
  }

  /** The grants that do not move. */
  get unmoved(): readonly UnmovedGrant[] {
    return [...this.#unmoved.values()];
  }

  /**
   * Asks the grant's owner to move it. True if it has moved.
   * @throws the signal's reason; the ledger's errors
   */
  async ask(host: Host, { uid, before, after }: Move, request: MoveRequest): Promise<boolean> {
    try {
      await moveGrant(host, uid, after, request);
      this.#moved.add(uid);
      return true;
    } catch (error) {
      request.signal?.throwIfAborted();
      if (!(error instanceof NumalignError) || !ANSWERS.includes(error.code)) throw error;
      const { code, details } = error;
      if (code === 'ERR_NOT_MOVED' && !isPassing(error))
        this.#unmoved.set(uid, { uid, name: before.name, code, reason: String(details.reason) });
      else this.#passing.set(uid, (this.#passing.get(uid) ?? 0) + 1);
      return false;
    }
  }
}

const ANSWERS = [
  'ERR_NOT_MOVED',
  'ERR_NOT_MOVABLE',
  'ERR_GRANT_BUSY',
  'ERR_UNKNOWN_GRANT',
  'ERR_INVALID_ARGUMENT',
];

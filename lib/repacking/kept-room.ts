// Kept room: what grants have left for a request, given back where the request does not get it.
import { withoutPlaceholder } from '../account/moves/move-steps.js';
import { publishError } from '../admission/diagnostics.js';
import { assignmentsOf } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import { releaseRoom } from '../moves/move-grant.js';

// The lock may be held for long, a disk full.
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 30_000;

/**
 * Gives it back, if there is any. Where that fails it is published, and tried again later: the room is
 * this process's, and free once it ends. So it is while a grant is on its way that nobody waits for any
 * more: what that leaves is kept until it has left.
 */
export async function giveBackRoom(site: Site, request: string, pauseMs = PAUSE_MS): Promise<void> {
  try {
    const state = assignmentsOf(site, site.ledger.read());
    if (withoutPlaceholder(state, request) === state || (await releaseRoom(site, request))) return;
  } catch (error) {
    publishError(site, 'apply', error);
    if (pauseMs === LONGEST_PAUSE_MS) return;
  }
  const nextMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
  setTimeout(giveBackRoom, pauseMs, site, request, nextMs).unref();
}

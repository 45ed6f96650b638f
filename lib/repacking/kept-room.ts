// Kept room: what grants have left for a request, given back where the request does not get it.
import { withoutPlaceholder } from '../account/moves/move-steps.js';
import { assignmentsOf } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import { releaseRoom } from '../moves/move-grant.js';
import { retry } from '../moves/retry.js';

/**
 * Gives it back, if there is any. Where that fails it is tried again later: the room is this process's,
 * and free once it ends.
 */
export function giveBackRoom(site: Site, request: string): Promise<void> {
  return retry(site, async () => {
    const state = assignmentsOf(site, site.ledger.read());
    if (withoutPlaceholder(state, request) !== state) await releaseRoom(site, request);
  });
}

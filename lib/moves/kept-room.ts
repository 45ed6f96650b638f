// Kept room: what grants have left for a request, given back where the request does not get it.
import { withoutPlaceholder } from '../account/moves/move-steps.js';
import { assignmentsOf } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import { releaseRoom } from './move-grant.js';
import { retry } from './retry.js';

/**
 * Gives it back, if there is any. Where that fails it is tried again later: the room is this process's,
 * and free once it ends. So it is while a grant is on its way that nobody waits for any more: what that
 * leaves is kept until it has left.
 */
export function giveBackRoom(site: Site, request: string): Promise<void> {
  return retry(site, async () => {
    const state = assignmentsOf(site, site.ledger.read());
    return withoutPlaceholder(state, request) === state || releaseRoom(site, request);
  });
}

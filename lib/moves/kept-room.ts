// Kept room: gives back what grants have left for a request that does not get it.
import { withoutPlaceholder } from '../account/moves/move-steps.js';
import { publishError } from '../admission/diagnostics.js';
import { assignmentsOf } from '../admission/on-record.js';
import type { Site } from '../admission/site.js';
import { retry } from '../base/notices/backoff.js';
import { releaseRoom } from './move-grant.js';

/**
 * Gives the room of a request back, if there is any. If that fails, or a grant is still moving for
 * the request, tries again later. The room belongs to this process, so it becomes free when the
 * process ends.
 */
export function giveBackRoom(site: Site, request: string): Promise<void> {
  const release = async () => {
    const state = assignmentsOf(site, site.ledger.read());
    return withoutPlaceholder(state, request) === state || releaseRoom(site, request);
  };
  return retry(release, { onError: (error) => publishError(site, 'apply', error) });
}

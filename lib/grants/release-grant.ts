// releaseGrant: gives a grant on record back.
import type { PodAssignment } from '../account/pod-assignment.js';
import { vacateGrant, whileEnding } from '../admission/grants/grant-record.js';
import { release } from '../admission/grants/release.js';
import { tracedRelease } from '../admission/grants/traced.js';
import type { Site } from '../admission/site.js';
import type { PinResult } from '../machine/affinity.js';
import { checkNoChild } from '../threads/children.js';
import { endGrant } from './grant-end.js';

/**
 * Releases a grant on record, unless a child of this process runs on it.
 * @throws ERR_CHILD_ALIVE, and as release of the Topology Manager
 */
export async function releaseGrant(site: Site, pod: PodAssignment): Promise<PinResult> {
  checkNoChild(site.ledger, pod, 'released');
  const give = () => whileEnding(site, pod, () => release(site, pod, vacateGrant(site, pod)));
  const result = await tracedRelease(site, pod, give);
  endGrant(site, pod);
  return result;
}

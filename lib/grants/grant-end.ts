// What follows the end of a grant in this environment, however it ends.
import type { PodAssignment } from '../account/pod-assignment.js';
import type { Site } from '../admission/site.js';
import { endAudit } from '../audit/grant-audits.js';
import { dropListeners } from '../moves/move-event.js';
import { forgetBuffers } from '../threads/buffers.js';

type Place = Pick<Site, 'topology' | 'ledger'>;

// By grant, whichever object ends it.
const actions = () => new Map<string, () => void>();

/** Has `action` called once, when the grant is no longer this environment's. */
export function onGrantEnd({ ledger }: Place, uid: string, action: () => void): void {
  ledger.registry.of(actions).set(uid, action);
}

/** To be called when a grant is no longer this environment's. */
export function endGrant(place: Place, pod: Pick<PodAssignment, 'uid'>): void {
  endAudit(place, pod);
  forgetBuffers(pod.uid);
  dropListeners(place.ledger, pod.uid);
  const all = place.ledger.registry.of(actions);
  const action = all.get(pod.uid);
  all.delete(pod.uid);
  action?.();
}

// Admit with room: a request that finds none asks grants that shrink by themselves for it.
import { randomUUID } from 'node:crypto';
import { type Admission, admit } from '../admission/admit.js';
import { publishError } from '../admission/diagnostics.js';
import type { Site } from '../admission/site.js';
import type { AdmissionRequest } from '../input/request.js';
import { Room } from './room.js';

/** As {@link admit}. */
export async function admitWithRoom(
  site: Site,
  asked: AdmissionRequest,
  signal: AbortSignal | undefined,
): Promise<Admission> {
  const uid = asked.pod.uid ?? randomUUID();
  const request = asked.pod.uid === undefined ? { ...asked, roomUid: uid } : asked;
  const room = new Room(site, request, uid, signal);
  try {
    return await admit(site, request, signal, () => room.make());
  } catch (error) {
    // What went wrong first is what the caller must hear of. The end of this process frees it as well.
    await room.release().catch((failure) => publishError(site, 'apply', failure));
    throw error;
  }
}

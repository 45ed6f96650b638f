// Ownership: a grant gets an owner that outlives this process, in one step for all others.
import type { CgroupIdentity, OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { replacePod } from '../../account/pod-changes.js';
import type { LastingOwner } from '../../input/request.js';
import type { Site } from '../site.js';
import { transact } from '../transact.js';
import { heldGrant } from './held-grant.js';

/**
 * Records another owner; answers the pod as it is now. What is announced of a transfer is off: there
 * is no process any more that could leave.
 * @throws ERR_INVALID_OPTION, ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, the ledger's errors
 */
export function setOwner(site: Site, grant: PodAssignment, choice: LastingOwner): Promise<PodAssignment> {
  return transact(site, undefined, async (state, commit) => {
    const pod = heldGrant(site, state, grant);
    const owner = site.ledger.owners.recordFor(choice);
    if (isSameOwner(owner, pod.owner)) return pod;
    const owned = { ...pod, owner, transfer: null };
    await commit(replacePod(state, owned), true);
    return owned;
  });
}

// Each record has another uuid.
const isSameOwner = (a: OwnerRecord, b: OwnerRecord) =>
  a.kind === b.kind && keyOf(a.cgroup) === keyOf(b.cgroup);

const keyOf = (cgroup: CgroupIdentity | null) => cgroup && `${cgroup.device}:${cgroup.inode}`;

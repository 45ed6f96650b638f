// Ownership: gives a grant to an owner that outlives this process.
import type { Assignments } from '../../account/assignments.js';
import type { CgroupIdentity, OwnerRecord, PodAssignment } from '../../account/pod-assignment.js';
import { removePods, replacePod } from '../../account/pod-changes.js';
import type { LastingOwner } from '../../input/requests/owner.js';
import type { Site } from '../site.js';
import { type EnforcedCommit, FEW_CGROUPS, transact } from '../transact.js';
import { heldGrant, unknownGrant } from './held-grant.js';

/**
 * Records another owner, and returns the pod with it. It withdraws an offered transfer: there is no
 * process any more that could hand the grant over.
 * @throws ERR_INVALID_OPTION, ERR_UNKNOWN_GRANT, ERR_OWNER_ALIVE, the ledger's errors
 */
export function setOwner(site: Site, grant: PodAssignment, choice: LastingOwner): Promise<PodAssignment> {
  const { ledger } = site;
  const change = async (state: Assignments, commit: EnforcedCommit) => {
    const pod = heldGrant(site, state, grant);
    // This step has not checked all owners.
    if (!ledger.owners.isAlive(pod.owner))
      throw unknownGrant(pod.uid, removePods(state, new Set([pod.uid])), ledger.path);
    const owner = ledger.owners.recordFor(choice);
    if (isSameOwner(owner, pod.owner)) return pod;
    const owned = { ...pod, owner, transfer: null };
    await commit(replacePod(state, owned), true);
    return owned;
  };
  return transact(site, undefined, change, FEW_CGROUPS);
}

// It ignores the uuids, which always differ.
const isSameOwner = (a: OwnerRecord, b: OwnerRecord) =>
  a.kind === b.kind && keyOf(a.cgroup) === keyOf(b.cgroup);

const keyOf = (cgroup: CgroupIdentity | null) => cgroup && `${cgroup.device}:${cgroup.inode}`;

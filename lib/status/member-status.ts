// MemberStatus: the shared members of a status.
import { join } from 'node:path';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { NativeFolder } from '../base/native-files.js';
import { memberOf } from '../enforcement/members/shared-member.js';
import { SharedMembers } from '../enforcement/members/shared-members.js';
import { withChild } from '../state/read-only-store.js';
import type { MemberStatus } from './status.js';

/** All members that are registered in a state folder. `pods`: the grants on record. */
export function membersIn(
  folder: NativeFolder,
  path: string,
  pods: readonly PodAssignment[],
): MemberStatus[] {
  const found = withChild(folder, 'members', (members) =>
    members ? new SharedMembers(members, join(path, 'members')).registry.look() : [],
  );
  return found.map(({ entry }) => {
    const member = memberOf(entry);
    if (member.kind === 'cgroup' || entry.kind === 'cgroup') return member as MemberStatus;
    const isThere = pods.some(({ uid }) => uid === entry.grant);
    return { ...member, grant: isThere ? entry.grant : null, container: isThere ? entry.container : null };
  });
}

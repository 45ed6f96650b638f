// StateReading: what a state says, before it is compared with the machine.
import { join } from 'node:path';
import type { PodAssignment } from '../account/pod-assignment.js';
import type { ReadOnlyHost } from '../admission/host.js';
import { currentCheckpoint } from '../admission/on-record.js';
import type { NativeFolder } from '../base/native-files.js';
import { totalsOf } from '../decision/memory/memory-tables.js';
import { memberOf } from '../enforcement/members/shared-member.js';
import { SharedMembers } from '../enforcement/members/shared-members.js';
import { isLocked, isOfBoot } from '../state/files/owner-claims.js';
import { type FoundState, findState, STATE_FILE } from '../state/files/state-files.js';
import { withChild, withExisting } from '../state/folder/existing.js';
import { readBootId } from '../state/folder/folder.js';
import { explaining } from '../state/folder/folder-error.js';
import type { Checkpoint } from '../state/format/checkpoint.js';
import { deadPods, recovered } from '../state/read-only-store.js';
import { type Waiter, waitersIn } from '../state/wait-queue.js';
import type { MemberStatus, StateStatus } from './status.js';

/** What a state says, before it is compared with the machine. */
export interface StateReading extends Pick<StateStatus, 'exists' | 'isOfEarlierBoot' | 'damage'> {
  readonly checkpoint: Checkpoint;
  readonly isAlive: (pod: PodAssignment) => boolean;
  /** Whether the process (or Worker) with this owner file lives. */
  readonly isProcessAlive: (uuid: string) => boolean;
  readonly members: readonly MemberStatus[];
  readonly waiting: readonly Waiter[];
}

/** The reading of a folder; undefined if there is none, or no state in it. */
export function readingIn({ ledger, topology }: ReadOnlyHost): StateReading | undefined {
  const { path } = ledger;
  return withExisting(path, (folder) =>
    explaining(path, () => folder && readFolder(folder, ledger, topology)),
  );
}

/**
 * The reading without a folder: a state in memory, or the one that the first opener of a folder
 * would find.
 */
export function readingWithout(host: ReadOnlyHost): StateReading {
  const { ledger } = host;
  const checkpoint = currentCheckpoint(host);
  const dead = new Set(ledger.owners.deadPods(checkpoint.assignments.pods));
  const isAlive = (pod: PodAssignment) => !dead.has(pod);
  const nothing = { damage: null, isOfEarlierBoot: false, members: [], waiting: [] };
  const isProcessAlive = (uuid: string) => ledger.owners.isProcessAlive(uuid);
  const exists = ledger.scope === 'memory' || checkpoint.generation > 0;
  return { ...nothing, exists, checkpoint, isAlive, isProcessAlive };
}

function readFolder(
  folder: NativeFolder,
  ledger: ReadOnlyHost['ledger'],
  topology: ReadOnlyHost['topology'],
) {
  for (;;) {
    const version = folder.version(STATE_FILE);
    const found = findState(folder, STATE_FILE, ledger.found);
    const answer = withChild(folder, 'owners', (owners): StateReading | undefined => {
      const checkpoint =
        found.kind === 'good' ? found.checkpoint : recovered(folder, found, owners, totalsOf(topology));
      if (!checkpoint) return undefined;
      const { pods, kubelet } = checkpoint.assignments;
      const dead = new Set(deadPods(owners, pods));
      // Read while the folder is open.
      const isKept = kubelet !== null && owners !== undefined && isLocked(owners, kubelet.keeper.uuid);
      return {
        exists: true,
        isOfEarlierBoot: !isOfBoot(checkpoint.bootId, readBootId(), owners),
        damage: damageOf(found),
        checkpoint,
        isAlive: (pod) => !dead.has(pod),
        isProcessAlive: (uuid) => isKept && uuid === kubelet.keeper.uuid,
        members: membersIn(folder, ledger.path, pods),
        waiting: withChild(folder, 'waiting', (waiting) => (waiting ? waitersIn(waiting) : [])),
      };
    });
    // A grant that is released in the meantime must not look like one whose owner died.
    if (folder.version(STATE_FILE) === version) return answer;
  }
}

function damageOf(found: FoundState): string | null {
  if (found.kind === 'good') return null;
  return found.kind === 'missing' ? `there is no ${STATE_FILE}` : found.why;
}

/** All members that are registered in a state folder. `pods`: the grants on record. */
function membersIn(folder: NativeFolder, path: string, pods: readonly PodAssignment[]): MemberStatus[] {
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

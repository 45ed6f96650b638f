// Reads a StateStatus. Only looks: nothing is made, locked or changed.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Assignments } from '../account/assignments.js';
import { cpusNow } from '../account/cpus-now.js';
import type { PodAssignment } from '../account/pod-assignment.js';
import { withoutPods } from '../account/pod-changes.js';
import { freeCpus, sharedPool } from '../account/pools.js';
import { podContainer } from '../admission/plan.js';
import { currentCheckpoint, type ReadOnlySite } from '../admission/site.js';
import { lapsedGrants, settingWarnings } from '../admission/warnings.js';
import type { NativeFolder } from '../base/native-files.js';
import { encodeName } from '../cgroups/files/cgroup-path.js';
import { flagsOf } from '../decision/flags.js';
import { grantInfo } from '../decision/grant-info.js';
import { settingsNow } from '../decision/machine-settings.js';
import { memoryTables, totalsOf } from '../decision/memory-tables.js';
import { ALL_CONTAINERS } from '../enforcement/layout/layout.js';
import { told } from '../enforcement/members/confinement.js';
import { survivorsOf } from '../enforcement/members/descent.js';
import { SharedMembers } from '../enforcement/members/shared-members.js';
import type { Checkpoint } from '../state/files/checkpoint.js';
import { type FoundState, findState, isOfBoot, STATE_FILE } from '../state/files/state-files.js';
import { explaining, readBootId } from '../state/folder.js';
import { isPodAlive, openExisting, recovered, withChild } from '../state/read-only-store.js';
import { type Waiter, waitersIn } from '../state/wait-queue.js';
import type { GrantCgroup, GrantStatus, MemberStatus, StateStatus } from './status.js';

/** What a state says, before it is held against the machine. */
interface Found extends Pick<StateStatus, 'exists' | 'isOfEarlierBoot' | 'damage'> {
  readonly checkpoint: Checkpoint;
  readonly isAlive: (pod: PodAssignment) => boolean;
  readonly members: readonly MemberStatus[];
  readonly waiting: readonly Waiter[];
}

/**
 * What the state of a site says now. The file is read anew, whatever is known of it: where it is
 * damaged, what can be told of it.
 * @throws ERR_STATE_FOLDER where the folder is there but closed to us, ERR_STATE_CORRUPT where
 *   nothing can be told, ERR_STATE_VERSION
 */
export function readStatus(site: ReadOnlySite): StateStatus {
  return statusOf(site, (site.ledger.scope !== 'memory' && findIn(site)) || nothingFound(site));
}

function findIn({ ledger: { path }, topology }: ReadOnlySite): Found | undefined {
  const folder = openExisting(path);
  if (!folder) return undefined;
  try {
    return explaining(path, () => readFolder(folder, path, topology));
  } finally {
    folder.close();
  }
}

// A state in memory, or the one that the first opener of a folder would find.
function nothingFound(site: ReadOnlySite): Found {
  const { ledger } = site;
  const checkpoint = currentCheckpoint(site);
  const dead = new Set(ledger.owners.deadPods(checkpoint.assignments.pods));
  const isAlive = (pod: PodAssignment) => !dead.has(pod);
  const nothing = { damage: null, isOfEarlierBoot: false, members: [], waiting: [] };
  return { ...nothing, exists: ledger.scope === 'memory', checkpoint, isAlive };
}

function readFolder(folder: NativeFolder, path: string, topology: ReadOnlySite['topology']) {
  for (;;) {
    const version = folder.version(STATE_FILE);
    const found = findState(folder, STATE_FILE);
    const answer = withChild(folder, 'owners', (owners): Found | undefined => {
      const checkpoint =
        found.kind === 'good' ? found.checkpoint : recovered(folder, found, owners, totalsOf(topology));
      if (!checkpoint) return undefined;
      const { pods } = checkpoint.assignments;
      const alive = new Set(pods.filter((pod) => isPodAlive(owners, pod)));
      return {
        exists: true,
        isOfEarlierBoot: !isOfBoot(checkpoint.bootId, readBootId(), owners),
        damage: damageOf(found),
        checkpoint,
        isAlive: (pod) => alive.has(pod),
        members: membersIn(folder, path, pods),
        waiting: withChild(folder, 'waiting', (waiting) => (waiting ? waitersIn(waiting) : [])),
      };
    });
    // A grant that is released meanwhile must not look like one whose owner died.
    if (folder.version(STATE_FILE) === version) return answer;
  }
}

function damageOf(found: FoundState): string | null {
  if (found.kind === 'good') return null;
  return found.kind === 'missing' ? `there is no ${STATE_FILE}` : found.why;
}

function membersIn(folder: NativeFolder, path: string, pods: readonly PodAssignment[]): MemberStatus[] {
  const found = withChild(folder, 'members', (members) =>
    members ? new SharedMembers(members, join(path, 'members')).registry.look() : [],
  );
  return found.map(({ entry }) => {
    const member = told(entry);
    if (member.kind === 'cgroup' || entry.kind === 'cgroup') return member as MemberStatus;
    const isThere = pods.some(({ uid }) => uid === entry.grant);
    return { ...member, grant: isThere ? entry.grant : null, container: isThere ? entry.container : null };
  });
}

function statusOf(site: ReadOnlySite, found: Found): StateStatus {
  const { ledger, topology } = site;
  const { exists, isOfEarlierBoot, damage, checkpoint, members, waiting } = found;
  const { generation, assignments, refusal } = checkpoint;
  const state = isOfEarlierBoot ? withoutPods(assignments) : assignments;
  const present = cpusNow(topology, state.pods);
  const { managedCPUs, isolatedCPUs } = state.settings;
  return {
    stateDir: ledger.scope === 'memory' ? '' : ledger.path,
    ...{ scope: ledger.scope, exists, generation, isOfEarlierBoot },
    settings: {
      ...settingsNow(state.settings, present),
      managesAll: managedCPUs === null,
      isolatedByKernel: isolatedCPUs === null,
    },
    sharedPool: sharedPool(state, present),
    free: freeCpus(state, present),
    freeIsolated: freeCpus(state, present, 'isolated'),
    memory: memoryTables(state, topology),
    grants: grantsOf(site, state, present, found.isAlive),
    sharedMembers: members,
    waiting,
    damage,
    refusal: refusal ?? null,
    lapsed: isOfEarlierBoot ? lapsedGrants(assignments) : [],
    warnings: settingWarnings(state, topology, present.online),
  };
}

function grantsOf(
  { topology, resources }: ReadOnlySite,
  state: Assignments,
  present: ReturnType<typeof cpusNow>,
  isAlive: Found['isAlive'],
): GrantStatus[] {
  const survivors = survivorsOf(state.pods.map(({ owner }) => owner));
  return state.pods.map((pod) => ({
    ...grantInfo(pod, topology, isAlive(pod), flagsOf(pod, state, topology, resources, present), present),
    containers: pod.containers.map(podContainer),
    survivors: survivors.get(pod.owner.uuid) ?? [],
    cgroups: cgroupsOf(pod),
  }));
}

// Beside the one on record, which is that of the first.
function cgroupsOf({ uid, containers, enforcement: { target } }: PodAssignment): GrantCgroup[] {
  if (target === null) return [];
  const of = (container: string | null) => {
    const path = join(dirname(target), encodeName(`${uid}/${container ?? ALL_CONTAINERS}`));
    return { container, path, isMade: existsSync(path) };
  };
  const all = of(null);
  return [
    ...containers.filter(({ cpus }) => !cpus.isEmpty).map(({ name }) => of(name)),
    ...(all.isMade ? [all] : []),
  ];
}

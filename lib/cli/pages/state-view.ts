// What a state folder says, for looking only: nothing is created, locked or changed. (Opening a
// manager makes the folder and drops the grants of dead owners.)
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Assignments, removePods, withoutPods } from '../../account/assignments.js';
import { cpusNow } from '../../account/cpus-now.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { type CpuSnapshot, freeCpus, isolatedPool, sharedPool, universe } from '../../account/pools.js';
import { podContainer } from '../../admission/plan.js';
import { lapsedGrants, settingWarnings } from '../../admission/warnings.js';
import { NumalignError } from '../../base/errors.js';
import type { NativeFolder } from '../../base/native-files.js';
import { encodeName } from '../../cgroups/files/cgroup-path.js';
import { flagsOf } from '../../decision/flags.js';
import { grantInfo } from '../../decision/grant-info.js';
import { memoryTables, totalsOf } from '../../decision/memory-tables.js';
import { ALL_CONTAINERS } from '../../enforcement/layout/layout.js';
import { told } from '../../enforcement/members/confinement.js';
import { type Survivor, survivorsOf } from '../../enforcement/members/descent.js';
import type { ProcessEntry } from '../../enforcement/members/member-entry.js';
import { SharedMembers } from '../../enforcement/members/shared-members.js';
import type { LapsedGrant } from '../../entries/diagnostics.js';
import type { Topology } from '../../entries/topology.js';
import type { CpuSet, GrantInfo, MemoryTable, PodContainer, SharedMember, Warning } from '../../index.js';
import { MACHINE_STATE_DIR } from '../../input/config.js';
import type { Checkpoint } from '../../state/files/checkpoint.js';
import { type FoundState, findState, isOfBoot, STATE_FILE } from '../../state/files/state-files.js';
import { explaining, readBootId, scopeOf } from '../../state/folder.js';
import { childOf, isPodAlive, openExisting, recovered } from '../../state/read-only-store.js';
import { type Waiter, waitersIn } from '../../state/wait-queue.js';

export interface GrantView extends GrantInfo {
  readonly containers: readonly PodContainer[];
  /** Where the owner has ended or given it up: the processes that keep it. */
  readonly survivors: readonly Survivor[];
  /**
   * The cgroups of its containers with exclusive CPUs, and that of all containers where there is
   * one.
   */
  readonly cgroups: readonly GrantCgroup[];
}

export interface GrantCgroup {
  /** null: all of them. */
  readonly container: string | null;
  readonly path: string;
  /** It is made when something is to run in it. */
  readonly isMade: boolean;
}

/** A shared member; of a process also where it was attached, while there is that grant. */
export type MemberView =
  | Extract<SharedMember, { kind: 'cgroup' }>
  | (Extract<SharedMember, { kind: 'process' }> & Pick<ProcessEntry, 'grant' | 'container'>);

export interface StateView {
  readonly stateDir: string;
  readonly scope: 'machine' | 'private';
  readonly generation: number;
  /**
   * What is wrong with the state's file, if anything: then this is what the next transaction makes
   * of what is left.
   */
  readonly damage: string | null;
  /**
   * Why nothing can be granted, if so: ERR_STATE_CORRUPT, ERR_STATE_VERSION. What is free is not
   * known then.
   */
  readonly refusal: NumalignError | null;
  /** Written before the machine was started: its grants are void and left out here. */
  readonly isOfEarlierBoot: boolean;
  /** Those of them that are persistent. */
  readonly lapsed: readonly LapsedGrant[];
  /**
   * As decisions look at it: what grants on record have isolated, those of dead owners too, is not
   * the kernel's.
   */
  readonly present: CpuSnapshot;
  /** Every online CPU is managed, not a list of them. */
  readonly managesAll: boolean;
  readonly managed: CpuSet;
  readonly reserved: CpuSet;
  /** Reserved CPUs are kept out of the shared pool too. */
  readonly strict: boolean;
  /**
   * The isolated pool, granted or not; and whether it is what the kernel isolates, not a list of
   * CPUs.
   */
  readonly isolated: CpuSet;
  readonly isolatedByKernel: boolean;
  readonly sharedPool: CpuSet;
  readonly free: CpuSet;
  readonly freeIsolated: CpuSet;
  readonly memory: readonly MemoryTable[];
  readonly grants: readonly GrantView[];
  readonly sharedMembers: readonly MemberView[];
  /** The next first. */
  readonly waiting: readonly Waiter[];
  /** What the settings name and the machine does not have at present. */
  readonly warnings: readonly Warning[];
  /** What an admission would find: without the grants of dead owners. */
  readonly assignments: Assignments;
}

/**
 * The state in a folder, undefined where there is none. Where its file is damaged, what can be told
 * of it.
 * @throws ERR_STATE_FOLDER where the folder is there but closed to us, ERR_STATE_CORRUPT where
 *   nothing can be told, ERR_STATE_VERSION
 */
export function readState(stateDir: string, topology: Topology): StateView | undefined {
  const folder = openExisting(stateDir);
  return folder && explaining(stateDir, () => readFolder(folder, stateDir, topology));
}

/**
 * The same where the folder was given. What there is to see beside the state of the machine is
 * shown also to those to whom that is closed: then `closed` says why.
 * @throws as {@link readState}
 */
export function lookAt(
  stateDir: string | undefined,
  topology: Topology,
): { readonly view?: StateView | undefined; readonly closed?: string } {
  try {
    return { view: readState(stateDir ?? MACHINE_STATE_DIR, topology) };
  } catch (error) {
    if (stateDir !== undefined || !(error instanceof NumalignError) || error.code !== 'ERR_STATE_FOLDER')
      throw error;
    return { closed: error.message };
  }
}

function readFolder(folder: NativeFolder, stateDir: string, topology: Topology): StateView | undefined {
  for (;;) {
    const version = folder.version(STATE_FILE);
    const found = findState(folder, STATE_FILE);
    const owners = childOf(folder, 'owners');
    const checkpoint =
      found.kind === 'good' ? found.checkpoint : recovered(folder, found, owners, totalsOf(topology));
    const view = checkpoint && viewOf(stateDir, checkpoint, topology, folder, damageOf(found));
    // A grant that is released meanwhile must not look like one whose owner died.
    if (folder.version(STATE_FILE) === version) return view;
  }
}

function damageOf(found: FoundState): string | null {
  if (found.kind === 'good') return null;
  return found.kind === 'missing' ? `there is no ${STATE_FILE}` : found.why;
}

function membersOf(
  folder: NativeFolder,
  stateDir: string,
  pods: readonly PodAssignment[],
): readonly MemberView[] {
  const members = childOf(folder, 'members');
  const found = members ? new SharedMembers(members, join(stateDir, 'members')).registry.look() : [];
  return found.map(({ entry }) => {
    const member = told(entry);
    if (member.kind === 'cgroup' || entry.kind === 'cgroup') return member as MemberView;
    const isThere = pods.some(({ uid }) => uid === entry.grant);
    return { ...member, grant: isThere ? entry.grant : null, container: isThere ? entry.container : null };
  });
}

function waitersOf(folder: NativeFolder): readonly Waiter[] {
  const waiting = childOf(folder, 'waiting');
  return waiting ? waitersIn(waiting) : [];
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

function viewOf(
  stateDir: string,
  { generation, bootId, assignments, refusal }: Checkpoint,
  topology: Topology,
  folder: NativeFolder,
  damage: string | null,
): StateView {
  const owners = childOf(folder, 'owners');
  const isOfEarlierBoot = !isOfBoot(bootId, readBootId(), owners);
  const state: Assignments = isOfEarlierBoot ? withoutPods(assignments) : assignments;
  const { settings } = state;
  const present = cpusNow(topology, state.pods);
  const survivors = survivorsOf(state.pods.map(({ owner }) => owner));
  const grants = state.pods.map((pod) => {
    const alive = isPodAlive(owners, pod);
    // Nobody has registered devices here.
    const flags = flagsOf(pod, state, topology, new Map(), present);
    return {
      ...grantInfo(pod, topology, alive, flags, present),
      containers: pod.containers.map(podContainer),
      survivors: survivors.get(pod.owner.uuid) ?? [],
      cgroups: cgroupsOf(pod),
    };
  });
  const dead = grants.filter((grant) => !grant.alive).map((grant) => grant.uid);
  return {
    stateDir,
    scope: scopeOf(stateDir),
    generation,
    damage,
    refusal: refusal ?? null,
    isOfEarlierBoot,
    lapsed: isOfEarlierBoot ? lapsedGrants(assignments) : [],
    present,
    managesAll: settings.managedCPUs === null,
    managed: universe(settings, present),
    reserved: settings.reservedSystemCPUs,
    strict: settings.strictCPUReservation,
    sharedPool: sharedPool(state, present),
    isolated: isolatedPool(settings, present),
    isolatedByKernel: settings.isolatedCPUs === null,
    free: freeCpus(state, present),
    freeIsolated: freeCpus(state, present, 'isolated'),
    memory: memoryTables(state, topology),
    grants,
    sharedMembers: membersOf(folder, stateDir, state.pods),
    waiting: waitersOf(folder),
    warnings: settingWarnings(state, topology, present.online),
    assignments: removePods(state, new Set(dead)),
  };
}

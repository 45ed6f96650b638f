// What a state folder says, for looking only: nothing is created, locked or changed. (Opening a manager makes the folder and drops the
// grants of dead owners.)
import type { CpuSet } from '../cpu-set.js';
import { NumalignError } from '../errors.js';
import { type GrantInfo, grantInfo } from '../grant-info.js';
import { flagsOf } from '../managers/flags.js';
import { type MemoryTable, memoryTables } from '../managers/memory-manager.js';
import { type PodContainer, podContainer } from '../managers/plan.js';
import { type LapsedGrant, lapsedGrants, settingWarnings, type Warning } from '../managers/warnings.js';
import { type NativeFolder, native } from '../native.js';
import { type Assignments, freeCpus, removePods, sharedPool, universe, withoutPods } from '../state/assignments.js';
import { decodeCheckpoint } from '../state/checkpoint.js';
import { PREVIOUS_FILE, readBootId, STATE_FILE, scopeOf } from '../state/ledger.js';
import type { Topology } from '../topology.js';

export interface GrantView extends GrantInfo {
  readonly containers: readonly PodContainer[];
}

export interface StateView {
  readonly stateDir: string;
  readonly scope: 'machine' | 'private';
  readonly generation: number;
  /** Written before the machine was started: its grants are void and left out here. */
  readonly isOfEarlierBoot: boolean;
  /** Those of them that are persistent. */
  readonly lapsed: readonly LapsedGrant[];
  /** Every online CPU is managed, not a list of them. */
  readonly managesAll: boolean;
  readonly managed: CpuSet;
  readonly reserved: CpuSet;
  /** Reserved CPUs are kept out of the shared pool too. */
  readonly strict: boolean;
  readonly sharedPool: CpuSet;
  readonly free: CpuSet;
  readonly memory: readonly MemoryTable[];
  readonly grants: readonly GrantView[];
  /** What the settings name and the machine does not have at present. */
  readonly warnings: readonly Warning[];
  /** What an admission would find: without the grants of dead owners. */
  readonly assignments: Assignments;
}

/** The folder, undefined where there is none. @throws ERR_STATE_FOLDER, ERR_SYSCALL */
export function openExisting(path: string): NativeFolder | undefined {
  try {
    return native.Folder.open(path, false, 0o700, -1);
  } catch (error) {
    if (!(error instanceof NumalignError) || error.code !== 'ERR_SYSCALL') throw error;
    if (error.errnoName === 'ENOENT') return undefined;
    const reason =
      error.errnoName === 'ENOTDIR' || error.errnoName === 'ELOOP' ? 'it is a link or no folder' : error.message;
    throw new NumalignError('ERR_STATE_FOLDER', `the state folder ${path} cannot be read: ${reason}`, {
      value: path,
      cause: error,
    });
  }
}

/** A folder in it, undefined where there is none. */
export function childOf(folder: NativeFolder, name: string): NativeFolder | undefined {
  try {
    return folder.child(name, false, 0o700, -1);
  } catch (error) {
    if (error instanceof NumalignError && error.errnoName === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * The state in a folder, undefined where there is none.
 * @throws ERR_STATE_FOLDER where the folder is there but closed to us, ERR_STATE_CORRUPT, ERR_STATE_VERSION
 */
export function readState(stateDir: string, topology: Topology): StateView | undefined {
  const folder = openExisting(stateDir);
  if (!folder) return undefined;
  for (;;) {
    const version = folder.version(STATE_FILE);
    const bytes = folder.read(STATE_FILE);
    if (!bytes) {
      if (folder.version(PREVIOUS_FILE) === undefined) return undefined;
      throw new NumalignError('ERR_STATE_CORRUPT', `${stateDir} has a state.prev.json but no state.json`, {
        value: stateDir,
      });
    }
    const view = viewOf(stateDir, bytes, topology, folder);
    // A grant that is released meanwhile must not look like one whose owner died.
    if (folder.version(STATE_FILE) === version) return view;
  }
}

function viewOf(stateDir: string, bytes: Buffer, topology: Topology, folder: NativeFolder): StateView {
  const { generation, bootId, assignments } = decodeCheckpoint(bytes);
  const isOfEarlierBoot = bootId !== readBootId();
  const state: Assignments = isOfEarlierBoot ? withoutPods(assignments) : assignments;
  const { settings } = state;
  const owners = childOf(folder, 'owners');
  const grants = state.pods.map((pod) => {
    const { kind, uuid } = pod.owner;
    const alive = kind !== 'process' || (owners?.isOwnerAlive(uuid) ?? false);
    // Nobody has registered devices here.
    const flags = flagsOf(pod, state, topology, new Map());
    return { ...grantInfo(pod, topology, alive, flags), containers: pod.containers.map(podContainer) };
  });
  const dead = grants.filter((grant) => !grant.alive).map((grant) => grant.id);
  return {
    stateDir,
    scope: scopeOf(stateDir),
    generation,
    isOfEarlierBoot,
    lapsed: isOfEarlierBoot ? lapsedGrants(assignments) : [],
    managesAll: settings.managedCPUs === null,
    managed: universe(settings, topology.cpus),
    reserved: settings.reservedSystemCPUs,
    strict: settings.strictCPUReservation,
    sharedPool: sharedPool(state, topology.cpus),
    free: freeCpus(state, topology.cpus),
    memory: memoryTables(state, topology),
    grants,
    warnings: settingWarnings(state, topology, topology.cpus),
    assignments: removePods(state, new Set(dead)),
  };
}

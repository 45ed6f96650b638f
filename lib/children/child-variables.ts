// ChildVariables: the environment variables of a program on a grant.
import type { DeviceAssignment } from '../account/pod-assignment.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';

/**
 * The uid of the grant, its CPUs and NUMA nodes as lists (`0-1,4`), its device ids by resource as a
 * JSON object, and its state folder. NUMALIGN_GRANT tells `numalign/preload` which grant to use.
 */
export interface ChildVariables {
  readonly NUMALIGN_GRANT: string;
  readonly NUMALIGN_CPUS: string;
  /** The booked amount of the shared pool, in CPUs: `0.5`. */
  readonly NUMALIGN_MIXED?: string;
  readonly NUMALIGN_NODES: string;
  readonly NUMALIGN_DEVICES: string;
  readonly NUMALIGN_STATE_DIR?: string;
  /**
   * The process whose preload has acquired the grant; workers of its cluster do not use the grant.
   * Empty if the grant is for this child.
   */
  readonly NUMALIGN_PRELOAD_PID: '';
}

export interface ChildGrant {
  readonly uid: string;
  /** The CPUs of the grant that no part has. */
  readonly sharedCpus: CpuSet;
  readonly mixed: number;
  readonly numaNodes: NodeSet;
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

/** `stateDir`: the folder with the grant's record. */
export function childVariables(
  { uid, sharedCpus, mixed, numaNodes, devices }: ChildGrant,
  stateDir?: string,
): ChildVariables {
  const ids = Object.entries(devices).map(([name, list]) => [name, list.map(({ id }) => id)]);
  return {
    NUMALIGN_GRANT: uid,
    NUMALIGN_CPUS: sharedCpus.toString(),
    ...(mixed > 0 && { NUMALIGN_MIXED: String(mixed) }),
    NUMALIGN_NODES: numaNodes.toString(),
    NUMALIGN_DEVICES: JSON.stringify(Object.fromEntries(ids)),
    ...(stateDir !== undefined && { NUMALIGN_STATE_DIR: stateDir }),
    NUMALIGN_PRELOAD_PID: '',
  };
}

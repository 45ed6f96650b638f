// ChildVariables: the environment variables of a program on a grant.
import type { DeviceAssignment } from '../account/pod-assignment.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';

/**
 * A program on a grant finds these variables: `numalign run`, {@link Grant.spawn}, {@link Grant.fork},
 * {@link Grant.exec} and numalign/preload set them.
 */
export interface ChildVariables {
  /** The uid of the grant. If it is set, numalign/preload uses this grant and acquires none. */
  readonly NUMALIGN_GRANT: string;
  /** The CPUs of the grant that no part has, as a list such as `0-1,4`. */
  readonly NUMALIGN_CPUS: string;
  /** How many CPUs a `mixed` grant has booked in the shared pool, such as `0.5`. */
  readonly NUMALIGN_MIXED?: string;
  /** The NUMA nodes of these CPUs, as a list. */
  readonly NUMALIGN_NODES: string;
  /** A JSON object: the ids of the grant's devices by resource. */
  readonly NUMALIGN_DEVICES: string;
  /**
   * The state folder that has the grant on record. In a program without a grant, the folder of
   * managers and commands that are given none; `numalign agent`, `numalign setup` and programs with
   * raised privileges ignore it.
   */
  readonly NUMALIGN_STATE_DIR?: string;
  /**
   * The process whose preload acquired the grant. Workers of its `node:cluster` acquire their own
   * grants, workers of `numalign/cluster` do not. Empty if the grant is for this child.
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

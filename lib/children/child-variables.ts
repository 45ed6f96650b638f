// ChildVariables: what a program on a grant finds in its environment.
import type { DeviceAssignment } from '../account/pod-assignment.js';
import type { CpuSet, NodeSet } from '../machine/cpu-set.js';

/**
 * The uid of the grant, its CPUs and NUMA nodes as lists (`0-1,4`), and the ids of its devices by
 * resource as a JSON object. By NUMALIGN_GRANT `numalign/preload` knows the grant to use.
 */
export interface ChildVariables {
  readonly NUMALIGN_GRANT: string;
  readonly NUMALIGN_CPUS: string;
  readonly NUMALIGN_NODES: string;
  readonly NUMALIGN_DEVICES: string;
}

export interface ChildGrant {
  readonly uid: string;
  /** The CPUs of the grant that no part has. */
  readonly sharedCpus: CpuSet;
  readonly numaNodes: NodeSet;
  readonly devices: Readonly<Record<string, readonly DeviceAssignment[]>>;
}

export function childVariables({ uid, sharedCpus, numaNodes, devices }: ChildGrant): ChildVariables {
  const ids = Object.entries(devices).map(([name, list]) => [name, list.map(({ id }) => id)]);
  return {
    NUMALIGN_GRANT: uid,
    NUMALIGN_CPUS: sharedCpus.toString(),
    NUMALIGN_NODES: numaNodes.toString(),
    NUMALIGN_DEVICES: JSON.stringify(Object.fromEntries(ids)),
  };
}

// DeviceMachine of a moment: what claims may have of a machine, by what a manager or a plan says.

import type { MemoryTable } from 'numalign';
import { CpuSet, type ManagerView, type Settings } from 'numalign';
import type { Topology } from 'numalign/topology';
import type { DeviceMachine } from './devices.js';

export interface MachineNow {
  readonly topology: Topology;
  readonly settings: Settings;
  /** The options in effect. */
  readonly placement: ManagerView['placement'];
  /** The CPUs that no grant holds. */
  readonly freeCpus: CpuSet;
  readonly memory: readonly MemoryTable[];
  /** What claims hold, which a scheduler counts itself. */
  readonly claims: {
    readonly cpus: CpuSet;
    readonly memory: readonly {
      readonly type: string;
      readonly nodes: readonly number[];
      readonly bytes: number;
    }[];
  };
}

/** Without attributes that come from files of the machine. */
export function machineNow({
  topology,
  settings,
  placement,
  freeCpus,
  memory,
  claims,
}: MachineNow): DeviceMachine {
  const { managedCPUs, reservedSystemCPUs, isolatedCPUs, strictCPUReservation } = settings;
  const stays = strictCPUReservation ? CpuSet.EMPTY : managedCPUs.intersection(reservedSystemCPUs);
  const grantable = managedCPUs.difference(reservedSystemCPUs).difference(isolatedCPUs);
  return {
    topology,
    cpus: grantable.intersection(freeCpus.union(claims.cpus)),
    keepsOne: stays.isEmpty,
    wholeCores: placement.cpuManagerPolicyOptions['full-pcpus-only'] === true,
    memory: placement.memoryManagerPolicy === 'None' ? [] : memoryNow(memory, claims.memory),
  };
}

// Of nodes that share an allocation, none can provide memory alone.
const memoryNow = (
  tables: readonly MemoryTable[],
  blocks: MachineNow['claims']['memory'],
): DeviceMachine['memory'] =>
  tables.map(({ node, type, free, group }) => {
    const own = blocks.filter(
      (block) => block.type === type && block.nodes.length === 1 && block.nodes[0] === node,
    );
    const ofClaims = own.reduce((sum, { bytes }) => sum + bytes, 0);
    return { node, type, bytes: (group.length > 1 ? 0 : free) + ofClaims };
  });

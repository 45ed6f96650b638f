// Demands of quiet grants, and their settings written and restored one after the other.
import type { QuietRequest } from '../../lib/account/pod-assignment.js';
import { CpuSet } from '../../lib/machine/cpu-set.js';
import type { Topology } from '../../lib/machine/topology.js';
import type { QuietDemand } from '../../lib/quiet/kernel/demands.js';
import type { PartDemand, Setting } from '../../lib/quiet/kernel/setting.js';

const EVERYTHING: QuietRequest = {
  interrupts: true,
  workqueues: true,
  packets: true,
  idle: { maxLatency: 10 },
  frequency: true,
  cache: null,
};

/** Of one grant. */
export function quiet(cpus: string | CpuSet, request: Partial<QuietRequest> = {}): QuietDemand {
  return { uid: `on ${cpus}`, cpus: CpuSet.coerce(cpus), request: { ...EVERYTHING, ...request } };
}

export function demandOf(topology: Topology, ...demands: QuietDemand[]): PartDemand {
  const cpus = demands.reduce((all, demand) => all.union(demand.cpus), CpuSet.EMPTY);
  return { topology, demands, cpus };
}

export interface Change {
  readonly setting: Setting;
  readonly original: string;
}

/** Those that were changed. */
export async function write(settings: readonly Setting[], demand: PartDemand): Promise<Change[]> {
  const changes: Change[] = [];
  for (const setting of settings) {
    const original = await setting.read();
    if (original === undefined) continue;
    const target = setting.target(original, demand);
    if (target === original) continue;
    changes.push({ setting, original });
    await setting.write(target);
  }
  return changes;
}

/** In the opposite order. */
export async function restore(changes: readonly Change[]): Promise<void> {
  for (const { setting, original } of [...changes].reverse()) await setting.write(original);
}

// The strategy among NUMA nodes that are otherwise equal, as proposed for the kubelet (KEP-6007): the
// most or the least allocated ones, by the percentage of what is asked for. Pure.
import { grantableCpus } from '../../account/pools.js';
import type { Words } from '../../base/words.js';
import { sizeOfBoth } from '../../machine/id-set.js';
import { availableDevices, countNear, type DeviceRequest } from '../devices/device-draft.js';
import type { Draft } from '../draft/draft.js';
import type { MemoryRequests } from '../memory/memory-requests.js';
import { offeredRow } from '../memory/memory-tiers.js';

const ALL = 100;
// More than the percentages of 64 nodes together, so that these decide only between equal distances.
const UNIT = 2 ** 13;

/** What a merge of hints asks for. */
export interface Asked {
  readonly cpus: boolean;
  readonly memory: MemoryRequests;
  readonly devices: readonly DeviceRequest[];
}

/**
 * The distances for a merge by a strategy, row by row. `closest`: those of the machine, if they count.
 * The merge counts the distance of a node to itself too, which has the node's percentage.
 */
export function distancesFor(draft: Draft, asked: Asked, closest: Words | undefined): Words {
  const { allocationStrategy } = draft.placement;
  const { length } = draft.topology.numaNodes;
  const distances = closest?.map((distance) => distance * UNIT) ?? new Uint32Array(length * length);
  for (const [at, percent] of allocated(draft, asked).entries())
    distances[at * (length + 1)]! += allocationStrategy === 'most-allocated' ? ALL - percent : percent;
  return distances;
}

// By position of the node: the mean percentage of each resource, in whole numbers as proposed.
function allocated(draft: Draft, { cpus, memory, devices }: Asked): readonly number[] {
  const percents = [
    ...(cpus ? [cpuPercents(draft)] : []),
    ...memory.map(({ type }) => {
      const { allocatable, free } = offeredRow(draft, type);
      return allocatable.map((all, at) => percentOf(all, free[at]!));
    }),
    ...devices.map((request) => devicePercents(draft, request)),
  ];
  return draft.topology.nodes.map((_, at) =>
    Math.floor(percents.reduce((sum, of) => sum + of[at]!, 0) / Math.max(1, percents.length)),
  );
}

const percentOf = (all: number, free: number): number =>
  all === 0 ? 1 : Math.max(1, Math.floor((ALL * Math.max(0, all - free)) / all));

function cpuPercents({ topology, state, present, pool, allowed, free }: Draft): readonly number[] {
  const all = grantableCpus(state.settings, present, pool).intersection(allowed);
  return topology.nodes.map(({ cpus }) => percentOf(sizeOfBoth(cpus, all), sizeOfBoth(cpus, free)));
}

function devicePercents(draft: Draft, { resource }: DeviceRequest): readonly number[] {
  const healthy = resource.devices.filter((device) => device.healthy);
  const available = availableDevices(draft, resource);
  return draft.topology.numaNodes.map((node) =>
    percentOf(countNear(healthy, node), countNear(available, node)),
  );
}

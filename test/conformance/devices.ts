// The devices of a scenario: their plugin, their counts, and which ones recorded containers can
// have.

import type { PreferredAllocationRequest } from '../../lib/entries/topology.js';
import type { DeviceAssignment } from '../../lib/index.js';
import type { Holdings } from './placement.js';
import type { Claim } from './pod.js';
import { blocksOf, type RecordedHoldings } from './recorded-node.js';

export interface RecordedResource {
  readonly name: string;
  readonly preferredAllocation: boolean;
  readonly devices: readonly { readonly id: string; readonly numaNodes: readonly number[] | null }[];
}

/** The NUMA nodes of every registered device (null: none reported), by resource and id. */
export type Inventory = ReadonlyMap<string, ReadonlyMap<string, readonly number[] | null>>;

export function inventoryOf(resources: readonly RecordedResource[]): Inventory {
  return new Map(
    resources.map(({ name, devices }) => [
      name,
      new Map(devices.map(({ id, numaNodes }) => [id, numaNodes])),
    ]),
  );
}

/** The recorded device plugin: what must be included, and the lowest ids by byte order. */
export function lowestIds({ available, mustInclude, size }: PreferredAllocationRequest): string[] {
  const others = available.filter((id) => !mustInclude.includes(id));
  const byBytes = others.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  return [...mustInclude, ...byBytes].slice(0, size);
}

/** As scenarios name the devices that are equal: `0,1` for these NUMA nodes, `none` without. */
export function placeOf(nodes: readonly number[] | null): string {
  return nodes === null || nodes.length === 0 ? 'none' : [...nodes].sort((a, b) => a - b).join();
}

export function countByPlace(devices: readonly DeviceAssignment[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { nodes } of devices) counts[placeOf(nodes)] = (counts[placeOf(nodes)] ?? 0) + 1;
  return counts;
}

/** The known ids of a recorded container; undefined if equal devices were picked at random. */
const givenIds = (holdings: RecordedHoldings, container: string, resource: string) =>
  holdings[container]?.devices[resource]?.ids ?? undefined;

/**
 * Recorded pods with every device by its id: the recorded one, or else any that fits: on the
 * recorded NUMA nodes, free or left by an init container of the pod. Undefined if there are not
 * enough.
 */
export function withDevices(
  pods: ReadonlyMap<string, RecordedHoldings>,
  claims: ReadonlyMap<string, readonly Claim[]>,
  inventory: Inventory,
): Map<string, Holdings> | undefined {
  const taken = new Map([...inventory.keys()].map((resource) => [resource, new Set<string>()]));
  for (const holdings of pods.values()) {
    for (const name of Object.keys(holdings)) {
      for (const [resource, own] of taken)
        for (const id of givenIds(holdings, name, resource) ?? []) own.add(id);
    }
  }

  const identified = new Map<string, Holdings>();
  for (const [uid, holdings] of pods) {
    const podClaims = claims.get(uid) ?? [];
    const chosen = new Map<string, Record<string, DeviceAssignment[]>>();
    for (const [resource, devices] of inventory) {
      // What init containers have left, and what is known of later containers.
      const left = new Set<string>();
      for (const [i, { name, kind }] of podClaims.entries()) {
        const recorded = holdings[name]?.devices[resource];
        if (!recorded) continue;
        const later = podClaims
          .slice(i + 1)
          .flatMap((claim) => givenIds(holdings, claim.name, resource) ?? []);
        const own = taken.get(resource)!;
        const candidates = new Set([
          ...left,
          ...(kind === 'init' ? later : []),
          ...[...devices.keys()].filter((id) => !own.has(id)),
        ]);
        const at = (place: string) =>
          [...candidates].filter((id) => placeOf(devices.get(id) ?? null) === place);
        const places = Object.entries(recorded.perNuma);
        const ids = recorded.ids ?? places.flatMap(([place, count]) => at(place).slice(0, count));
        if (ids.length < places.reduce((sum, [, count]) => sum + count, 0)) return undefined;
        for (const id of ids) {
          own.add(id);
          if (kind === 'init') left.add(id);
          else left.delete(id);
        }
        const assignments = ids.map((id) => ({ id, nodes: devices.get(id) ?? null }));
        chosen.set(name, { ...chosen.get(name), [resource]: assignments });
      }
    }
    const entries = Object.entries(holdings).map(([name, holding]) => {
      const { cpus, hint, isolation = cpus === null ? 'host' : 'container' } = holding;
      const memory = blocksOf(holding);
      return [name, { cpus, isolation, hint, memory, devices: chosen.get(name) ?? {} }] as const;
    });
    identified.set(uid, Object.fromEntries(entries));
  }
  return identified;
}

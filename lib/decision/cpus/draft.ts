// Draft: what a decision about one pod goes by, as far as it has come. Each manager reads and
// replaces its own part. Pure.
import type { MemoryBlock } from '../../account/booked-memory.js';
import type { ContainerAssignment } from '../../account/pod-assignment.js';
import type { CpuPool } from '../../account/pod-holdings.js';
import type { CpuSnapshot } from '../../account/pools.js';
import { freeCpus } from '../../account/pools.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { DeviceGround, DevicesLeft } from '../devices/device-draft.js';
import type { MemoryDraft, MemoryGround } from '../memory/memory-draft.js';

/** What a container that is resized keeps whatever else it gets. */
export interface Kept {
  readonly cpus: CpuSet;
  readonly held: CpuSet;
  readonly memory: readonly MemoryBlock[];
  readonly devices: ContainerAssignment['devices'];
}

export interface Draft extends DeviceGround, MemoryGround {
  readonly present: CpuSnapshot;
  /** The only pool that its exclusive CPUs can come from. */
  readonly pool: CpuPool;
  /** CPUs that the pod can use at all. */
  readonly allowed: CpuSet;
  /** Free CPUs among them that the pod has not taken yet. */
  readonly free: CpuSet;
  /** All that its containers have taken so far. */
  readonly taken: CpuSet;
  /**
   * What its init containers have left behind for later ones; those of sidecars and of containers
   * that stay are not among them.
   */
  readonly reusable: CpuSet;
  readonly kept?: Kept | undefined;
}

/** What containers that are placed leave of CPUs to later ones. */
export type CpusLeft = Pick<Draft, 'free' | 'taken' | 'reusable'>;

/** What stays as it is while containers are placed. */
export type DraftGround = Omit<Draft, keyof CpusLeft | keyof DevicesLeft | 'memory'>;

// Of drafts that have just begun: a draft is never changed, only replaced.
const NO_CONTAINERS: MemoryDraft['containers'] = [];
const NOTHING: readonly MemoryBlock[] = [];
const NO_DEVICES: DevicesLeft = { takenDevices: new Set(), reusableDevices: new Map() };

/** A draft without any container yet. */
export function firstDraft(ground: DraftGround): Draft {
  const { state, present, pool, allowed } = ground;
  const free = freeCpus(state, present, pool).intersection(allowed);
  return nextDraft(ground, { free, taken: CpuSet.EMPTY, reusable: CpuSet.EMPTY }, NO_DEVICES, {
    booked: () => state.memory,
    containers: NO_CONTAINERS,
    groups: undefined,
    reusable: NOTHING,
  });
}

/** The draft once one more container has been placed. */
export function nextDraft(
  ground: DraftGround,
  cpus: CpusLeft,
  devices: DevicesLeft,
  memory: MemoryDraft,
): Draft {
  const { topology, state, present, pool, pod, placement, allowed, resources, hugepages, kept } = ground;
  // Member by member: to add some to a spread object takes many times as long.
  return {
    topology,
    state,
    present,
    pool,
    pod,
    placement,
    allowed,
    resources,
    hugepages,
    free: cpus.free,
    taken: cpus.taken,
    reusable: cpus.reusable,
    memory,
    takenDevices: devices.takenDevices,
    reusableDevices: devices.reusableDevices,
    kept,
  };
}

/**
 * The draft of a container that is resized. `own`: all CPUs that it has now; of these it can have
 * no others than those it keeps.
 */
export function withKept(draft: Draft, kept: Kept, own: CpuSet): Draft {
  const ids = Object.entries(kept.devices).map(
    ([resource, list]) => [resource, new Set(list.map(({ id }) => id))] as const,
  );
  return {
    ...draft,
    kept,
    free: draft.free.difference(own),
    reusable: kept.cpus.union(kept.held),
    reusableDevices: new Map(ids),
  };
}

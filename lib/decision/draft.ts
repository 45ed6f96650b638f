// Draft: what a decision about one pod goes by, as far as it has come. Each manager reads and
// replaces its own part. Pure.
import type { Assignments } from '../account/assignments.js';
import type { BookedMemory, MemoryBlock } from '../account/booked-memory.js';
import type { ContainerAssignment } from '../account/pod-assignment.js';
import type { CpuPool } from '../account/pod-holdings.js';
import type { CpuSnapshot } from '../account/pools.js';
import { freeCpus } from '../account/pools.js';
import type { Placement } from '../input/placement.js';
import type { PodRequest } from '../input/pod-request.js';
import type { ContainerRequest } from '../input/resource-amounts.js';
import { CpuSet } from '../machine/cpu-set.js';
import type { Topology } from '../machine/topology.js';
import type { DeviceResources } from './device-resources.js';

/** What a container has. */
export interface ContainerMemory {
  readonly name: string;
  readonly kind: ContainerRequest['kind'];
  readonly blocks: readonly MemoryBlock[];
}

/** The memory of a machine while a pod is placed on it. */
export interface MemoryDraft {
  /** With what the pod has taken so far: found where it is asked for. */
  readonly booked: () => BookedMemory;
  /**
   * What its containers have that have any; what a later one has taken over from an init container
   * is the later one's.
   */
  readonly containers: readonly ContainerMemory[];
  /**
   * By node those that its memory is allocated together with; undefined: as the pods on record have
   * it.
   */
  readonly groups: ReadonlyMap<number, readonly number[]> | undefined;
  /** What init containers have left behind for later ones on just these nodes. */
  readonly reusable: readonly MemoryBlock[];
}

/** What a container that is resized keeps whatever else it gets. */
export interface Kept {
  readonly cpus: CpuSet;
  readonly held: CpuSet;
  readonly memory: readonly MemoryBlock[];
  readonly devices: ContainerAssignment['devices'];
}

export interface Draft {
  readonly topology: Topology;
  readonly present: CpuSnapshot;
  /** The only pool that its exclusive CPUs can come from. */
  readonly pool: CpuPool;
  /** Without the pod. */
  readonly state: Assignments;
  readonly pod: PodRequest;
  readonly placement: Placement;
  /** The devices that this manager knows. */
  readonly resources: DeviceResources;
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
  readonly memory: MemoryDraft;
  /** The same of devices: by their keys, and their ids by resource. */
  readonly takenDevices: ReadonlySet<string>;
  readonly reusableDevices: ReadonlyMap<string, ReadonlySet<string>>;
  /** Of the only container, where it is resized. */
  readonly kept?: Kept | undefined;
}

// Of drafts that have just begun: a draft is never changed, only replaced.
const NO_CONTAINERS: MemoryDraft['containers'] = [];
const NOTHING: readonly MemoryBlock[] = [];
const NO_DEVICES: Draft['takenDevices'] = new Set();
const NO_IDS: Draft['reusableDevices'] = new Map();

/** A draft without any container yet. */
export function firstDraft(
  given: Pick<
    Draft,
    'topology' | 'present' | 'pool' | 'state' | 'pod' | 'placement' | 'allowed' | 'resources'
  >,
): Draft {
  const { topology, state, present, pool, pod, placement, allowed, resources } = given;
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
    free: freeCpus(state, present, pool).intersection(allowed),
    taken: CpuSet.EMPTY,
    reusable: CpuSet.EMPTY,
    memory: {
      booked: () => state.memory,
      containers: NO_CONTAINERS,
      groups: undefined,
      reusable: NOTHING,
    },
    takenDevices: NO_DEVICES,
    reusableDevices: NO_IDS,
    kept: undefined,
  };
}

/** What containers that are placed leave of CPUs, devices and memory to later ones. */
export type CpusLeft = Pick<Draft, 'free' | 'taken' | 'reusable'>;
export type DevicesLeft = Pick<Draft, 'takenDevices' | 'reusableDevices'>;

/** The draft once one more container has been placed. */
export function nextDraft(draft: Draft, cpus: CpusLeft, devices: DevicesLeft, memory: MemoryDraft): Draft {
  const { topology, state, present, pool, pod, placement, allowed, resources, kept } = draft;
  return {
    topology,
    state,
    present,
    pool,
    pod,
    placement,
    allowed,
    resources,
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

// Draft: the input and the progress of a decision about one pod. Each manager reads and replaces
// its own part. Pure.
import type { ContainerAssignment } from '../../account/pod-assignment.js';
import type { CpuPool } from '../../account/pod-holdings.js';
import { type CpuSnapshot, freeCpus } from '../../account/pools.js';
import { CpuSet } from '../../machine/cpu-set.js';
import type { DeviceDraft, DevicesLeft } from '../devices/device-draft.js';
import { type FreeHugepages, type MemoryDraft, NO_MEMORY } from './memory-draft.js';

/** What a resized container keeps, whatever it gets in addition. */
export type Kept = Pick<ContainerAssignment, 'cpus' | 'held' | 'memory' | 'devices'>;

export interface Draft extends DeviceDraft {
  readonly present: CpuSnapshot;
  /** The only pool that its exclusive CPUs come from. */
  readonly pool: CpuPool;
  /** CPUs that the pod may use. */
  readonly allowed: CpuSet;
  /** Free CPUs in `allowed` that the pod has not taken yet. */
  readonly free: CpuSet;
  /** All CPUs that its containers have taken so far. */
  readonly taken: CpuSet;
  /**
   * CPUs that its init containers left for later ones; without those of sidecars and app
   * containers.
   */
  readonly reusable: CpuSet;
  readonly memory: MemoryDraft;
  /** The kernel's free hugepages, if they must suffice. */
  readonly hugepages?: FreeHugepages | undefined;
  /** For a resize: what the only container keeps. */
  readonly kept?: Kept | undefined;
}

/** The CPUs that placed containers leave to later ones. */
export type CpusLeft = Pick<Draft, 'free' | 'taken' | 'reusable'>;

/** What it is made of: the part of a question, and what is chosen for the pod. */
type DraftQuestion = Pick<Draft, 'topology' | 'state' | 'present' | 'resources' | 'hugepages'>;
type DraftPod = Pick<Draft, 'pool' | 'pod' | 'placement' | 'allowed'>;

// Shared by new drafts, which is safe because drafts are immutable.
const NO_DEVICES: DevicesLeft = { takenDevices: new Set(), reusableDevices: new Map() };

/** A draft without containers. */
export function firstDraft(question: DraftQuestion, { pool, pod, placement, allowed }: DraftPod): Draft {
  const { state, present } = question;
  // Member by member: a spread with more members is many times slower.
  return {
    topology: question.topology,
    state,
    present,
    pool,
    pod,
    placement,
    allowed,
    resources: question.resources,
    hugepages: question.hugepages,
    free: freeCpus(state, present, pool).intersection(allowed),
    taken: CpuSet.EMPTY,
    reusable: CpuSet.EMPTY,
    memory: NO_MEMORY,
    takenDevices: NO_DEVICES.takenDevices,
    reusableDevices: NO_DEVICES.reusableDevices,
    kept: undefined,
  };
}

/** The draft after one more container is placed. */
export const nextDraft = (
  draft: Draft,
  { free, taken, reusable }: CpusLeft,
  { takenDevices, reusableDevices }: DevicesLeft,
  memory: MemoryDraft,
): Draft => ({ ...draft, free, taken, reusable, memory, takenDevices, reusableDevices });

/**
 * The draft of a container that is resized. `current`: all CPUs that it has now. Of these, it can
 * have only the kept ones.
 */
export function withKept(draft: Draft, kept: Kept, current: CpuSet): Draft {
  const ids = Object.entries(kept.devices).map(
    ([resource, list]) => [resource, new Set(list.map(({ id }) => id))] as const,
  );
  return {
    ...draft,
    kept,
    free: draft.free.difference(current),
    reusable: kept.cpus.union(kept.held),
    reusableDevices: new Map(ids),
  };
}

// What an admission has had the kubelet's CPU and Memory Manager allocate, as these count it. Pure.
import { type AdmitMessage, AFFINITY_STAGE, CPU_STAGE, MEMORY_STAGE, stageOf } from './admission-stages.js';

type Container = AdmitMessage['containers'][number];

/** What one manager counts of a request. */
export interface Allocations {
  /** Where it takes from the machine for each container, or once for the pod. */
  readonly source: 'node' | 'pod';
  /** Requests for exclusive resources. */
  readonly pinnings: number;
  readonly errors: number;
  readonly allocated: number;
  /** Containers with resources of their own, and those that share those of their pod. */
  readonly exclusive: number;
  readonly shared: number;
}

const NONE: Allocations = { source: 'node', pinnings: 0, errors: 0, allocated: 0, exclusive: 0, shared: 0 };

export function cpuAllocations(message: AdmitMessage): Allocations {
  const { booking, containers } = message;
  const isExclusive = ({ exclusiveCpus }: Container) => exclusiveCpus > 0;
  const errors = failedAt(message) === CPU_STAGE ? 1 : 0;
  if (!booking) {
    const pinnings = reached(message, CPU_STAGE).filter(isExclusive).length;
    const allocated = pinnings - errors;
    return { ...NONE, pinnings, errors, allocated, exclusive: allocated };
  }
  if (booking.exclusiveCpus === 0 || !hasReached(message, CPU_STAGE)) return { ...NONE, source: 'pod' };
  const count = containers.filter(isExclusive).length;
  return dealt(containers, count, { errors, pinnings: errors ? 0 : count });
}

export function memoryAllocations(message: AdmitMessage): Allocations {
  const { booking, containers } = message;
  const isBooked = ({ booksMemory }: Container) => booksMemory;
  const errors = failedAt(message) === MEMORY_STAGE ? 1 : 0;
  if (!booking) {
    const asking = reached(message, MEMORY_STAGE).filter(isBooked);
    const booked = errors ? asking.slice(0, -1) : asking;
    const allocated = booked.reduce((sum, { memoryTypes }) => sum + memoryTypes.length, 0);
    return { ...NONE, pinnings: asking.length, errors, allocated, exclusive: booked.length };
  }
  if (booking.memoryTypes.length === 0 || !hasReached(message, MEMORY_STAGE))
    return { ...NONE, source: 'pod' };
  // Once for the pod, and for each init container, whether it shares or not.
  const asking = containers.filter((container) => container.kind !== 'app' || isBooked(container));
  return dealt(containers, containers.filter(isBooked).length, {
    errors,
    pinnings: 1 + (errors ? 0 : asking.length),
  });
}

// A pod that is booked as a whole has all of it, or nothing.
function dealt(
  { length }: AdmitMessage['containers'],
  exclusive: number,
  counts: Pick<Allocations, 'errors' | 'pinnings'>,
): Allocations {
  if (counts.errors > 0) return { ...NONE, source: 'pod', ...counts };
  return { source: 'pod', ...counts, allocated: length, exclusive, shared: length - exclusive };
}

export function isPlaced({ outcome }: AdmitMessage): boolean {
  return outcome === 'admitted' || outcome === 'already';
}

/** Where a request was rejected; undefined: it was not. */
export function failedAt(message: AdmitMessage): number | undefined {
  return message.outcome === 'rejected' ? stageOf(message) : undefined;
}

function hasReached(message: AdmitMessage, stage: number): boolean {
  return isPlaced(message) || (failedAt(message) ?? -1) >= stage;
}

/** The containers with which the kubelet would have come to the manager of this stage. */
function reached(message: AdmitMessage, stage: number): readonly Container[] {
  const { outcome, container, containers } = message;
  if (isPlaced(message)) return containers;
  if (outcome !== 'rejected') return [];
  const failureStage = stageOf(message);
  const failing = containers.findIndex(({ name }) => name === container);
  // None of them: the pod could not be aligned, or, once all had what they need, it would have left
  // nothing to share.
  if (failing < 0) return failureStage === AFFINITY_STAGE ? [] : containers;
  return containers.slice(0, failureStage >= stage ? failing + 1 : failing);
}

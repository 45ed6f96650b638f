// The flag of mixed grants whose share of the shared pool no longer fits. Pure.
import type { Assignments } from '../../account/assignments.js';
import { mixedOfPods } from '../../account/cpus-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { type CpuSnapshot, freeCpus } from '../../account/pools.js';
import { MILLI } from '../../input/values/quantity.js';

/**
 * CPUs of the shared pool went offline, are now reserved, or were taken by the kubelet. The rest
 * has no room for what mixed grants book.
 */
export interface SharedPoolShort {
  /** Identifies the kind of flag; literal and stable. */
  readonly code: 'SHARED_POOL_SHORT';
  /** One line for people, in millicores; the wording may change. */
  readonly message: string;
  /** How many CPUs of the shared pool this grant books, such as 0.5. */
  readonly mixed: number;
  /** How many CPUs of the shared pool all mixed grants book together. */
  readonly booked: number;
  /** How many CPUs are left for them; fewer than `booked`. */
  readonly left: number;
}

/** In millicores: what is booked of the shared pool, and how much of that has no room. */
export function poolShortage(state: Assignments, present: CpuSnapshot): { booked: number; missing: number } {
  const booked = mixedOfPods(state.pods);
  const missing = booked === 0 ? 0 : Math.max(booked - freeCpus(state, present).size * MILLI, 0);
  return { booked, missing };
}

const NONE: readonly SharedPoolShort[] = [];

/** Flags all pods that book the shared pool: the shortage belongs to none in particular. */
export function sharedPoolShort(
  { mixed }: Pick<PodAssignment, 'mixed'>,
  state: Assignments,
  present: CpuSnapshot,
): readonly SharedPoolShort[] {
  if (mixed === undefined) return NONE;
  const { booked, missing } = poolShortage(state, present);
  if (missing === 0) return NONE;
  const left = booked - missing;
  const message = `the shared pool has only ${left}m for the ${booked}m that are booked there, ${mixed}m of them by this grant`;
  const facts = { mixed: mixed / MILLI, booked: booked / MILLI, left: left / MILLI };
  return [Object.freeze({ code: 'SHARED_POOL_SHORT', message, ...facts })];
}

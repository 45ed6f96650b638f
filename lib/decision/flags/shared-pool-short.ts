// What of mixed grants does not hold any more: less is left to share than they have booked. Pure.
import type { Assignments } from '../../account/assignments.js';
import { mixedOfPods } from '../../account/cpus-of-pods.js';
import type { PodAssignment } from '../../account/pod-assignment.js';
import { type CpuSnapshot, freeCpus } from '../../account/pools.js';
import { MILLI } from '../../input/values/quantity.js';

/**
 * CPUs that were shared have gone offline, are reserved by now, or were taken by the kubelet: the
 * rest has no room for what mixed grants have booked.
 */
export interface SharedPoolShort {
  readonly code: 'SHARED_POOL_SHORT';
  readonly message: string;
  /** In CPUs: what this grant has booked, what all grants have, and what is left to share. */
  readonly mixed: number;
  readonly booked: number;
  readonly left: number;
}

/** In millicores: what is booked of the shared pool, and how much of that has no room. */
export function poolShortage(state: Assignments, present: CpuSnapshot): { booked: number; missing: number } {
  const booked = mixedOfPods(state.pods);
  const missing = booked === 0 ? 0 : Math.max(booked - freeCpus(state, present).size * MILLI, 0);
  return { booked, missing };
}

const NONE: readonly SharedPoolShort[] = [];

/** Whose room is missing nobody can say: all who have booked some are flagged. */
export function sharedPoolShort(
  { mixed }: Pick<PodAssignment, 'mixed'>,
  state: Assignments,
  present: CpuSnapshot,
): readonly SharedPoolShort[] {
  if (mixed === undefined) return NONE;
  const { booked, missing } = poolShortage(state, present);
  if (missing === 0) return NONE;
  const left = booked - missing;
  const message = `${mixed}m of the shared pool: ${booked}m are booked there, where ${left}m can be`;
  const facts = { mixed: mixed / MILLI, booked: booked / MILLI, left: left / MILLI };
  return [Object.freeze({ code: 'SHARED_POOL_SHORT', message, ...facts })];
}

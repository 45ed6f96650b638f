// Quiet: what a grant keeps away from its CPUs besides other threads, and which settings of the
// kernel were changed for it. Pure.
import type { CpuSet } from '../machine/cpu-set.js';
import type { UnknownFields } from './pod-assignment.js';

export const QUIET_PARTS = ['interrupts', 'workqueues', 'packets', 'idle', 'frequency', 'cache'] as const;

export type QuietPart = (typeof QUIET_PARTS)[number];

/** How much of each L3 cache a grant has to itself: ways, or percent of them, rounded up. */
export type CacheShare = { readonly ways: number } | { readonly percent: number };

/** What a grant asks for. */
export interface QuietRequest {
  readonly interrupts: boolean;
  readonly workqueues: boolean;
  readonly packets: boolean;
  /** null: not asked for. Microseconds that an idle state may take to wake up. */
  readonly idle: { readonly maxLatency: number } | null;
  readonly frequency: boolean;
  /** null: not asked for. */
  readonly cache: CacheShare | null;
}

/**
 * A setting of the kernel that numalign has changed, or is about to. On record before it is
 * written, so that it can be restored after any crash.
 */
export interface QuietSetting {
  readonly part: QuietPart;
  /** The file, or what else stands for the setting. */
  readonly path: string;
  /** What tells what is behind the path from a later thing of the same path. null: nothing. */
  readonly identity: string | null;
  /** The value before numalign changed it. */
  readonly original: string;
  /** Values of numalign, the latest first: the setting has one of them, or somebody else's. */
  readonly written: readonly string[];
  /** The kernel's error for the latest value; null: none. */
  readonly refusal: string | null;
}

/** All settings that are changed. */
export interface QuietRecord {
  readonly settings: readonly QuietSetting[];
  readonly unknown: UnknownFields;
}

/** The CPUs of one grant, and what it asks for them. */
export interface QuietDemand {
  /** The grant's id. */
  readonly uid: string;
  readonly cpus: CpuSet;
  readonly request: QuietRequest;
}

// QuietRequest: what a grant keeps off its CPUs besides other threads. Pure.

/** The parts of {@link RequestOptions.quiet}, by name. */
export const QUIET_PARTS = ['interrupts', 'workqueues', 'packets', 'idle', 'frequency', 'cache'] as const;

/** The parts of {@link RequestOptions.quiet}; {@link QuietOptions} says what each of them does. */
export type QuietPart = (typeof QUIET_PARTS)[number];

/**
 * The part of each L3 cache that a grant has for itself: ways, or a percentage of them, rounded up.
 */
export type CacheShare = { readonly ways: number } | { readonly percent: number };

/** The request of a grant. */
export interface QuietRequest {
  readonly interrupts: boolean;
  readonly workqueues: boolean;
  readonly packets: boolean;
  /** Microseconds that an idle state may take to wake up; null: no limit requested. */
  readonly idle: { readonly maxLatency: number } | null;
  readonly frequency: boolean;
  /** null: not requested. */
  readonly cache: CacheShare | null;
}

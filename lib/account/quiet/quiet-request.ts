// QuietRequest: what a grant keeps away from its CPUs besides other threads. Pure.

export const QUIET_PARTS = ['interrupts', 'workqueues', 'packets', 'idle', 'frequency', 'cache'] as const;

/** The parts of {@link RequestOptions.quiet}. */
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

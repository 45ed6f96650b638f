// Finding: what was found in one check, and what to change.

/**
 * What a finding can be. `ok`. `warning`: the machine could give more. `problem`: numalign does not
 * work here, or a grant does not hold what it promises. `unknown`: this user cannot see it.
 */
export const FINDING_STATUSES = ['ok', 'warning', 'problem', 'unknown'] as const;
/** The status of a {@link Finding}. */
export type FindingStatus = (typeof FINDING_STATUSES)[number];

export interface Verdict {
  /** How it bears on grants: one of {@link FINDING_STATUSES}. */
  readonly status: FindingStatus;
  /** What the check found, in one line for people. */
  readonly found: string;
  /** What to change; null if nothing. */
  readonly advice: string | null;
}

/** A finding of {@link diagnose}. */
export interface Finding extends Verdict {
  /** The name of the check, the same on every machine. */
  readonly check: string;
  /**
   * The heading that `numalign doctor` prints it under: `this user`, `cgroups`, `CPUs`, `memory` or
   * `other managers`.
   */
  readonly group: string;
}

export const ok = (found: string): Verdict => ({ status: 'ok', found, advice: null });
export const warning = (found: string, advice: string): Verdict => ({ status: 'warning', found, advice });
export const problem = (found: string, advice: string): Verdict => ({ status: 'problem', found, advice });
export const unknown = (found: string, advice: string | null = null): Verdict => ({
  status: 'unknown',
  found,
  advice,
});

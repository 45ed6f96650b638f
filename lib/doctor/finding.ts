// Finding: what was found in one check, and what to change.

/**
 * `problem`: numalign does not work here, or a grant is not worth what it promises. `warning`: less
 * than the machine could offer. `unknown`: it cannot be seen from here.
 */
export const FINDING_STATUSES = ['ok', 'warning', 'problem', 'unknown'] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

export interface Verdict {
  readonly status: FindingStatus;
  readonly found: string;
  /** What to change; null if nothing. */
  readonly advice: string | null;
}

export interface Finding extends Verdict {
  /** The name of the check, the same on every machine. */
  readonly check: string;
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

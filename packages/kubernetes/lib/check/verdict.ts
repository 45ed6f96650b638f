// Verdicts of checks, like those of `numalign doctor`.
import type { Finding } from 'numalign/diagnostics';

export type Verdict = Pick<Finding, 'status' | 'found' | 'advice'>;

export const ok = (found: string): Verdict => ({ status: 'ok', found, advice: null });
export const warning = (found: string, advice: string): Verdict => ({ status: 'warning', found, advice });
export const problem = (found: string, advice: string): Verdict => ({ status: 'problem', found, advice });
export const unknown = (found: string, advice: string | null = null): Verdict => ({
  status: 'unknown',
  found,
  advice,
});

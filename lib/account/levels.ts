// Levels of enforcement: how strongly a grant's CPUs are kept from others.
import { NumalignError } from '../base/errors.js';
import { ENFORCEMENT_LEVELS, type EnforcementLevel } from './pod-assignment.js';

export function isAtLeast(level: EnforcementLevel, least: EnforcementLevel): boolean {
  return ENFORCEMENT_LEVELS.indexOf(level) >= ENFORCEMENT_LEVELS.indexOf(least);
}

export function weaker(a: EnforcementLevel, b: EnforcementLevel): EnforcementLevel {
  return isAtLeast(a, b) ? b : a;
}

/** The enforcement that a request wants for its grant. */
export interface EnforcementRequest {
  /** The strongest level to try. */
  readonly enforcement: EnforcementLevel;
  /** The weakest acceptable level. */
  readonly require: EnforcementLevel;
  /** What to do if a shared member cannot be moved. */
  readonly unmovableMembers: 'fail' | 'report';
  /** True if the request itself names `enforcement`. It then learns why a weaker level results. */
  readonly isNamed?: boolean;
}

export function enforcementError(
  level: EnforcementLevel,
  require: EnforcementLevel,
  why: readonly string[],
): NumalignError {
  return new NumalignError(
    'ERR_ENFORCEMENT',
    `${require} is required, but only ${level} is possible here: ${why.join('; ')}`,
    { value: level, valid: ENFORCEMENT_LEVELS.slice(ENFORCEMENT_LEVELS.indexOf(require)), why },
  );
}

// Levels of enforcement: how strongly a grant's CPUs are kept from others.
import { NumalignError } from '../base/errors.js';
import { ENFORCEMENT_LEVELS, type EnforcementLevel } from './pod-assignment.js';

export function isAtLeast(level: EnforcementLevel, least: EnforcementLevel): boolean {
  return ENFORCEMENT_LEVELS.indexOf(level) >= ENFORCEMENT_LEVELS.indexOf(least);
}

export function weaker(a: EnforcementLevel, b: EnforcementLevel): EnforcementLevel {
  return isAtLeast(a, b) ? b : a;
}

/** What somebody wants of the enforcement of new grants. */
export interface EnforcementRequest {
  /** The strongest level that is aimed at. */
  readonly enforcement: EnforcementLevel;
  /** The weakest that will do. */
  readonly require: EnforcementLevel;
  /** What to do where a shared member cannot be moved. */
  readonly unmovableMembers: 'fail' | 'report';
  /**
   * The request itself names the level that is aimed at, and is told why where it is not reached.
   */
  readonly isNamed?: boolean;
}

export function enforcementError(
  level: EnforcementLevel,
  require: EnforcementLevel,
  why: readonly string[],
): NumalignError {
  return new NumalignError(
    'ERR_ENFORCEMENT',
    `${require} is required, but only ${level} can be had here: ${why.join('; ')}`,
    { value: level, valid: ENFORCEMENT_LEVELS.slice(ENFORCEMENT_LEVELS.indexOf(require)), why },
  );
}

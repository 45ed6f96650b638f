// Checks the enforcement options of managers and requests.
import {
  BY_RECORD,
  ENFORCEMENT_LEVELS,
  type EnforcementLevel,
  type EnforcementRequest,
  isAtLeast,
  LEVELS,
} from '../account/levels.js';
import { invalidOption } from '../base/check-options.js';
import { option } from './values/option-values.js';

/**
 * The enforcement levels that a request can aim at: those of {@link EnforcementLevel} that keep
 * processes off.
 */
export type AimedLevel = {
  [Level in EnforcementLevel]: (typeof LEVELS)[Level]['movesMembers'] extends true ? Level : never;
}[EnforcementLevel];

/** The levels that a request can aim at: lower levels keep no process off. */
export const AIMED_LEVELS = ENFORCEMENT_LEVELS.filter(
  (level): level is AimedLevel => LEVELS[level].movesMembers,
);

export const DEFAULT_ENFORCEMENT: EnforcementRequest = {
  enforcement: 'partition',
  require: BY_RECORD,
  unmovableMembers: 'fail',
};

/** The enforcement options among `options`, without those left out. @throws ERR_INVALID_OPTION */
export function parseEnforcement({
  enforcement,
  require,
  unmovableMembers,
}: Record<string, unknown>): Partial<EnforcementRequest> {
  return {
    ...(enforcement !== undefined && { enforcement: option.oneOf(enforcement, 'enforcement', AIMED_LEVELS) }),
    ...(require !== undefined && { require: option.oneOf(require, 'require', ENFORCEMENT_LEVELS) }),
    ...(unmovableMembers !== undefined && {
      unmovableMembers: option.oneOf(unmovableMembers, 'unmovableMembers', ['fail', 'report']),
    }),
  };
}

/**
 * The enforcement options of a request. One that requires isolated CPUs aims at them.
 * @throws ERR_INVALID_OPTION
 */
export function parseAim(options: Record<string, unknown>): Partial<EnforcementRequest> {
  const parts = parseEnforcement(options);
  const { require } = parts;
  const aim = require && LEVELS[require].isolatesCpus ? { enforcement: require, ...parts } : parts;
  if (require && aim.enforcement && !isAtLeast(aim.enforcement, require)) {
    invalidOption('require', require, `at most the level that the request aims at, ${aim.enforcement}`);
  }
  return aim;
}

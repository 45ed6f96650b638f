// How strongly grants are to be enforced.
import { type EnforcementRequest, isAtLeast } from '../account/levels.js';
import { ENFORCEMENT_LEVELS, type EnforcementLevel } from '../account/pod-assignment.js';
import { invalidOption } from '../base/check-options.js';
import { option } from './values/option-values.js';

export { ENFORCEMENT_LEVELS };

/** Levels that a request can aim at: a lower level keeps no process off. */
export const AIMED_LEVELS = [
  'members',
  'cpuset',
  'partition',
  'isolated',
] as const satisfies readonly EnforcementLevel[];
/**
 * The enforcement levels that a request can aim at: those of {@link EnforcementLevel} that keep
 * processes off.
 */
export type AimedLevel = (typeof AIMED_LEVELS)[number];

export const DEFAULT_ENFORCEMENT: EnforcementRequest = {
  enforcement: 'partition',
  require: 'recorded',
  unmovableMembers: 'fail',
};

/**
 * The enforcement options of new grants; options that are left out are not in the result.
 * @throws ERR_INVALID_OPTION
 */
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
 * The same of one request: who requires a level aims at it.
 * @throws ERR_INVALID_OPTION
 */
export function parseAim(options: Record<string, unknown>): Partial<EnforcementRequest> {
  const given = parseEnforcement(options);
  const { require } = given;
  const aim = require === 'isolated' ? { enforcement: require, ...given } : given;
  if (require && aim.enforcement && !isAtLeast(aim.enforcement, require)) {
    invalidOption('require', require, `at most the level that is aimed at, ${aim.enforcement}`);
  }
  return aim;
}

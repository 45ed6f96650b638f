// Checks the enforcement options of managers and requests.
import { type EnforcementRequest, isAtLeast } from '../account/levels.js';
import { ENFORCEMENT_LEVELS, type EnforcementLevel } from '../account/pod-assignment.js';
import { invalidOption } from '../base/check-options.js';
import { option } from './values/option-values.js';

export { ENFORCEMENT_LEVELS };

/** The levels that a request can aim at: lower levels keep no process off. */
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
 * The enforcement options of a request. One that requires `isolated` aims at it.
 * @throws ERR_INVALID_OPTION
 */
export function parseAim(options: Record<string, unknown>): Partial<EnforcementRequest> {
  const parts = parseEnforcement(options);
  const { require } = parts;
  const aim = require === 'isolated' ? { enforcement: require, ...parts } : parts;
  if (require && aim.enforcement && !isAtLeast(aim.enforcement, require)) {
    invalidOption('require', require, `at most the level that the request aims at, ${aim.enforcement}`);
  }
  return aim;
}

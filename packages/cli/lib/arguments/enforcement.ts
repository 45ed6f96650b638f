// The options of commands for enforcement and quiet.
import { Option } from 'commander';
import type { AimedLevel, EnforcementLevel, RequestOptions } from 'numalign';
import { AIMED_LEVELS, ENFORCEMENT_LEVELS } from 'numalign/tools';
import { type QuietFlags, quietOptions } from './quiet.js';

export interface EnforcementFlags extends QuietFlags {
  require?: EnforcementLevel;
  enforcement?: AimedLevel;
  unmovableMembers?: 'fail' | 'report';
}

/** The options of one request. */
export function enforcementOptions(): Option[] {
  return [
    new Option('--enforcement <level>', 'strongest enforcement level to try (default: partition)').choices(
      AIMED_LEVELS,
    ),
    new Option('--require <level>', 'weakest enforcement level to accept (default: recorded)').choices(
      ENFORCEMENT_LEVELS,
    ),
    new Option(
      '--unmovable-members <what>',
      'what to do if a shared member cannot be moved (default: fail)',
    ).choices(['fail', 'report']),
    ...quietOptions(),
  ];
}

/** The options of a request with these flags. */
export function enforcementRequest({
  require,
  enforcement,
  unmovableMembers,
  quiet,
  requireQuiet,
}: EnforcementFlags): RequestOptions {
  return {
    ...(requireQuiet
      ? { require: { ...(require && { enforcement: require }), quiet: requireQuiet } }
      : require && { require }),
    ...(quiet && { quiet }),
    ...(enforcement && { enforcement }),
    ...(unmovableMembers && { unmovableMembers }),
  };
}

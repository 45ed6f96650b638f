// The options of commands for enforcement and quiet.
import { InvalidArgumentError, Option } from 'commander';
import type { AimedLevel, EnforcementLevel, RequestOptions } from 'numalign';
import { AIMED_LEVELS, checkManagerOptions, ENFORCEMENT_LEVELS } from 'numalign/tools';
import { asArgument } from './arguments.js';
import { type QuietFlags, quietOptions } from './quiet.js';

export interface EnforcementFlags extends QuietFlags {
  require?: EnforcementLevel;
  enforcement?: AimedLevel;
  unmovableMembers?: 'fail' | 'report';
}

const NO_CGROUPS = 'none';

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

/** An option of the machine; `more` ends its description. */
export function cgroupRootOption(more: string): Option {
  return new Option(
    '--cgroup-root <path>',
    `the cgroup below which grants get theirs; "none": no cgroups${more}`,
  ).argParser((value) => {
    if (value === '') throw new InvalidArgumentError('It is empty.');
    if (value !== NO_CGROUPS) asArgument(() => checkManagerOptions({ cgroupRoot: value }));
    return value;
  });
}

/** The value for the API: `none` is null. */
export function cgroupRootOf(value: string): string | null {
  return value === NO_CGROUPS ? null : value;
}

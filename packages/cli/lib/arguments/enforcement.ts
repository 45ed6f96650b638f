// The options of commands for enforcement and quiet.
import { InvalidArgumentError, Option } from 'commander';
import type { AcquireOptions, EnforcementLevel } from 'numalign';
import type { QuietOptions, QuietPart } from 'numalign/diagnostics';
import {
  AIMED_LEVELS,
  checkAcquireOptions,
  ENFORCEMENT_LEVELS,
  parseQuietPart,
  QUIET_PARTS,
  QUIET_TEXT,
} from 'numalign/tools';
import { asArgument } from './arguments.js';

export interface QuietFlags {
  /** `true`: without parts. */
  quiet?: true | QuietOptions;
  requireQuiet?: readonly QuietPart[];
}

function partOf(text: string): QuietOptions {
  const part = parseQuietPart(text);
  if (part) return part;
  throw new InvalidArgumentError(`"${text}" is none of ${QUIET_TEXT}. \`--\` goes before a command.`);
}

const isPart = (name: string): name is QuietPart => QUIET_PARTS.some((part) => part === name);

/** Parses parts such as `interrupts,idle=20,cache=25%`. */
export function quietParts(value: string): QuietOptions {
  const quiet: QuietOptions = Object.assign({}, ...value.split(',').map(partOf));
  asArgument(() => checkAcquireOptions({ cpu: 1, quiet }));
  return quiet;
}

/** Parses names such as `interrupts,workqueues`. */
export function partNames(value: string): readonly QuietPart[] {
  return value.split(',').map((name) => {
    if (isPart(name)) return name;
    throw new InvalidArgumentError(`"${name}" is not a part of quiet: ${QUIET_PARTS.join(', ')}.`);
  });
}

/** The options of one request. */
export function quietOptions(): Option[] {
  return [
    new Option(
      '--quiet [parts]',
      'keep kernel work off the CPUs: all, or parts such as interrupts,idle=20,cache=25%',
    ).argParser(quietParts),
    new Option(
      '--require-quiet <parts>',
      'parts of --quiet that must succeed completely, such as interrupts,workqueues',
    ).argParser(partNames),
  ];
}

export interface EnforcementFlags extends QuietFlags {
  require?: EnforcementLevel;
  enforcement?: NonNullable<AcquireOptions['enforcement']>;
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
}: EnforcementFlags): Pick<AcquireOptions, 'enforcement' | 'quiet' | 'require' | 'unmovableMembers'> {
  return {
    ...(requireQuiet
      ? { require: { ...(require && { enforcement: require }), quiet: requireQuiet } }
      : require && { require }),
    ...(quiet && { quiet }),
    ...(enforcement && { enforcement }),
    ...(unmovableMembers && { unmovableMembers }),
  };
}

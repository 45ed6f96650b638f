// The options of commands that keep kernel work off CPUs.
import { InvalidArgumentError, Option } from 'commander';
import type { QuietOptions, QuietPart } from 'numalign/diagnostics';
import { checkAcquireOptions, QUIET_PARTS } from 'numalign/tools';
import { asArgument } from './arguments.js';

export interface QuietFlags {
  /** `true`: without parts. */
  quiet?: true | QuietOptions;
  requireQuiet?: readonly QuietPart[];
}

const VALID =
  'interrupts, workqueues, packets, idle[=MICROSECONDS], frequency, cache=WAYS, cache=PERCENT%, or all, which is all but cache';

const wrong = (part: string) =>
  new InvalidArgumentError(`"${part}" is none of ${VALID}. \`--\` goes before a command.`);

// Without the cache, which needs an amount.
const ALL: QuietOptions = Object.fromEntries(
  QUIET_PARTS.flatMap((part) => (part === 'cache' ? [] : [[part, true]])),
);

const isPart = (name: string): name is QuietPart => QUIET_PARTS.some((part) => part === name);

function partOf(text: string): QuietOptions {
  const [, name = '', amount, percent] = /^(\w+)(?:=(\d+)(%?))?$/.exec(text) ?? [];
  if (name === 'all' && amount === undefined) return ALL;
  if (!isPart(name)) throw wrong(text);
  if (name === 'cache') {
    if (amount === undefined) throw wrong(text);
    return { cache: percent ? { percent: Number(amount) } : { ways: Number(amount) } };
  }
  if (amount === undefined) return { [name]: true };
  if (name !== 'idle' || percent) throw wrong(text);
  return { idle: { maxLatency: Number(amount) } };
}

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

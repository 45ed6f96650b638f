// Parses values on the command line for the API. A wrong value is a usage error.
import { InvalidArgumentError, Option } from 'commander';
import { type AcquireOptions, CpuSet, NumalignError } from 'numalign';
import type { CpuManagerPolicyOptions } from 'numalign/kubelet';
import { checkManagerOptions, parseQuantity } from 'numalign/tools';

/** Turns a refusal of the API into a usage error. */
export function asArgument<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof NumalignError) throw new InvalidArgumentError(error.message.replace(/[^?]$/, '$&.'));
    throw error;
  }
}

/** A Linux list such as `0-3,8`; `none` is the empty one. */
export function cpuList(value: string): CpuSet {
  return asArgument(() => CpuSet.parse(value === 'none' ? '' : value));
}

/** The rule for an amount of CPUs without `--mixed`. */
export const WHOLE_CPUS = 'It must be a whole number of CPUs, at least 1.';

/**
 * Parses whole and fractional amounts: the command checks whether fractions are valid (`--mixed`).
 */
export function cpuAmount(value: string): number {
  const amount = Number(value);
  if (!/^\d+(\.\d{1,3})?$/.test(value) || amount < 1 || amount > CpuSet.MAX_ID) {
    throw new InvalidArgumentError(WHOLE_CPUS);
  }
  return amount;
}

/** Like {@link cpuAmount}, or a range such as `2..8`. */
export function cpuAmountOrRange(value: string): AcquireOptions['cpu'] {
  const [, least, most] = /^(\d+)\.\.(\d+)$/.exec(value) ?? [];
  if (!value.includes('..')) return cpuAmount(value);
  const [min, max] = [Number(least), Number(most)];
  if (min >= 1 && max >= min && max <= CpuSet.MAX_ID) return { min, max };
  throw new InvalidArgumentError(
    'A range must be from the least to the most CPUs, at least 1, such as 2..8.',
  );
}

const MOST_WEIGHT = 10_000;

export function weight(value: string): number {
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= 1 && number <= MOST_WEIGHT) return number;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${MOST_WEIGHT}.`);
}

// The greatest process id of Linux (PID_MAX_LIMIT).
const MAX_PID = 1 << 22;

export function processId(value: string): number {
  const pid = Number(value);
  if (!/^\d+$/.test(value) || pid < 1 || pid > MAX_PID)
    throw new InvalidArgumentError(`"${value}" is not a process id, a whole number from 1 to ${MAX_PID}.`);
  return pid;
}

/** Adds `full-pcpus-only` or `full-pcpus-only=false` to the options before. */
export function cpuOption(value: string, before: CpuManagerPolicyOptions = {}): CpuManagerPolicyOptions {
  const [, name, flag = 'true'] = /^([^=]*)(?:=(.*))?$/s.exec(value)!;
  const options = { ...before, [name!]: flag };
  asArgument(() => checkManagerOptions({ cpuManagerPolicyOptions: options }));
  return options;
}

/** Checks an amount such as `2Gi`. */
export function quantity(value: string): string {
  if (asArgument(() => parseQuantity(value, 'It')) < 0n)
    throw new InvalidArgumentError('It must be zero or more.');
  return value;
}

/** Checks an amount of bytes: `500m` is half of one. */
export function bytes(value: string): string {
  if (asArgument(() => parseQuantity(quantity(value), 'It')) % 10n ** 9n === 0n) return value;
  throw new InvalidArgumentError(`It must be whole bytes, such as ${value.replace(/m$/, 'Mi')}.`);
}

/** Adds `hugepages-2Mi=64Mi` to the amounts before. */
export function resource(value: string, before: Record<string, string> = {}): Record<string, string> {
  const match = /^([^=]+)=(.+)$/s.exec(value);
  if (!match) throw new InvalidArgumentError('It must be a name and an amount, such as hugepages-2Mi=64Mi.');
  return { ...before, [match[1]!]: quantity(match[2]!) };
}

export function outputOption(): Option {
  return new Option('--output <format>', 'output format').choices(['text', 'json']).default('text');
}

/** How often a command that goes on looks. */
export function intervalOption(when = ''): Option {
  return new Option('--interval <seconds>', `how often${when} (default: 1)`).argParser(intervalSeconds);
}

// A timer takes at most 24 days, and each look takes milliseconds.
function intervalSeconds(value: string): number {
  const seconds = Number(value);
  if (!/^\d+(\.\d+)?$/.test(value) || seconds < 0.1 || seconds > 86_400) {
    throw new InvalidArgumentError('It must be a number of seconds from 0.1 to 86400.');
  }
  return seconds;
}

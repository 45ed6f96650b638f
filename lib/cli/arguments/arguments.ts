// Values on the command line -> what the API takes. What is wrong is a usage error.
import { InvalidArgumentError, Option } from 'commander';
import { NumalignError } from '../../base/errors.js';
import { type FeatureGates, KUBELET_VERSIONS } from '../../base/kubelet-features.js';
import type { CpuManagerPolicyOptions, ReservedMemory } from '../../entries/kubelet.js';
import { type AcquireOptions, CpuSet } from '../../index.js';
import { parseConfig } from '../../input/config.js';
import { parseMachineOptions } from '../../input/machine-options.js';
import { parseQuantity } from '../../input/values/quantity.js';

/** What the API refuses, as a usage error. */
export function asArgument<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof NumalignError) throw new InvalidArgumentError(`${error.message}.`);
    throw error;
  }
}

/** A Linux list such as `0-3,8`; `none` is the empty one. */
export function cpuList(value: string): CpuSet {
  return asArgument(() => CpuSet.parse(value === 'none' ? '' : value));
}

/**
 * Like {@link cpuList}, or `all`. (Not null as in the API: commander takes null for a parser that
 * failed.)
 */
export function cpuListOrAll(value: string): CpuSet | 'all' {
  return value === 'all' ? value : cpuList(value);
}

/** Like {@link cpuList}, or `kernel`. */
export function cpuListOrKernel(value: string): CpuSet | 'kernel' {
  return value === 'kernel' ? value : cpuList(value);
}

/** What an amount of CPUs must be, without `--mixed`. */
export const WHOLE_CPUS = 'It must be a whole number of CPUs, at least 1.';

/** A fraction is for the command to judge, which may have `--mixed`. */
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
  if (least === undefined || most === undefined) return cpuAmount(value);
  const [min, max] = [cpuAmount(least), cpuAmount(most)];
  if (max >= min) return { min, max };
  throw new InvalidArgumentError('A range must be from the least to the most CPUs, such as 2..8.');
}

const MOST_WEIGHT = 10_000;

export function weight(value: string): number {
  const given = Number(value);
  if (/^\d+$/.test(value) && given >= 1 && given <= MOST_WEIGHT) return given;
  throw new InvalidArgumentError(`It must be a whole number from 1 to ${MOST_WEIGHT}.`);
}

// Linux gives no higher ones (PID_MAX_LIMIT).
const MAX_PID = 1 << 22;

export function processId(value: string): number {
  const pid = Number(value);
  if (!/^\d+$/.test(value) || pid < 1 || pid > MAX_PID)
    throw new InvalidArgumentError(`"${value}" is no process id.`);
  return pid;
}

/** `full-pcpus-only` or `full-pcpus-only=false`, added to those before. */
export function cpuOption(value: string, before: CpuManagerPolicyOptions = {}): CpuManagerPolicyOptions {
  const [, name, flag = 'true'] = /^([^=]*)(?:=(.*))?$/s.exec(value)!;
  const options = { ...before, [name!]: flag };
  asArgument(() => parseConfig({ cpuManagerPolicyOptions: options }));
  return options;
}

/** `0:memory=1Gi`, added to those before; `none`: an empty list. */
export function reservedMemory(
  value: string,
  before: readonly ReservedMemory[] = [],
): readonly ReservedMemory[] {
  if (value === 'none') return [];
  const match = /^(\d+):([^=]+)=(.+)$/s.exec(value);
  if (!match)
    throw new InvalidArgumentError('It must be a NUMA node, a type and an amount, such as 0:memory=1Gi.');
  const [, node, type, amount] = match;
  const reserved = [...before, { numaNode: Number(node), limits: { [type!]: amount! } }];
  asArgument(() => parseMachineOptions({ reservedMemory: reserved }));
  return reserved;
}

/** `PodLevelResources=true,DRAExtendedResource=false`, added to those before. */
export function featureGates(value: string, before: Partial<FeatureGates> = {}): Partial<FeatureGates> {
  const flags = { true: true, false: false } as Readonly<Record<string, boolean>>;
  const given = value.split(',').map((each) => {
    const [, name, flag] = /^([^=]+)=(true|false)$/.exec(each) ?? [];
    if (name === undefined || flag === undefined)
      throw new InvalidArgumentError('It must be gates and flags, such as PodLevelResourceManagers=true.');
    return [name, flags[flag]] as const;
  });
  const gates = { ...before, ...Object.fromEntries(given) };
  asArgument(() => parseMachineOptions({ featureGates: gates }));
  return gates;
}

export function kubeletVersionOption(): Option {
  return new Option('--kubelet-version <version>', 'decide as this version of the kubelet').choices(
    KUBELET_VERSIONS,
  );
}

export function featureGatesOption(): Option {
  return new Option(
    '--feature-gates <name=bool,...>',
    'feature gates of that kubelet; may be repeated',
  ).argParser(featureGates);
}

/** An amount such as `2Gi`, checked. */
export function quantity(value: string): string {
  if (asArgument(() => parseQuantity(value, 'It')) < 0n)
    throw new InvalidArgumentError('It must be zero or more.');
  return value;
}

/** `hugepages-2Mi=64Mi`, added to those before. */
export function resource(value: string, before: Record<string, string> = {}): Record<string, string> {
  const match = /^([^=]+)=(.+)$/s.exec(value);
  if (!match) throw new InvalidArgumentError('It must be a name and an amount, such as hugepages-2Mi=64Mi.');
  return { ...before, [match[1]!]: quantity(match[2]!) };
}

export function outputOption(): Option {
  return new Option('--output <format>', 'output format').choices(['text', 'json']).default('text');
}

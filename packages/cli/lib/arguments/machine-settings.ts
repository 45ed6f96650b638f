// The options of commands for the machine's settings. They follow from the table of settings.
import { InvalidArgumentError, Option } from 'commander';
import type { CpuSet } from 'numalign';
import type { FeatureGates, KubeletVersion } from 'numalign/kubelet';
import { checkManagerOptions, MACHINE_FLAGS, type MachineOptions } from 'numalign/tools';
import { asArgument, cpuList } from './arguments.js';

type ReservedMemory = NonNullable<MachineOptions['reservedMemory']>;

/** Flags have the names of the settings. A word stands for null, which for commander is a failure. */
export interface SettingFlags {
  managedCPUs?: CpuSet | 'all';
  reservedSystemCPUs?: CpuSet;
  strictCPUReservation?: boolean;
  isolatedCPUs?: CpuSet | 'kernel';
  reservedMemory?: ReservedMemory;
  cgroupRoot?: string;
  kubeletVersion?: KubeletVersion;
  featureGates?: Partial<FeatureGates>;
}

type Setting = keyof SettingFlags;

const SETTINGS = Object.keys(MACHINE_FLAGS) as Setting[];

const flagOf = (name: Setting) => MACHINE_FLAGS[name]!;

// By the name of the value in the usage.
const PARSERS: Readonly<Record<string, (value: string, before: never) => unknown>> = {
  list: cpuList,
  path: cgroupRoot,
  'node:type=quantity': reservedMemory,
  'name=bool,...': featureGates,
};

/** The option for a setting; `more` ends its description. */
export function settingOption(name: Setting, more = '', nullWord = flagOf(name).nullWord): Option {
  const { usage, help, values } = flagOf(name);
  const option = new Option(usage, `${help}${more}`);
  option.attributeName = () => name;
  if (values) return option.choices(values);
  const parse = PARSERS[/<(.*)>/.exec(usage)?.[1] ?? ''];
  return parse
    ? option.argParser((value, before) => (value === nullWord ? value : parse(value, before as never)))
    : option;
}

/** The option of a command that opens a manager, whose value must be that on record. */
export const agreedOption = (name: Setting): Option =>
  settingOption(name, '; must match the recorded settings');

/** The options of `configure`. */
export function configureOptions(): Option[] {
  const withoutStrict = new Option('--no-strict', 'the reserved CPUs are shared');
  withoutStrict.attributeName = () => 'strictCPUReservation';
  return SETTINGS.flatMap((name) => {
    const { configure, configureNull } = flagOf(name);
    const option = settingOption(name, configure, configureNull);
    return name === 'strictCPUReservation' ? [option, withoutStrict] : [option];
  });
}

/** The settings of the flags. */
export function settingsOf(flags: SettingFlags): MachineOptions {
  const given = SETTINGS.filter((name) => flags[name] !== undefined);
  const isNull = (name: Setting) => {
    const { nullWord, configureNull = nullWord } = flagOf(name);
    return flags[name] === configureNull;
  };
  return Object.fromEntries(given.map((name) => [name, isNull(name) ? null : flags[name]]));
}

function cgroupRoot(value: string): string {
  if (value === '') throw new InvalidArgumentError('It is empty.');
  asArgument(() => checkManagerOptions({ cgroupRoot: value }));
  return value;
}

/** Adds `0:memory=1Gi` to the list before; `none` is an empty list. */
function reservedMemory(value: string, before: ReservedMemory = []): ReservedMemory {
  if (value === 'none') return [];
  const match = /^(\d+):([^=]+)=(.+)$/s.exec(value);
  if (!match)
    throw new InvalidArgumentError('It must be a NUMA node, a type and an amount, such as 0:memory=1Gi.');
  const [, node, type, amount] = match;
  const reserved = [...before, { numaNode: Number(node), limits: { [type!]: amount! } }];
  asArgument(() => checkManagerOptions({ reservedMemory: reserved }));
  return reserved;
}

/** Adds `PodLevelResources=true,DRAExtendedResource=false` to the gates before. */
function featureGates(value: string, before: Partial<FeatureGates> = {}): Partial<FeatureGates> {
  const entries = value.split(',').map((each) => {
    const [, name, flag] = /^([^=]+)=(true|false)$/.exec(each) ?? [];
    if (name === undefined)
      throw new InvalidArgumentError('It must be gates and flags, such as PodLevelResourceManagers=true.');
    return [name, flag === 'true'] as const;
  });
  const gates = { ...before, ...Object.fromEntries(entries) };
  asArgument(() => checkManagerOptions({ featureGates: gates }));
  return gates;
}

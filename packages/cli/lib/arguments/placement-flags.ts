// The options of commands for placement and machine settings, and a kubelet's configuration below
// them.
import { Option } from 'commander';
import { type ManagerOptions, NumalignError } from 'numalign';
import type { CpuManagerPolicyOptions } from 'numalign/kubelet';
import {
  checkManagerOptions,
  excludedBy,
  type OptionTables,
  optionRows,
  PLACEMENT_OPTIONS,
  type PlacementOptions,
  type RequestPlacementOptions,
  type Setter,
} from 'numalign/tools';
import { cpuOption } from './arguments.js';
import { type FileDocument, fileName, inPlace, readDocuments } from './documents.js';
import { agreedOption, type SettingFlags, settingOption, settingsOf } from './machine-settings.js';

/** The flags of every command that opens a manager. */
export interface OpeningFlags extends SettingFlags {
  config?: string;
  cpuOption?: CpuManagerPolicyOptions;
}

/** Flags of placement have the names of the options that they set. */
export interface PlacementFlags extends OpeningFlags, PlacementOptions, RequestPlacementOptions {}

/** The flags of placement of `run`, which places its own command, or of commands that place pods. */
export function placementFlags(of: 'run' | 'pods'): Option[] {
  return optionRows(PLACEMENT_OPTIONS).flatMap(([name, { flag, check, default: value }]) => {
    if (flag?.of !== of && flag?.of !== 'all') return [];
    const { values } = check;
    const isWord = typeof value === 'string' || !(values || excludedBy(name).length > 0);
    const byDefault = isWord ? ` (default: ${value || 'off'})` : '';
    const option = new Option(flag.usage, `${flag.help}${byDefault}`).conflicts(excludedBy(name));
    option.attributeName = () => name;
    return values ? option.choices(values) : option;
  });
}

/** The options of placement that these setters have, from their flags. */
export function placementOf(
  flags: object,
  setters: readonly Setter[],
): PlacementOptions & RequestPlacementOptions {
  const given: Record<string, unknown> = { ...flags };
  const valuesOf = (table: OptionTables): object =>
    Object.fromEntries(
      Object.entries(table).flatMap(([name, entry]) => {
        const value = 'rows' in entry ? valuesOf(entry.rows) : given[name];
        const isGiven = value !== undefined && (typeof value !== 'object' || Object.keys(value!).length > 0);
        return isGiven && setters.includes(entry.by) ? [[name, value]] : [];
      }),
    );
  return valuesOf(PLACEMENT_OPTIONS);
}

export function openingOptions(): Option[] {
  return [
    new Option('--config <file>', "a KubeletConfiguration; what it leaves out has Kubernetes' defaults"),
    new Option('--cpu-option <name[=bool]>', 'an option of the static CPU policy; may be repeated').argParser(
      cpuOption,
    ),
    agreedOption('reservedSystemCPUs'),
    agreedOption('isolatedCPUs'),
    agreedOption('cgroupRoot'),
    settingOption('kubeletVersion'),
    settingOption('featureGates'),
  ];
}

export function placementOptions(): Option[] {
  return [...openingOptions(), ...placementFlags('pods')];
}

async function readConfiguration(
  file: string,
  isRight: (document: FileDocument) => boolean,
): Promise<{ cpuManagerPolicyOptions?: CpuManagerPolicyOptions | null }> {
  const [document, second] = await readDocuments(file);
  if (!document || second) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      `${fileName(file)}: it must be one document, a KubeletConfiguration`,
      { value: file },
    );
  }
  const { value, place } = document;
  if (isRight(document)) inPlace(place, () => checkManagerOptions({ kubeletConfiguration: value as object }));
  return value as object;
}

/** The options of a manager with these flags. What is not `isRight` is not checked further. */
export async function managerOptions(
  flags: PlacementFlags,
  isRight: (document: FileDocument) => boolean = () => true,
): Promise<ManagerOptions> {
  const { config, cpuOption } = flags;
  const document = config === undefined ? undefined : await readConfiguration(config, isRight);
  return {
    ...(document && { kubeletConfiguration: document }),
    ...placementOf(flags, ['manager', 'both']),
    // Added to the document's one by one: the API's option would replace them all.
    ...(cpuOption && { cpuManagerPolicyOptions: { ...document?.cpuManagerPolicyOptions, ...cpuOption } }),
    ...settingsOf(flags),
  };
}

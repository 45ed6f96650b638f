// The devices that a command registers: patterns on the command line, or lists and patterns in a
// file.
import { InvalidArgumentError, Option } from 'commander';
import { NumalignError } from 'numalign';
import { checkDeviceSelection, PATTERN_FIELDS } from 'numalign/tools';
import type { DevicePattern, DeviceSelection } from 'numalign/topology';
import { asArgument } from './arguments.js';
import { fileName, inPlace, readDocuments } from './documents.js';

/** Selections by resource. */
export type DeviceSelections = Record<string, DeviceSelection>;

export interface DeviceFlags {
  device?: DeviceSelections;
  devices?: string;
}

const EXAMPLE = 'example.com/nic=class:0200,vendor:8086';

/** Parses fields joined by commas, alternatives by `+`: `class:02*,vendor:8086+15b3`. */
function parsePattern(text: string): DevicePattern {
  const pattern = new Map<string, string | string[] | boolean>();
  for (const part of text.split(',')) {
    const [, field, value] = /^([^:]*):(.*)$/s.exec(part) ?? [];
    if (!field || !value) {
      throw new InvalidArgumentError(
        `"${part}" is not a field and value such as class:0200; the fields are ${PATTERN_FIELDS.join(', ')}.`,
      );
    }
    if (pattern.has(field)) {
      throw new InvalidArgumentError(`"${field}" is given twice; alternatives are joined by +.`);
    }
    const texts = value.split('+');
    const isFlag = field === 'isVirtualFunction' && (value === 'true' || value === 'false');
    pattern.set(field, isFlag ? value === 'true' : texts.length === 1 ? value : texts);
  }
  return Object.fromEntries(pattern);
}

/** Adds `example.com/nic=class:0200` to the selections before. */
export function deviceSelection(text: string, before: DeviceSelections = {}): DeviceSelections {
  const equals = text.indexOf('=');
  if (equals < 0) throw new InvalidArgumentError(`It must be a resource and a pattern such as ${EXAMPLE}.`);
  const resource = text.slice(0, equals);
  if (Object.hasOwn(before, resource))
    throw new InvalidArgumentError(`The devices of ${resource} are given twice.`);
  const pattern = parsePattern(text.slice(equals + 1));
  return { ...before, [resource]: asArgument(() => checkDeviceSelection(pattern, resource)) };
}

export function deviceOptions(): Option[] {
  return [
    new Option(
      '--device <resource=pattern>',
      `the PCI devices of a resource, such as ${EXAMPLE}; may be repeated`,
    ).argParser(deviceSelection),
    new Option('--devices <file>', 'file of patterns or lists of devices by resource, as YAML or JSON'),
  ];
}

async function readSelections(file: string): Promise<DeviceSelections> {
  const [document, second] = await readDocuments(file);
  const value = document?.value;
  if (second || typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new NumalignError(
      'ERR_INVALID_ARGUMENT',
      `${fileName(file)}: it must be one document of patterns or lists of devices by resource, such as ` +
        "{ example.com/nic: { class: '0200' }, example.com/gpu: [{ id: gpu0, numaNodes: [0] }] }",
      { value: file },
    );
  }
  inPlace(document!.place, () => {
    for (const [resource, selection] of Object.entries(value)) checkDeviceSelection(selection, resource);
  });
  return value as DeviceSelections;
}

/** The selections of the flags. A resource on the command line replaces the file's. */
export async function devicesOf({ device, devices }: DeviceFlags): Promise<DeviceSelections> {
  return { ...(devices !== undefined && (await readSelections(devices))), ...device };
}

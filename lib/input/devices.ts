// Devices of a resource: PCI devices chosen by a pattern, or listed one by one. Pure.
import { checkOptions, invalidOption, isName, NAME } from '../base/check-options.js';
import type { PciDevice } from '../machine/machine-description.js';
import type { Topology } from '../machine/topology.js';
import { isExtendedResource } from './pods/resource-amounts.js';

/** A text, or a list of texts of which one must match. A `*` at the end matches any ending. */
export type DeviceTexts = string | readonly string[];

/**
 * Selects the PCI devices of a machine that match every field of the pattern. Numbers are
 * hexadecimal texts in the kernel's form: `'0200'`, not `0x200`.
 *
 * A physical function and its virtual functions have the same class, vendor and node, so that a
 * pattern can match both. To grant the virtual functions, set `isVirtualFunction: true`, since the
 * physical function carries them all.
 */
export interface DevicePattern {
  /** Address, such as `0000:3b:00.0` or `0000:3b:*`. */
  readonly id?: DeviceTexts;
  /** Base class and subclass, such as `0200` for Ethernet or `02*` for any network. */
  readonly class?: DeviceTexts;
  /** PCI vendor id: four hexadecimal digits such as `8086`, or the first of them and `*`. */
  readonly vendor?: DeviceTexts;
  /** PCI device id: four hexadecimal digits such as `1572`, or the first of them and `*`. */
  readonly device?: DeviceTexts;
  /** The kernel's driver, such as `vfio-pci`. Devices without one do not match. */
  readonly driver?: DeviceTexts;
  /** Any of the device's names, such as `eth0` or `nvme*`. */
  readonly name?: DeviceTexts;
  /** For virtual functions: the address of their physical function. */
  readonly parent?: DeviceTexts;
  /** Virtual functions only, or everything else only. */
  readonly isVirtualFunction?: boolean;
}

/** A device in a list of devices. */
export interface DeviceSpec {
  /** Unique among the resource's devices. */
  readonly id: string;
  /**
   * True if it can be granted.
   * @default `true`
   */
  readonly healthy?: boolean;
  /** The NUMA nodes that it is near; null, empty or left out: no node is nearer than another. */
  readonly numaNodes?: Iterable<number> | null;
}

/** The devices of a resource: a pattern over the machine's PCI devices, or a list. */
export type DeviceSelection = DevicePattern | readonly DeviceSpec[];

/** A device that can be granted. */
export interface Device {
  readonly id: string;
  readonly healthy: boolean;
  /** Ascending; null if it is near no particular node. */
  readonly numaNodes: readonly number[] | null;
}

/** Compares texts by their bytes, as the kubelet sorts ids. */
export function byteOrder(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}

interface TextField {
  readonly form: RegExp;
  readonly valid: string;
  /** The texts of a device of which one must match. */
  readonly of: (device: PciDevice) => readonly string[];
  readonly isHexadecimal: boolean;
}

// The beginning of an address before a `*` is not checked any further.
const ADDRESS = /^([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]|[0-9a-f:.]*\*)$/i;
const NUMBER = /^([0-9a-f]{4}|[0-9a-f]{0,3}\*)$/i;
const ANY_NAME = /^[^*]+\*?$|^\*$/s;

function numberField(example: string, of: TextField['of']): TextField {
  const valid = `a text of four hexadecimal digits such as '${example}', or of fewer and '*'`;
  return { form: NUMBER, valid, of, isHexadecimal: true };
}

function addressField(of: TextField['of']): TextField {
  return {
    form: ADDRESS,
    valid: "an address such as '0000:3b:00.0' or '0000:3b:*'",
    of,
    isHexadecimal: true,
  };
}

function nameField(example: string, of: TextField['of']): TextField {
  return {
    form: ANY_NAME,
    valid: `a name such as '${example}', with '*' at its end only`,
    of,
    isHexadecimal: false,
  };
}

const listOf = (text: string | null) => (text === null ? [] : [text]);

const TEXT_FIELDS = {
  id: addressField((device) => [device.id]),
  class: numberField('0200', (device) => [device.class]),
  vendor: numberField('8086', (device) => [device.vendor]),
  device: numberField('1572', (device) => [device.device]),
  driver: nameField('vfio-pci', (device) => listOf(device.driver)),
  name: nameField('eth0', (device) => device.names),
  parent: addressField((device) => listOf(device.parent)),
} as const satisfies Record<string, TextField>;

type TextKey = keyof typeof TEXT_FIELDS;

/** The fields of a {@link DevicePattern}. */
export const PATTERN_FIELDS = [...(Object.keys(TEXT_FIELDS) as TextKey[]), 'isVirtualFunction'] as const;

const SPEC_FIELDS = ['id', 'healthy', 'numaNodes'] as const;

function alternatives(texts: DeviceTexts): readonly string[] {
  return typeof texts === 'string' ? [texts] : texts;
}

/** @throws ERR_INVALID_OPTION if a value is not a pattern, or has no field */
export function checkDevicePattern(value: unknown, name: string): DevicePattern {
  const pattern = checkOptions(value, PATTERN_FIELDS, name);
  const fields = PATTERN_FIELDS.filter((field) => pattern[field] !== undefined);
  if (fields.length === 0)
    invalidOption(name, value, `a pattern with at least one of ${PATTERN_FIELDS.join(', ')}`);
  for (const field of fields) {
    const texts = pattern[field];
    if (field === 'isVirtualFunction') {
      if (typeof texts !== 'boolean') invalidOption(`${name}.${field}`, texts, 'true or false');
      continue;
    }
    const { form, valid } = TEXT_FIELDS[field];
    const list: unknown[] = Array.isArray(texts) ? texts : [texts];
    if (list.length === 0) invalidOption(`${name}.${field}`, texts, `${valid}, or a list of at least one`);
    for (const text of list) {
      if (typeof text !== 'string' || !form.test(text)) invalidOption(`${name}.${field}`, text, valid);
    }
  }
  return pattern as DevicePattern;
}

function fits(device: PciDevice, pattern: DevicePattern): boolean {
  const { isVirtualFunction } = pattern;
  if (isVirtualFunction !== undefined && isVirtualFunction !== (device.parent !== null)) return false;
  return (Object.keys(TEXT_FIELDS) as TextKey[]).every((key) => {
    const texts = pattern[key];
    if (texts === undefined) return true;
    const { of, isHexadecimal } = TEXT_FIELDS[key];
    return alternatives(texts).some((text) => {
      const form = isHexadecimal ? text.toLowerCase() : text;
      return of(device).some((value) =>
        form.endsWith('*') ? value.startsWith(form.slice(0, -1)) : value === form,
      );
    });
  });
}

/**
 * Returns the PCI devices of a machine that match a pattern, by id. A physical function and its
 * virtual functions can both match, unless the pattern has `isVirtualFunction`.
 * @throws ERR_INVALID_OPTION
 */
export function selectDevices(topology: Pick<Topology, 'devices'>, pattern: DevicePattern): PciDevice[] {
  checkDevicePattern(pattern, 'pattern');
  return topology.devices.filter((device) => fits(device, pattern));
}

function checkSpec(value: unknown, name: string): DeviceSpec {
  const { id, healthy, numaNodes } = checkOptions(value, SPEC_FIELDS, name);
  if (!isName(id)) invalidOption(`${name}.id`, id, NAME);
  if (healthy !== undefined && typeof healthy !== 'boolean') {
    invalidOption(`${name}.healthy`, healthy, 'true or false');
  }
  const isSet =
    typeof numaNodes === 'object' &&
    typeof (numaNodes as Iterable<unknown> | null)?.[Symbol.iterator] === 'function';
  if (numaNodes !== undefined && numaNodes !== null && !isSet) {
    invalidOption(`${name}.numaNodes`, numaNodes, 'a list of NUMA nodes such as [0], or null');
  }
  return value as DeviceSpec;
}

/** Checks a selection without a machine. @throws ERR_INVALID_OPTION */
export function checkDeviceSelection(value: unknown, resource: string): DeviceSelection {
  if (typeof resource !== 'string' || !isExtendedResource(resource))
    invalidOption('the resource', resource, "named such as 'example.com/nic'");
  const name = `devices['${resource}']`;
  if (!Array.isArray(value)) return checkDevicePattern(value, name);
  const ids = new Set<string>();
  for (const [i, spec] of value.entries()) {
    const { id } = checkSpec(spec, `${name}[${i}]`);
    if (ids.has(id)) invalidOption(`${name}[${i}].id`, id, 'unique among the devices of the resource');
    ids.add(id);
  }
  return value as readonly DeviceSpec[];
}

function parseNodes(
  numaNodes: DeviceSpec['numaNodes'],
  topology: Topology,
  name: string,
): readonly number[] | null {
  const nodes = new Set(numaNodes ?? []);
  for (const node of nodes) {
    if (!topology.numaNodes.includes(node)) {
      invalidOption(name, node, `NUMA nodes of the machine, which are ${topology.numaNodes.join(', ')}`);
    }
  }
  return nodes.size === 0 ? null : Object.freeze([...nodes].sort((a, b) => a - b));
}

/**
 * The devices of a resource on a machine, in the byte order of their ids. The list is empty if a
 * pattern matches no device.
 * @throws ERR_INVALID_OPTION
 */
export function parseDevices(
  selection: DeviceSelection,
  topology: Topology,
  resource: string,
): readonly Device[] {
  checkDeviceSelection(selection, resource);
  const specs: readonly DeviceSpec[] = Array.isArray(selection)
    ? selection
    : selectDevices(topology, selection as DevicePattern);
  const devices = specs.map(({ id, healthy = true, numaNodes }, i) => {
    const nodes = parseNodes(numaNodes, topology, `devices['${resource}'][${i}].numaNodes`);
    return Object.freeze({ id, healthy, numaNodes: nodes });
  });
  return Object.freeze(devices.sort((a, b) => byteOrder(a.id, b.id)));
}

// ManagerPart: what numalign's manager gets of a configuration: options of placement, which each
// request may have, and settings that all users of the machine share. Pure.
import type { ManagerOptions } from 'numalign';
import { FEATURE_GATES, type MachineOptions, PLACEMENT_OPTIONS } from 'numalign/tools';
import type { GivenValues } from './document.js';
import { FIELD_NAMES, type FieldName, rowOf } from './fields.js';

interface KubeletField {
  readonly name?: string;
  readonly default?: unknown;
}

export interface ManagerPart {
  /** With the KubeletConfiguration, less its settings of the machine. */
  readonly placement: ManagerOptions;
  /** Those that the configuration sets. */
  readonly settings: MachineOptions;
}

const STRICT = 'strict-cpu-reservation';
const AMOUNTS = ['systemReserved', 'kubeReserved'] as const;
const RESERVATIONS = ['reservedSystemCPUs', ...AMOUNTS] as const;
const SETTINGS = [...RESERVATIONS, 'reservedMemory', 'featureGates'] as const;

const PLACEMENT: ReadonlySet<FieldName> = new Set(FIELD_NAMES.filter((name) => name in PLACEMENT_OPTIONS));
const MACHINE: readonly FieldName[] = FIELD_NAMES.filter((name) => rowOf(name).part === 'machine');

const pick = (object: object, names: Iterable<string>) =>
  Object.fromEntries(
    [...names].flatMap((name) => {
      const value = (object as Record<string, unknown>)[name];
      return value === undefined || value === null ? [] : [[name, value]];
    }),
  );

/** All of it as options of one manager. `given`: the fields that are set. */
export const managerOptions = (given: GivenValues, document: object | undefined): ManagerOptions => ({
  ...ownSettings(given),
  ...pick(given, PLACEMENT),
  ...(document !== undefined && { kubeletConfiguration: document }),
});

const ownSettings = (given: GivenValues): MachineOptions =>
  Object.fromEntries(MACHINE.filter((name) => name in given).map((name) => [name, given[name]]));

/** `given`: the fields that are set; `document`: a KubeletConfiguration. */
export function managerPart(given: GivenValues, document: Record<string, unknown> | undefined): ManagerPart {
  const own = ownSettings(given);
  const placement = pick(given, PLACEMENT);
  if (document === undefined) return { placement, settings: own };
  const { rest, settings } = split(document);
  // An amount beside the document takes precedence over the list in it.
  if (AMOUNTS.some((name) => name in own)) delete settings.reservedSystemCPUs;
  return { placement: { ...placement, kubeletConfiguration: rest }, settings: { ...settings, ...own } };
}

/** What a KubeletConfiguration sets: what it leaves out has Kubernetes' default. */
export function fromDocument(document: Record<string, unknown>): GivenValues {
  const options = [...PLACEMENT].flatMap((name): [string, unknown][] => {
    const field = (PLACEMENT_OPTIONS as Readonly<Record<string, { kubelet: KubeletField | null }>>)[name]!
      .kubelet;
    return field ? [[name, document[field.name ?? name] ?? field.default]] : [];
  });
  return pick({ ...Object.fromEntries(options), ...split(document).settings }, FIELD_NAMES);
}

function split(document: Record<string, unknown>) {
  const { cpuManagerPolicyOptions: options, ...others } = document;
  const rest = Object.fromEntries(
    Object.entries(others).filter(([name]) => !(SETTINGS as readonly string[]).includes(name)),
  );
  const { [STRICT]: strict, ...cpuOptions } = (options ?? {}) as Record<string, unknown>;
  const settings: Record<string, unknown> = pick(document, SETTINGS);
  // A kubelet reads an empty text as a missing field, and has many other gates.
  if (settings.reservedSystemCPUs === '') delete settings.reservedSystemCPUs;
  if (settings.featureGates) settings.featureGates = pick(settings.featureGates, FEATURE_GATES);
  return {
    rest: { ...rest, ...(options !== undefined && { cpuManagerPolicyOptions: cpuOptions }) },
    settings: {
      ...settings,
      ...(strict !== undefined && { strictCPUReservation: String(strict) === 'true' }),
    } as Record<string, unknown>,
  };
}

/**
 * The settings to change from one configuration to the next: those of the next, and the defaults of
 * those that it leaves out.
 */
export function changedSettings(before: MachineOptions, after: MachineOptions): MachineOptions {
  const removed = MACHINE.filter((name) => name in before && !(name in after));
  // Reserved CPUs have three names.
  const isReserved = RESERVATIONS.some((name) => name in after);
  const defaults = removed.flatMap((name): [string, unknown][] => {
    if (!(RESERVATIONS as readonly string[]).includes(name)) return [[name, rowOf(name).default]];
    return isReserved ? [] : [['reservedSystemCPUs', '']];
  });
  return { ...Object.fromEntries(defaults), ...after };
}

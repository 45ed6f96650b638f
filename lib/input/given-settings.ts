// The settings of the machine that an opener gives.
import { checkOptions, invalidOption } from '../base/check-options.js';
import type { FeatureGates } from '../base/kubelet-features.js';
import { MACHINE_OPTIONS, STRICT } from './machine-options.js';
import type { MachineRow } from './option-table.js';
import { option, parseFlag } from './values/option-values.js';
import { wholeValue } from './values/quantity.js';

type Table = typeof MACHINE_OPTIONS;
type Values = {
  readonly [Name in keyof Table]:
    | (Table[Name] extends MachineRow<unknown, infer Value> ? Value : never)
    | undefined;
};

/**
 * The machine settings among an opener's options; undefined to take the recorded value. Reserved
 * CPUs may be a number, from which numalign chooses CPUs later. Feature gates may be incomplete.
 */
export interface GivenSettings extends Omit<Values, 'systemReserved' | 'kubeReserved'> {
  readonly reservedCount: number | undefined;
}

/** The machine settings that an opener requires; undefined to take the recorded value. */
export interface RequiredSettings extends Omit<GivenSettings, 'reservedCount' | 'featureGates'> {
  readonly featureGates: FeatureGates | undefined;
}

type Initial = { readonly [Name in keyof RequiredSettings]-?: Exclude<RequiredSettings[Name], undefined> };

/** The settings of a new state. */
export const INITIAL_SETTINGS = Object.fromEntries(
  Object.entries(MACHINE_OPTIONS)
    .filter(([, row]) => row.default !== undefined)
    .map(([name, row]) => [name, row.default]),
) as unknown as Initial;

/** The machine settings among `options`. @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseSettings(options: Record<string, unknown>): GivenSettings {
  const values = Object.fromEntries(
    Object.entries(MACHINE_OPTIONS).map(([name, { check }]) => [
      name,
      option.optional<unknown>(options[name], name, check),
    ]),
  ) as unknown as Values;
  const { systemReserved, kubeReserved, ...settings } = values;
  const amounts = [systemReserved, kubeReserved].filter((amount) => amount !== undefined);
  // A list takes precedence over amounts, as in the kubelet.
  const isCount = settings.reservedSystemCPUs === undefined && amounts.length > 0;
  return Object.freeze({
    ...settings,
    reservedCount: isCount ? wholeValue(amounts.reduce((sum, amount) => sum + amount, 0n)) : undefined,
    strictCPUReservation: strictOf(settings.strictCPUReservation, options.cpuManagerPolicyOptions),
  });
}

function strictOf(direct: boolean | undefined, cpuOptions: unknown): boolean | undefined {
  const policyOption = (cpuOptions as Record<string, unknown> | undefined)?.[STRICT];
  if (policyOption === undefined) return direct;
  const strict = parseFlag(policyOption, STRICT);
  if (direct !== undefined && direct !== strict)
    invalidOption(STRICT, policyOption, `the same as strictCPUReservation, which is ${direct}`);
  return strict;
}

/** @throws ERR_INVALID_OPTION, ERR_INVALID_LIST */
export function parseMachineOptions(options: unknown): GivenSettings {
  return parseSettings(checkOptions(options, Object.keys(MACHINE_OPTIONS), 'the machine settings'));
}

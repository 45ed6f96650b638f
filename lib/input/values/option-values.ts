// Checks of single option values.
import { invalidOption } from '../../base/check-options.js';
import { shapes } from '../../base/shapes.js';
import { CpuSet } from '../../machine/cpu-set.js';
import { MILLI } from './quantity.js';

/** @throws ERR_INVALID_OPTION */
export const option = shapes(invalidOption);

/** A list of all T: the compiler refuses one that lacks any. */
export const allOf =
  <T extends string>() =>
  <K extends T>(names: readonly K[] & ([T] extends [K] ? unknown : never)): readonly K[] =>
    names;

// The kubelet accepts the texts of Go's strconv.ParseBool.
export function parseFlag(value: unknown, name: string): boolean {
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value as string)) return true;
  if (['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(value as string)) return false;
  return option.flag(value, name);
}

export function parseCpus(value: unknown, name: string): CpuSet {
  if (value instanceof CpuSet) return value;
  return CpuSet.parse(option.text(value, name, 'a CpuSet or a list such as "0-3,8"'));
}

const COUNT = `a whole number of CPUs from 1 to ${CpuSet.MAX_ID} (a part of a CPU cannot be exclusive)`;

/** A test for whole numbers from 1 on. */
export const isFrom1To =
  (greatest: number) =>
  (value: unknown): value is number =>
    Number.isInteger(value) && (value as number) >= 1 && (value as number) <= greatest;

/** The number of exclusive CPUs. `others`: other valid values, for the error. @throws ERR_INVALID_OPTION */
export const parseCpuCount = (value: unknown, name: string, others = ''): number =>
  option.that(value, name, isFrom1To(CpuSet.MAX_ID), `${COUNT}${others}`);

const MIXED = `CPUs from 1 to ${CpuSet.MAX_ID}, such as 2.5, in steps of 0.001`;

const isMixedCount = (value: unknown): value is number =>
  typeof value === 'number' && value >= 1 && value <= CpuSet.MAX_ID && Number.isInteger(toMilli(value));

// Rounds: as a float, 1.001 * 1000 is not a whole number.
function toMilli(cpus: number): number {
  const milli = Math.round(cpus * MILLI);
  return milli / MILLI === cpus ? milli : Number.NaN;
}

/** Exclusive CPUs and a fraction of the shared pool, in millicores. @throws ERR_INVALID_OPTION */
export const parseMixedCount = (value: unknown, name: string): number =>
  toMilli(option.that(value, name, isMixedCount, MIXED));

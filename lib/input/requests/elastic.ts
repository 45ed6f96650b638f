// Checks and freezes the range of CPUs of a request.
import type { Elasticity } from '../../account/pod-assignment.js';
import { checkOptions, invalidOption } from '../../base/check-options.js';
import { isFrom1To, option, parseCpuCount } from '../values/option-values.js';

/** The least and the greatest number of exclusive CPUs, see {@link AcquireOptions.cpu}. */
export interface CpuRange {
  /** The least number of exclusive CPUs; fewer than this is a rejection. */
  readonly min: number;
  /** The greatest number, at least `min`. */
  readonly max: number;
}

const WEIGHT = 100;
const MOST_WEIGHT = 10_000;
const WEIGHTS = `a whole number from 1 to ${MOST_WEIGHT}`;

const isRange = (cpu: unknown): cpu is object =>
  typeof cpu === 'object' && cpu !== null && ('min' in cpu || 'max' in cpu);

/** undefined for a fixed number of CPUs. @throws ERR_INVALID_OPTION */
export function parseElastic(
  { cpu, weight, parts, mixed }: Readonly<Record<string, unknown>>,
  owner: unknown,
): Elasticity | undefined {
  if (!isRange(cpu)) {
    if (weight !== undefined) invalidOption('weight', weight, 'left out without a range of CPUs');
    return undefined;
  }
  const range = checkOptions(cpu, ['min', 'max'], 'cpu');
  const min = parseCpuCount(range.min, 'cpu.min');
  const max = parseCpuCount(range.max, 'cpu.max');
  if (max < min) invalidOption('cpu.max', max, `at least cpu.min, which is ${min}`);
  // Only the grant's process can move its threads off CPUs.
  if (owner !== 'process')
    invalidOption('cpu', cpu, 'a number of CPUs: a range requires that the process is the owner');
  if (parts !== undefined) invalidOption('parts', parts, 'left out with a range of CPUs');
  if (mixed === true) invalidOption('mixed', mixed, 'left out with a range of CPUs');
  return Object.freeze({
    min,
    max,
    weight: weight === undefined ? WEIGHT : option.that(weight, 'weight', isFrom1To(MOST_WEIGHT), WEIGHTS),
  });
}

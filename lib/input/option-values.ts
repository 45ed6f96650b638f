// The values of single options.
import { invalidOption } from '../base/check-options.js';
import { CpuSet } from '../machine/cpu-set.js';

export function oneOf<T extends string>(name: string, value: unknown, valid: readonly T[]): T {
  if (valid.includes(value as T)) return value as T;
  return invalidOption(name, value, valid.map((option) => `'${option}'`).join(' or '));
}

// Texts as Go's strconv.ParseBool takes them, since the kubelet does.
export function parseFlag(name: string, value: unknown): boolean {
  if (value === true || ['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value as string)) return true;
  if (value === false || ['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(value as string)) return false;
  return invalidOption(name, value, 'true or false');
}

export function parseCpus(name: string, value: unknown): CpuSet | undefined {
  if (value === undefined || value instanceof CpuSet) return value;
  if (typeof value !== 'string') invalidOption(name, value, 'a CpuSet or a list such as "0-3,8"');
  return CpuSet.parse(value);
}

export function parseBoolean(name: string, value: unknown): boolean | undefined {
  if (value === undefined || typeof value === 'boolean') return value;
  return invalidOption(name, value, 'true or false');
}

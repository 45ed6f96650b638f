// Checks the names of units. Pure.
import { NumalignError } from 'numalign';
import { AGENT_UNIT } from './agent-service.js';

/** The unit that applies the settings at boot. */
export const BOOT_UNIT = 'numalign.service';

const MAX_LENGTH = 255;
export const UNIT_NAME = 'letters, digits and any of : - _ . @ \\, 255 characters at most with the suffix';

/**
 * `gateway.service` for `gateway`.
 * @throws ERR_INVALID_ARGUMENT
 */
export function serviceName(name: string): string {
  const full = `${name}.service`;
  if (full === BOOT_UNIT) throw nameError(name, 'another name: this is the unit of the settings at boot');
  if (full === AGENT_UNIT) throw nameError(name, 'another name: this is the unit of the agent');
  if (name.endsWith('.service')) throw nameError(name, `the name without ".service", which is added`);
  // At most one `@`, after a name and at the end: an instance has no file.
  if (/^[\w:.\\-]+@?$/.test(name) && full.length <= MAX_LENGTH) return full;
  throw nameError(name, UNIT_NAME);
}

function nameError(name: string, valid: string): NumalignError {
  const text = `"${name}" cannot be the name of a unit: ${valid}`;
  return new NumalignError('ERR_INVALID_ARGUMENT', text, { value: name, valid });
}

/** True if systemd accepts the slice. `a-b.slice` is in `a.slice`, so no part is empty. */
export const isSliceName = (name: string) =>
  name.length <= MAX_LENGTH && /^(-|[\w:.\\]+(-[\w:.\\]+)*)\.slice$/.test(name);

/** True for the name of a template, such as `gateway@`. */
export const isTemplate = (name: string) => name.endsWith('@');

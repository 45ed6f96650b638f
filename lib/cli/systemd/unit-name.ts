// Names of units and of what they name. Pure.
import { NumalignError } from '../../base/errors.js';

const MAX_LENGTH = 255;
export const UNIT_NAME = 'letters, digits and any of : - _ . @ \\, 255 characters at most with the suffix';

/**
 * `gateway.service` for `gateway`.
 * @throws ERR_INVALID_ARGUMENT
 */
export function serviceName(name: string): string {
  const full = `${name}.service`;
  // A name in front of the `@`, one `@` at most, and nothing behind it: an instance has no file.
  if (/^[\w:.\\-]+@?$/.test(name) && full.length <= MAX_LENGTH) return full;
  throw new NumalignError('ERR_INVALID_ARGUMENT', `"${name}" cannot be the name of a unit: ${UNIT_NAME}`, {
    value: name,
    valid: UNIT_NAME,
  });
}

/** Whether a name is that of a template, such as `gateway@`. */
export const isTemplate = (name: string) => name.endsWith('@');

// Annotations as texts: their names, and the error for one that cannot be read. Pure.
import { NodeError } from '../base/errors.js';

export const ANNOTATION_PREFIX = 'numalign.io/';

/** The text of an annotation by its key; undefined if there is none. */
export type FindAnnotation = (key: string) => string | undefined;

/** @throws NodeError ERR_INVALID_ANNOTATION */
export function invalid(key: string, value: string, valid: string): never {
  const text = `annotation ${ANNOTATION_PREFIX}${key} is ${JSON.stringify(value)}, not ${valid}`;
  throw new NodeError('ERR_INVALID_ANNOTATION', text, { value, valid });
}

// What a cluster refuses in the files of a command: all of it, each with its place.
import { type ErrorCode, NumalignError } from 'numalign';
import { display, nearestOf } from 'numalign/tools';
import { type FileDocument, withAdvice } from '../arguments/documents.js';
import { FindingsError, type PlacedFinding } from '../terminal/report-error.js';

/** What is wrong with a field. */
export interface Finding {
  readonly code: ErrorCode;
  /** Such as `spec.containers[0].name`. */
  readonly field: string;
  /** In words, with the field. */
  readonly message: string;
}

/** The finding that a value is not `valid`, in the words of the library's own refusals. */
export function mustBe(code: ErrorCode, field: string, value: unknown, valid: string): Finding {
  const text = value === undefined ? 'but there is none' : `not ${display(value)}`;
  return { code, field, message: `${field} must be ${valid}, ${text}` };
}

/** The finding of what `action` throws; undefined if it returns. `field`: of an error without one. */
export function findingOf(action: () => void, field: string): Finding | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    if (!(error instanceof NumalignError)) throw error;
    const { code, message } = error;
    const { field: own } = error.details as { readonly field?: unknown };
    return { code, field: typeof own === 'string' ? own : field, message };
  }
}

/** `; did you mean "x"?`, or nothing. */
export function guess(name: string, valid: readonly string[]): string {
  const nearest = nearestOf(name.toLowerCase(), valid);
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`;
}

/** The finding of an option that is not `valid`. */
export const wrong = (field: string, value: unknown, valid: string): Finding =>
  mustBe('ERR_INVALID_OPTION', field, value, valid);

/** The finding of an option, with its reason. */
export const because = (field: string, why: string): Finding => ({
  code: 'ERR_INVALID_OPTION',
  field,
  message: `${field}: ${why}`,
});

/** A part of a document. */
export type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The fields of an object; none if it is something else. */
export const fieldsOf = (value: unknown): Fields => (isObject(value) ? value : {});

/** The items of a list; none if it is something else. */
export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Kubernetes reads an empty text as a missing field. */
export const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== '';

/** Collects findings. */
export class Findings {
  readonly #all: PlacedFinding[] = [];

  get size(): number {
    return this.#all.length;
  }

  /** `path`: what the fields are in, in the document. */
  add({ name, positionOf }: FileDocument, findings: readonly Finding[], path = ''): void {
    const at = path === '' ? '' : `${path}.`;
    for (const { code, field, message } of findings) {
      const { line, column } = positionOf(`${at}${field}`);
      const where = `${name}, line ${line}, column ${column}: ${path === '' ? '' : `${path}: `}`;
      this.#all.push({
        code,
        message: `${where}${withAdvice(message)}`,
        field: `${at}${field}`,
        line,
        column,
      });
    }
  }

  /** @throws FindingsError if there are any */
  throwAny(): void {
    if (this.#all.length > 0) throw new FindingsError(this.#all);
  }
}

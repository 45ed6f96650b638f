// Document: the file of the configuration, read and checked.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { checkOptions } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import { yaml } from '../base/late-packages.js';
import { FIELD_NAMES, type FieldName, rowOf } from './fields.js';

export const KIND = 'NodeConfiguration';
export const API_VERSION = 'numalign.io/v1alpha1';

/** The values of some fields. */
export type GivenValues = Partial<Record<FieldName, unknown>>;

const unusable = (file: string, why: string, more: object = {}) =>
  new NodeError('ERR_INVALID_CONFIGURATION', `${file}: ${why}`, { value: file, ...more });

/** The text of a file. @throws ERR_INVALID_CONFIGURATION */
export function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw unusable(file, `it cannot be read: ${(cause as Error).message}`, { cause });
  }
}

/** A document in YAML or JSON. @throws ERR_INVALID_CONFIGURATION */
function objectOf(file: string, text: string, valid: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = yaml().parse(text);
  } catch (cause) {
    const [what] = (cause as Error).message.split('\n');
    throw unusable(file, `it is not YAML: ${what}`, { cause });
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Record<string, unknown>;
  throw unusable(file, `it is not an object, but ${JSON.stringify(value)}`, { valid });
}

function checkKind(file: string, { kind, apiVersion = API_VERSION }: Record<string, unknown>): void {
  const valid = `kind: ${KIND}, apiVersion: ${API_VERSION}`;
  if (kind === 'KubeletConfiguration') {
    const why = `its kind is ${kind}: name it in the field kubeletConfiguration, or with --kubelet-configuration`;
    throw unusable(file, why, { valid });
  }
  if (kind === KIND && apiVersion === API_VERSION) return;
  throw unusable(file, `it is kind ${kind} of ${apiVersion}, not ${KIND} of ${API_VERSION}`, { valid });
}

/**
 * The fields of a configuration. Paths are relative to the file's folder; null stands for a field
 * that is left out.
 * @throws ERR_INVALID_CONFIGURATION, which names the field
 */
export function readDocument(file: string, text = textOf(file)): GivenValues {
  const document = objectOf(file, text, `an object with kind: ${KIND}`);
  checkKind(file, document);
  try {
    const fields = checkOptions(document, ['apiVersion', 'kind', ...FIELD_NAMES], KIND);
    const given = FIELD_NAMES.filter((name) => fields[name] !== undefined && fields[name] !== null);
    return Object.fromEntries(
      given.map((name) => {
        const { check, isPath } = rowOf(name);
        const value = check(fields[name], name);
        return [name, isPath ? resolve(dirname(file), value as string) : value];
      }),
    );
  } catch (error) {
    const { message, details } = error as NodeError;
    throw unusable(file, message, { ...details, cause: error });
  }
}

/** The document of a kubelet's configuration. @throws ERR_INVALID_OPTION */
export function readKubeletConfiguration(file: string): Record<string, unknown> {
  try {
    return yaml().parse(readFileSync(file, 'utf8')) as Record<string, unknown>;
  } catch (cause) {
    throw new NodeError('ERR_INVALID_OPTION', `${file} cannot be read: ${(cause as Error).message}`, {
      value: file,
      valid: 'a KubeletConfiguration, as YAML or JSON',
      cause,
    });
  }
}

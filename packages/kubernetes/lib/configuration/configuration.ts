// Configuration: what is in effect, from the command line, the file and the defaults.
import { resolve } from 'node:path';
import type { ManagerOptions } from 'numalign';
import { checkManagerOptions } from 'numalign/tools';
import { NodeError } from '../base/errors.js';
import { type GivenValues, readDocument, readKubeletConfiguration } from './document.js';
import { FIELD_NAMES, type FieldName, rowOf, type Values } from './fields.js';
import { fromDocument, type ManagerPart, managerOptions, managerPart } from './manager-part.js';

export type Origin = 'flag' | 'file' | 'kubeletConfiguration' | 'default';

/** Where a configuration comes from. */
export interface Sources {
  /** The file; undefined: none. */
  readonly file: string | undefined;
  /** What the command line sets. */
  readonly flags: GivenValues;
}

export interface Configuration {
  readonly values: Values;
  readonly origins: Readonly<Record<FieldName, Origin>>;
  /** What numalign's manager gets of it, with what the KubeletConfiguration sets. */
  readonly manager: ManagerPart;
  /** The files that were read. */
  readonly files: readonly string[];
}

/**
 * Reads the files.
 * @throws ERR_INVALID_CONFIGURATION for what cannot be read or is wrong
 */
export function readConfiguration({ file: configFile, flags }: Sources): Configuration {
  const file = configFile === undefined ? undefined : resolve(configFile);
  const given = file === undefined ? {} : readDocument(file);
  const path = (flags.kubeletConfiguration ?? given.kubeletConfiguration) as string | undefined;
  const document = path === undefined ? undefined : readKubeletConfiguration(path);
  const kubelet = document === undefined ? {} : fromDocument(document);
  const originOf = (name: FieldName): Origin => {
    if (name in flags) return 'flag';
    if (name in given) return 'file';
    return name in kubelet ? 'kubeletConfiguration' : 'default';
  };
  const byName = <T>(value: (name: FieldName) => T) =>
    Object.fromEntries(FIELD_NAMES.map((name) => [name, value(name)])) as Record<FieldName, T>;
  const set: GivenValues = { ...given, ...flags };
  const values = byName((name) => set[name] ?? kubelet[name] ?? rowOf(name).default) as unknown as Values;
  checkTogether(managerOptions(set, document), file);
  return {
    values,
    origins: byName(originOf),
    manager: managerPart(set, document),
    files: [file, path].filter((each) => each !== undefined),
  };
}

// What each field allows may exclude another, and a KubeletConfiguration is checked here only.
function checkTogether(options: ManagerOptions, file: string | undefined): void {
  try {
    checkManagerOptions(options);
  } catch (cause) {
    if (file === undefined) throw cause;
    const { message, details } = cause as NodeError;
    throw new NodeError('ERR_INVALID_CONFIGURATION', `${file}: ${message}`, { ...details, cause });
  }
}

/** The fields whose values differ. */
export function changedFields(before: Configuration, after: Configuration): FieldName[] {
  const textOf = (value: unknown) => JSON.stringify(value) ?? '';
  return FIELD_NAMES.filter((name) => textOf(before.values[name]) !== textOf(after.values[name]));
}

/** Its values with their origins, for people and machines. */
export const configurationJson = ({ values, origins }: Configuration) =>
  Object.fromEntries(FIELD_NAMES.map((name) => [name, { value: values[name] ?? null, from: origins[name] }]));

/** What is not the default, in one line. */
export function configurationText({ values, origins }: Configuration): string {
  const set = FIELD_NAMES.filter((name) => origins[name] !== 'default');
  const texts = set.map((name) => `${name}: ${valueText(values[name])} (${origins[name]})`);
  return texts.length === 0 ? 'all defaults' : texts.join(', ');
}

/** What is in effect, in words. */
export function effectiveText({ values, origins }: Configuration, name: FieldName): string {
  const { part, defaultWords } = rowOf(name);
  if (origins[name] !== 'default') return `${valueText(values[name])} (${origins[name]})`;
  const words = defaultWords ?? valueText(values[name]);
  return part === 'machine' ? `as recorded (at first: ${words})` : `${words} (default)`;
}

export const valueText = (value: unknown): string =>
  value === undefined || value === null || value === ''
    ? 'none'
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value);

// FieldFlags: the flags of the fields of the configuration, which take precedence over the file.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { NumalignError } from 'numalign';
import type { Sources } from '../configuration/configuration.js';
import type { GivenValues } from '../configuration/document.js';
import type { Field } from '../configuration/field.js';
import { FIELD_NAMES, type FieldName, rowOf } from '../configuration/fields.js';

function optionOf(name: FieldName, row: Field<unknown>): Option {
  const { usage, words = row.words } = row.flag!;
  const { check, type, default: byDefault, defaultWords = byDefault } = row;
  const takesValue = /[<[]/.test(usage);
  const text = [
    words.replaceAll('`', '').replace('; true:', '; without a value:'),
    ...(isChoice(type) ? [`: ${type}`] : []),
    ...(takesValue && defaultWords !== undefined && defaultWords !== false
      ? [` (default: ${defaultWords})`]
      : []),
  ].join('');
  const option = new Option(usage, text);
  return takesValue ? option.argParser((value) => checked(() => check(value, name))) : option;
}

/** Whether a type is a list of words. */
const isChoice = (type: string): boolean => /^[\w-]+(, [\w-]+)+$/.test(type) && type !== 'true, false';

// A wrong value is a usage error.
function checked<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof NumalignError) throw new InvalidArgumentError(`${error.message}.`);
    throw error;
  }
}

/** Adds `--config` and the flag of each field. */
export function addFieldFlags(command: Command): void {
  command.option('--config <file>', 'the configuration: see docs/configuration.md');
  for (const name of FIELD_NAMES) {
    const row = rowOf(name);
    if (row.flag) command.addOption(optionOf(name, row));
  }
}

/** Commander's name of a flag's value. */
const keyOf = (usage: string) => new Option(usage).attributeName();

/** What the command line says of the configuration. */
export function sourcesOf(command: Command): Sources {
  const flags: GivenValues = {};
  for (const name of FIELD_NAMES) {
    const { flag, isPath } = rowOf(name);
    const key = flag && keyOf(flag.usage);
    if (key === null || command.getOptionValueSource(key) !== 'cli') continue;
    const value: unknown = command.getOptionValue(key);
    flags[name] = isPath ? resolve(value as string) : value;
  }
  return { file: command.getOptionValue('config') as string | undefined, flags };
}

const FORMATS = ['text', 'json'] as const;

export interface OutputFlags {
  readonly output?: (typeof FORMATS)[number];
  readonly json?: boolean;
}

/** Adds `--output`; `--json` is its earlier name. */
export function addOutput(command: Command): void {
  command
    .addOption(new Option('--output <format>', 'output format').choices(FORMATS).default('text'))
    .addOption(new Option('--json').hideHelp());
}

export const isJson = ({ output, json }: OutputFlags): boolean => output === 'json' || json === true;

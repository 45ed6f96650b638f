// Tables of options: a row has all that there is to say of an option, and its doc comment the words
// of the reference. Types, checks, flags, names in a KubeletConfiguration follow from the rows.
import { checkOptions } from '../base/check-options.js';
import type { Shape } from '../base/shapes.js';
import { option, parseFlag } from './values/option-values.js';

/** Checks a value of an option: it takes what is `Given`, and `values` are all that it takes. */
export type Check<Given, Value> = Shape<Value> & {
  readonly given?: Given;
  readonly values?: readonly string[];
};

/** One of these words. */
export const oneOf = <Word extends string>(values: readonly Word[]): Check<Word, Word> =>
  Object.assign((value: unknown, name: string) => option.oneOf(value, name, values), { values });

/** Whether an option with only one word has it. */
export const only = <Word extends string>(word: Word): Check<Word, boolean> =>
  Object.assign((value: unknown, name: string) => option.oneOf(value, name, [word]) === word, {
    values: [word],
  });

export const FLAG: Check<boolean, boolean> = (value, name) => option.flag(value, name);

/** A flag among the kubelet's policy options, whose values are texts. */
export const POLICY_FLAG: Check<boolean | 'true' | 'false', boolean> = parseFlag;

/**
 * What can set an option. `manager`: the options of a manager. `request`: those of a request. `both`:
 * either; a request that leaves it out has its manager's value.
 */
export type Setter = 'manager' | 'request' | 'both';

/** The field of a KubeletConfiguration. */
export interface KubeletField {
  /** Its name, if that is not the option's. */
  readonly name?: string;
  readonly shape: 'text' | 'amounts' | 'list' | 'gates' | 'policy options';
  /** Kubernetes' default. */
  readonly default?: string | object;
  /** What differs in a document. */
  readonly note?: string;
}

/** The flag of the commands. */
export interface CommandFlag {
  /** Such as `--policy <policy>`. */
  readonly usage: string;
  readonly help: string;
  /** `run` places its own process, the others `pods`. */
  readonly of: 'run' | 'pods' | 'all';
}

/** The flag of the commands for a setting of the machine. */
export interface SettingFlag {
  /** Such as `--managed <list>`. */
  readonly usage: string;
  /** What it does. */
  readonly help: string;
  /** What `configure` adds to the help. */
  readonly configure?: string;
  /** The word that stands for null. */
  readonly nullWord?: string;
  /** The same, for `configure` alone. */
  readonly configureNull?: string;
}

/** What every option has. Null for what it does not have. */
interface AnyOption<Given, Value, By extends Setter> {
  readonly by: By;
  readonly check: Check<Given, Value>;
  readonly kubelet: KubeletField | null;
}

/** An option of placement. */
export interface OptionRow<Given, Field extends string, Value, By extends Setter>
  extends AnyOption<Given, Value, By> {
  /** The field of a placement with its value. */
  readonly field: Field;
  readonly default: NoInfer<Value>;
  readonly flag: CommandFlag | null;
  /** Whether grants have it on record among their flags: by its name, by another one, or not. */
  readonly recorded: boolean | string;
  /** True if it is only proposed for the kubelet: its name, its values and what it does may change. */
  readonly provisional?: true;
}

/** Options of the kubelet that are one object, in a KubeletConfiguration too. */
export interface OptionGroup<Given extends object> {
  readonly by: 'both';
  readonly given?: Given;
  readonly rows: OptionTable;
  /** Names that mean something else than a placement. */
  readonly others: readonly string[];
  readonly kubelet: KubeletField;
}

/** An option of the machine. */
export interface MachineRow<Given, Value> extends AnyOption<Given, Value, 'manager'> {
  /** The setting on record of a new state; undefined: it is no setting, but settings follow from it. */
  readonly default: NoInfer<Value> | undefined;
  readonly flag: SettingFlag | null;
}

type AnyRow = OptionRow<unknown, string, unknown, Setter>;
export type OptionTable = Readonly<Record<string, AnyRow>>;
/** Tables of options: a row for each, or a group of rows for an option that is an object. */
export type OptionTables = Readonly<Record<string, AnyRow | OptionGroup<object>>>;

/** A row, checked to be complete. */
export const row = <Given, const Field extends string, Value, const By extends Setter>(
  complete: OptionRow<Given, Field, Value, By>,
) => complete;

/** A flag among a policy's options: off by default, and on record with each grant. */
export const policyFlag = <const Field extends string>(field: Field, flag: CommandFlag | null) =>
  row({ field, by: 'both', check: POLICY_FLAG, default: false, kubelet: null, flag, recorded: true });

export const group = <Given extends object>(
  rows: OptionTable,
  others: readonly string[] = [],
): OptionGroup<Given> => ({
  by: 'both',
  rows,
  others,
  kubelet: { shape: 'policy options', default: Object.freeze({}) },
});

export const machineRow = <Given, Value>(
  complete: Omit<MachineRow<Given, Value>, 'by'>,
): MachineRow<Given, Value> => ({ by: 'manager', ...complete });

type Given<Entry> = Entry extends { readonly check: Check<infer Value, unknown> }
  ? Value
  : Entry extends OptionGroup<infer Value>
    ? Value
    : never;

type Options = Readonly<Record<string, AnyOption<unknown, unknown, Setter> | OptionGroup<object>>>;

type NamesBy<Table extends Options, By extends Setter> = {
  [Name in keyof Table]: Table[Name]['by'] extends By ? Name : never;
}[keyof Table];

type AllOptions<Table extends Options> = { -readonly [Name in keyof Table]?: Given<Table[Name]> };

/** The options of a table that a setter has, as it gives them. */
export type OptionsOf<Table extends Options, By extends Setter = Setter> = Pick<
  AllOptions<Table>,
  NamesBy<Table, By | 'both'>
>;

/** The checked values of a table, by their fields. */
export type FieldsOf<Table extends OptionTables> = {
  readonly [Name in keyof Table as Table[Name] extends AnyRow
    ? Table[Name]['field']
    : never]: Table[Name] extends AnyRow ? Table[Name]['default'] : never;
};

/** The names of a table that a setter has. */
export const namesOf = (table: OptionTables, by: Setter): string[] =>
  Object.keys(table).filter((name) => [by, 'both'].includes(table[name]!.by));

/** Every row of a table, those of groups too, with the option's name. */
export const optionRows = (table: OptionTables): (readonly [name: string, row: AnyRow])[] =>
  Object.entries(table).flatMap(([name, entry]) =>
    'rows' in entry ? optionRows(entry.rows) : [[name, entry] as const],
  );

/** Puts the value of an option, or those of a group, into `fields`. @throws ERR_INVALID_OPTION */
export function readOption(
  entry: AnyRow | OptionGroup<object>,
  value: unknown,
  name: string,
  fields: Record<string, unknown>,
): void {
  if (!('rows' in entry)) {
    fields[entry.field] = entry.check(value, name);
    return;
  }
  const values = checkOptions(value, [...Object.keys(entry.rows), ...entry.others], name);
  for (const [member, row] of Object.entries(entry.rows))
    if (values[member] !== undefined) readOption(row, values[member], member, fields);
}

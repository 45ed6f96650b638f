// Field: a row of the table of fields, and the checks of values.
import { checkManagerOptions, invalidOption } from 'numalign/tools';

/** @throws NumalignError ERR_INVALID_OPTION */
type Check<Value> = (value: unknown, name: string) => Value;

/** The flag of the command, which takes precedence over the file. */
export interface FieldFlag {
  /** Such as `--name <name>`. */
  readonly usage: string;
  /** What it does, if it is not what the field is. */
  readonly words?: string;
}

/** All that there is to say of a field of the configuration. */
export interface Field<Value, Default extends Value | undefined = Value | undefined> {
  readonly check: Check<Value>;
  /** What it has if nothing sets it; undefined: nothing. */
  readonly default: Default;
  /** The default in words, if it is not the value itself. */
  readonly defaultWords?: string;
  /** What values it takes. */
  readonly type: string;
  /** What it is. */
  readonly words: string;
  readonly flag: FieldFlag | null;
  /**
   * `placement`: an option of each request. `machine`: a setting that all users of the machine
   * share. `live`: other things that change at once. `start`: it has an effect at the next start.
   */
  readonly part: 'placement' | 'machine' | 'live' | 'start';
  /** True for the path of a file: a file's own are relative to its folder. */
  readonly isPath?: true;
}

/** A row, checked to be complete. */
export const field = <Value, const Default extends NoInfer<Value> | undefined>(
  complete: Field<Value, Default>,
) => complete;

export const flag: Check<boolean> = (value, name) =>
  typeof value === 'boolean' ? value : invalidOption(name, value, 'true or false');

export const text: Check<string> = (value, name) =>
  typeof value === 'string' && value !== '' ? value : invalidOption(name, value, 'a text');

export const oneOf =
  <Word extends string>(words: readonly Word[]): Check<Word> =>
  (value, name) =>
    words.includes(value as Word)
      ? (value as Word)
      : invalidOption(name, value, `one of ${words.join(', ')}`);

/** Switched on, off, or on with a value of its own. */
export const flagOr =
  <Value>(check: Check<Value>): Check<Value | boolean> =>
  (value, name) =>
    typeof value === 'boolean' ? value : check(value, name);

/** An option of numalign's manager, which checks it. */
export const managerOption: Check<unknown> = (value, name) => {
  checkManagerOptions({ [name]: value });
  return value;
};

/** A list of CPUs: YAML takes one CPU for a number. */
export const cpuList: Check<string> = (value, name) => {
  const list = typeof value === 'number' ? String(value) : value;
  managerOption(list, name);
  return list as string;
};

/** {@link cpuList}, or a word that stands for null. */
export const cpuListOr =
  (word: string): Check<string | null> =>
  (value, name) =>
    value === word ? null : cpuList(value, name);

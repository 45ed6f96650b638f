// The commands and options that a shell completes, read from the program itself. Pure.
import type { Argument, Command, Option } from 'commander';
import { QUIET_PARTS } from 'numalign/tools';

/** A list of words, or a kind of value. `grant`: a uid or name in `numalign status`. */
export type Value = readonly string[] | 'file' | 'folder' | 'program' | 'grant' | 'text';

export interface CompletedOption {
  /** Such as `-f` and `--file`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined for an option without a value. */
  readonly value: Value | undefined;
  /** True if the value can be left out. */
  readonly isOptional: boolean;
}

export interface CompletedCommand {
  /** The names of the commands below the program. */
  readonly path: readonly string[];
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** The values of arguments. If `isVariadic`, the last stands for all further arguments too. */
  readonly values: readonly Value[];
  readonly isVariadic: boolean;
  readonly commands: readonly CompletedCommand[];
}

/**
 * A command that prints uids and names of grants, a line each, without names that a shell expands.
 * `options`: further words of `status`, in the shell's language.
 */
export const idsCommand = (name: string, options = '') =>
  `${name} status --output json${options} 2>/dev/null | sed -n '/^      "uid": /{p;n;p;}' | sed -n 's/^      "\\(uid\\|name\\)": "\\([-0-9A-Za-z._]*\\)",\\{0,1\\}$/\\2/p' | sort -u`;

// The kinds of values by their names in the usage of commands.
const KINDS: Readonly<Record<string, Value>> = {
  file: 'file',
  dir: 'folder',
  command: 'program',
  args: 'file',
  id: 'grant',
  parts: QUIET_PARTS,
};

export function commandTree(command: Command, path: readonly string[] = []): CompletedCommand {
  const { registeredArguments } = command;
  return {
    path,
    description: command.description(),
    options: command.createHelp().visibleOptions(command).map(optionOf),
    values: registeredArguments.map(argumentValue),
    isVariadic: registeredArguments.at(-1)?.variadic ?? false,
    commands: command.commands.map((child) => commandTree(child, [...path, child.name()])),
  };
}

/** A command and all its subcommands. */
export function allCommands(command: CompletedCommand): CompletedCommand[] {
  return [command, ...command.commands.flatMap(allCommands)];
}

function optionOf({ short, long, description, flags, argChoices, optional }: Option): CompletedOption {
  const name = /[<[]([^>\]]*)[>\]]/.exec(flags)?.[1];
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    description,
    value: name === undefined ? undefined : (argChoices ?? KINDS[name] ?? 'text'),
    isOptional: optional,
  };
}

function argumentValue(argument: Argument): Value {
  return argument.argChoices ?? KINDS[argument.name()] ?? 'text';
}

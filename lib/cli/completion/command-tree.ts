// The commands and options of a program as a shell is to complete them: read from the program
// itself. Pure.
import type { Argument, Command, Option } from 'commander';
import { QUIET_PARTS } from '../../input/quiet.js';

/**
 * What a value can be: one of these words, or by its kind. `grant`: a uid, as `numalign status`
 * tells it.
 */
export type Value = readonly string[] | 'file' | 'folder' | 'program' | 'grant' | 'text';

export interface CompletedOption {
  /** Such as `-f` and `--file`. */
  readonly flags: readonly string[];
  readonly description: string;
  /** Undefined for one that takes none. */
  readonly value: Value | undefined;
  /** It can be left out. */
  readonly isOptional: boolean;
}

export interface CompletedCommand {
  /** From the program down, without its name. */
  readonly path: readonly string[];
  readonly description: string;
  readonly options: readonly CompletedOption[];
  /** The last is also that of all behind it, where `isVariadic`. */
  readonly values: readonly Value[];
  readonly isVariadic: boolean;
  readonly commands: readonly CompletedCommand[];
}

/**
 * A command that prints the ids of grants, a line each. No other text: what is in names the shell
 * would expand.
 */
export const idsCommand = (name: string) =>
  `${name} status --output json 2>/dev/null | sed -n '/^      "uid": /{p;n;p;}' | sed -n 's/^      "\\(uid\\|name\\)": "\\([-0-9A-Za-z._]*\\)",\\{0,1\\}$/\\2/p' | sort -u`;

// By the names that commands use in their usage.
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

/** A command and all below it. */
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

// The completion script for fish. Pure.
import { allCommands, type CompletedCommand, idsCommand, type Value } from './command-tree.js';

const quoted = (text: string) => `'${text.replace(/[\\']/g, '\\$&')}'`;

const ACTIONS = {
  file: '-r -F',
  folder: "-x -a '(__fish_complete_directories)'",
  program: "-x -a '(__fish_complete_command)'",
  grant: "-x -a '(__numalign_ids)'",
  text: '-x',
} as const;

const action = (value: Value) =>
  typeof value === 'string' ? ACTIONS[value] : `-x -a ${quoted(value.join(' '))}`;

// An optional value is never the next word.
const optionAction = (value: Value, isOptional: boolean) =>
  isOptional ? action(value).replace(/^-[xr]/, '-f') : action(value);

const flagOf = (flag: string) => (flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`);

function linesOf(name: string, { path, options, values, commands }: CompletedCommand): string[] {
  const at = (which: 'at' | 'in') =>
    `complete -c ${name} -n ${quoted([`__${name}_${which}`, ...path].join(' '))}`;
  return [
    ...commands.map(
      (child) => `${at('at')} -a ${quoted(child.path.at(-1)!)} -d ${quoted(child.description)}`,
    ),
    ...options.map(({ flags, description, value, isOptional }) =>
      [
        at('in'),
        ...flags.map(flagOf),
        ...(value === undefined ? [] : [optionAction(value, isOptional)]),
        '-d',
        quoted(description),
      ].join(' '),
    ),
    // The first argument; later arguments are files.
    ...values.slice(0, 1).flatMap((value) => (value === 'text' ? [] : [`${at('at')} ${action(value)}`])),
    ...(values[0] === 'program' ? [`complete -c ${name} -n __${name}_at_operand ${action('program')}`] : []),
    ...(values.at(-1) === 'file' ? [`${at('in')} -F`] : []),
  ];
}

export function fishCompletion(name: string, program: CompletedCommand): string {
  return `# Completion of ${name} for fish: source it, or put it into ~/.config/fish/completions/${name}.fish
function __${name}_in
    set -l words (commandline -opc)
    set -e words[1]
    test (count $words) -ge (count $argv); or return 1
    for i in (seq (count $argv))
        test "$words[$i]" = "$argv[$i]"; or return 1
    end
end
function __${name}_at
    __${name}_in $argv; and test (count (commandline -opc)) -eq (math (count $argv) + 1)
end
function __${name}_at_operand
    set -l words (commandline -opc)
    test "$words[-1]" = --
end
function __numalign_ids
    ${idsCommand(name)}
end
complete -c ${name} -f
${allCommands(program)
  .flatMap((command) => linesOf(name, command))
  .join('\n')}
`;
}

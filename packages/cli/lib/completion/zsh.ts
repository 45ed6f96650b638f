// The completion script for zsh. Pure.
import { allCommands, type CompletedCommand, idsCommand, type Value } from './command-tree.js';

// Escapes text for a specification of _arguments or _describe in single quotes.
const escaped = (text: string) => text.replace(/[\\[\]:]/g, '\\$&').replaceAll("'", "'\\''");

const ACTIONS = {
  file: '_files',
  folder: '_files -/',
  program: '_command_names -e',
  grant: '_numalign_ids',
  text: ' ',
} as const;

const action = (value: Value) =>
  typeof value === 'string' ? ACTIONS[value] : `(${value.map(escaped).join(' ')})`;

function specifications({ options, values, isVariadic, commands }: CompletedCommand): string[] {
  const flags = options.flatMap(({ flags, description, value, isOptional }) =>
    // A long option and its value can be one word, `--output=json`.
    flags.map(
      (flag) =>
        `'*${flag}${flag.startsWith('--') && value !== undefined ? '=' : ''}[${escaped(description)}]${value === undefined ? '' : `:${isOptional ? ':' : ''}value:${action(value)}`}'`,
    ),
  );
  const places = values.map((value, i) => {
    const isLast = isVariadic && i === values.length - 1;
    return `'${isLast ? '*' : i + 1}:argument:${action(value)}'`;
  });
  return [
    ...flags,
    ...places,
    ...(commands.length > 0 ? ["'1:command:->command'", "'*::argument:->argument'"] : []),
  ];
}

const functionOf = (name: string, { path }: CompletedCommand) => ['', name, ...path].join('_');

function functionText(name: string, command: CompletedCommand): string {
  const { commands } = command;
  const lines = [
    'local curcontext="$curcontext" state line',
    'local -A opt_args',
    `_arguments -S -C ${specifications(command).join(' \\\n    ')}`,
  ];
  if (commands.length > 0) {
    const descriptions = commands.map(
      ({ path, description }) => `'${escaped(path.at(-1)!)}:${escaped(description)}'`,
    );
    lines.push(
      'case $state in',
      '  command)',
      `    local -a commands=(${descriptions.join(' ')})`,
      '    _describe command commands ;;',
      '  argument)',
      '    case $words[1] in',
      ...commands.map((child) => `      ${child.path.at(-1)}) ${functionOf(name, child)} ;;`),
      '    esac ;;',
      'esac',
    );
  }
  return `${functionOf(name, command)}() {\n${lines.map((line) => `  ${line}`).join('\n')}\n}`;
}

export function zshCompletion(name: string, program: CompletedCommand): string {
  return `#compdef ${name}
# Completion of ${name} for zsh: source it after compinit, or put it as _${name} into a folder of $fpath
_numalign_ids() {
  local -a ids=(\${(f)"$(${idsCommand(name)})"})
  compadd -a ids
}
${allCommands(program)
  .map((command) => functionText(name, command))
  .join('\n')}
if [[ $funcstack[1] == _${name} ]]; then
  _${name} "$@"
else
  compdef _${name} ${name}
fi
`;
}

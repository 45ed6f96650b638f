// The completion script for bash, 4 or newer. Pure.
import { quoted } from 'numalign/tools';
import { allCommands, type CompletedCommand, idsCommand, type Value } from './command-tree.js';

const ACTIONS = {
  file: 'kind=file',
  folder: 'kind=directory',
  program: 'kind=command',
  grant: 'words=$(_numalign_ids)',
  text: ':',
} as const;

function action(value: Value): string {
  return typeof value === 'string' ? ACTIONS[value] : `words=${quoted(value.join(' '))}`;
}

const where = ({ path }: CompletedCommand) => path.join(' ');

/** A branch of a case for each pattern; the shell takes the first match. */
function branches(actions: readonly (readonly [pattern: string, action: string])[]): string {
  return actions.map(([pattern, action]) => `      ${pattern}) ${action} ;;`).join('\n');
}

export function bashCompletion(name: string, program: CompletedCommand): string {
  const commands = allCommands(program);
  const valueOptions = commands.flatMap((command) =>
    command.options.flatMap(({ flags, value }) =>
      value === undefined ? [] : flags.map((flag) => [quoted(`${where(command)} ${flag}`), value] as const),
    ),
  );
  const children = commands.flatMap(({ commands }) => commands);
  // After the first word of a program to run, options belong to that program.
  const runners = commands.filter(({ values }) => values.includes('program'));
  const positions = commands.flatMap((command) => [
    ...(command.commands.length > 0
      ? [[quoted(`${where(command)} 0`), action(command.commands.map(({ path }) => path.at(-1)!))] as const]
      : []),
    ...command.values.map((value, i) => {
      const isLast = command.isVariadic && i === command.values.length - 1;
      return [
        isLast ? `${quoted(`${where(command)} `)}*` : quoted(`${where(command)} ${i}`),
        action(value),
      ] as const;
    }),
  ]);
  const flags = commands.map(
    (command) => [quoted(where(command)), action(command.options.flatMap(({ flags }) => flags))] as const,
  );
  return `# Completion of ${name} for bash: source it, or put it into ~/.local/share/bash-completion/completions/${name}
_numalign_ids() {
  ${idsCommand(name, ` \${folder:+--state-dir "$folder"}`)}
}
_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} folder='' command='' waiting='' ended='' count=0 words='' kind='' word i
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    # bash splits words at these: the next word belongs to the one before.
    if [[ $word == [=:] ]]; then waiting=\${waiting:-$word}; continue; fi
    # An option follows: the optional value was left out.
    if [[ -n $waiting && $word != -?* ]]; then
      # In the words, ~ is not expanded.
      [[ $waiting == --state-dir ]] && folder=\${word/#'~/'/$HOME/}
      waiting=''
      continue
    fi
    waiting=''
    if [[ -z $ended && $word == -- ]]; then ended=yes; continue; fi
    if [[ -z $ended && $word == -* ]]; then
      case "$command $word" in
        ${valueOptions.map(([pattern]) => pattern).join(' | ')}) waiting=$word ;;
      esac
      continue
    fi
    case "$command $word" in
      ${children.map(({ path }) => quoted(`${path.slice(0, -1).join(' ')} ${path.at(-1)}`)).join(' | ')})
        command="\${command:+$command }$word" ;;
      ${runners.map((command) => `${quoted(`${where(command)} `)}*`).join(' | ')}) ended=yes; ((count++)) ;;
      *) ((count++)) ;;
    esac
  done
  if [[ $current == [=:] ]]; then
    waiting=\${waiting:-$current}
    current=''
  fi
  if [[ -n $waiting && $current != -?* ]]; then
    case "$command $waiting" in
${branches(valueOptions.map(([pattern, value]) => [pattern, action(value)]))}
    esac
  else
    [[ $current == -* ]] || case "$command $count" in
${branches(positions)}
    esac
    [[ -n $words$kind$ended ]] || case $command in
${branches(flags)}
    esac
  fi
  COMPREPLY=()
  if [[ -n $kind ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -A "$kind" -- "$current")
  elif [[ -n $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}
complete -F _${name} ${name}
`;
}

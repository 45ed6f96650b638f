// numalign completion: prints a script with which a shell completes commands, options and values.
import { Argument, type Command } from 'commander';
import { bashCompletion } from '../completion/bash.js';
import { type CompletedCommand, commandTree } from '../completion/command-tree.js';
import { fishCompletion } from '../completion/fish.js';
import { zshCompletion } from '../completion/zsh.js';

const SHELLS: Readonly<Record<string, (name: string, program: CompletedCommand) => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

export function addCompletion(program: Command): void {
  program
    .command('completion')
    .description('Print a script that completes the command line in your shell.')
    .addArgument(new Argument('<shell>', 'which shell').choices(Object.keys(SHELLS)))
    .addHelpText(
      'after',
      `
Exit code: 0; 2 for a wrong command line.

Examples:
  $ numalign completion bash > ~/.local/share/bash-completion/completions/numalign
  $ numalign completion zsh > ~/.zfunc/_numalign
  $ numalign completion fish > ~/.config/fish/completions/numalign.fish
  $ source <(numalign completion bash)`,
    )
    .action((shell: string) => {
      process.stdout.write(SHELLS[shell]!(program.name(), commandTree(program)));
    });
}

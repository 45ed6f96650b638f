// Program: the commands of numalign-node.
import { Command } from 'commander';
import { addAttach } from './attach.js';
import { addConfig } from './config.js';
import { addExplain } from './explain.js';
import { addRun } from './run.js';
import { version } from './version.js';

// In the order of the help.
const COMMANDS = [addRun, addAttach, addConfig, addExplain];

/** Runs nothing until the command line is parsed. */
export function createProgram(): Command {
  const program = new Command('numalign-node')
    .description('Exclusive CPUs on the right NUMA node for the containers of this node.')
    .version(version())
    .showHelpAfterError('(--help after the command shows its options)')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'numalign-node: ')) })
    .exitOverride()
    .addHelpText(
      'after',
      `
Without a command it runs: \`numalign-node run --help\` shows its options, such as --check.
Exit code: 0 on success; 1 for an error, which is one line on stderr, or a problem that
--check finds; 2 for a wrong command line.`,
    );
  // Commands inherit the settings above when they are made.
  for (const add of COMMANDS) add(program);
  return program;
}

#!/usr/bin/env node
// numalign-node: the commands, and how they end.
import { readFileSync } from 'node:fs';
import { Command, CommanderError } from 'commander';
import { addAttach } from './attach.js';
import { reportError } from './output.js';

const USAGE = 2;

// In the order of the help.
const COMMANDS = [addAttach];

function version(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}

function createProgram(): Command {
  const program = new Command('numalign-node')
    .description('Exclusive CPUs on the right NUMA node for the containers of this node.')
    .version(version())
    .showHelpAfterError('(--help after the command shows its options)')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'numalign-node: ')) })
    .exitOverride()
    .addHelpText(
      'after',
      '\nExit code: 0 where it is done; 1 for an error, which is one line on stderr; 2 for a wrong command line.',
    );
  // Commands take the settings above over when they are made.
  for (const add of COMMANDS) add(program);
  return program;
}

// A reader that has seen enough is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  // Commander has printed its message, or the help that was asked for.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : USAGE;
  else process.exitCode = reportError(error, process.argv.includes('--json'));
}

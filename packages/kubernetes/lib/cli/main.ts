#!/usr/bin/env node
// numalign-node: how a command ends.
import { CommanderError } from 'commander';
import { reportError } from './output.js';
import { createProgram } from './program.js';

const USAGE = 2;

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

#!/usr/bin/env node
// The command line's entry. Loads the rest itself, so that a missing addon is told like any other error.
import { reportError } from './report-error.js';

// A reader that has seen enough (`numalign topology | head`) is no error; and a message that nobody reads must not end a running command.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit();
});
process.stderr.on('error', () => {});

try {
  const { runProgram } = await import('./program.js');
  await runProgram(process.argv);
} catch (error) {
  process.exitCode = reportError(error);
}

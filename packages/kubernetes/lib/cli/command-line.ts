// CommandLine: runs a command, and sets its exit code.
import { CommanderError } from 'commander';
import { reportError } from './output.js';
import { createProgram } from './program.js';

const USAGE = 2;

// A reader that closes the pipe is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  // Commander has already printed its message or the help.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : USAGE;
  else process.exitCode = reportError(error, / --(json|output[= ]json)( |$)/.test(process.argv.join(' ')));
}

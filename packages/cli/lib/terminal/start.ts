// Starts a program of the command line: handles closed streams, and reports an error if the rest
// cannot be loaded.
import { closeSync, fstatSync } from 'node:fs';
import { isatty } from 'node:tty';
import { NumalignError } from 'numalign';
import { kernelFacts } from 'numalign/tools';
import { reportError } from './report-error.js';

/** Loads and runs the program. It reports a missing addon like any other error. */
export async function start(load: () => Promise<(argv: readonly string[]) => Promise<void>>): Promise<void> {
  guardStreams();
  try {
    const run = await load();
    await run(process.argv);
  } catch (error) {
    process.exitCode = reportError(error);
  }
}

function guardStreams(): void {
  // A reader that stops (`numalign topology | head`) is not an error, nor is a closed terminal.
  // A message that cannot be printed must not end a running command.
  guardWhenUsed('stdout', (error) => {
    const { code, message } = error;
    if (code === 'EPIPE' || (code === 'EIO' && process.stdout.isTTY)) process.exit();
    const text = `cannot write to standard output: ${message}`;
    process.exit(reportError(new NumalignError('ERR_SYSCALL', text, kernelFacts(error))));
  });
  guardWhenUsed('stderr', () => {});
  // At its end Node resets terminals, and aborts if one was closed meanwhile. All three are open.
  const devices = [0, 1, 2].filter(mayBeTerminal);
  process.on('exit', () => {
    for (const fd of devices) if (!isatty(fd)) closeSync(fd);
  });
}

// Devices such as /dev/null have 1 as their major number. With numbers in place of bigints, Node would take
// the type of a pipe here for that of the next path that require() resolves, and leave its links in it.
function mayBeTerminal(fd: number): boolean {
  const stats = fstatSync(fd, { bigint: true });
  return stats.isCharacterDevice() && stats.rdev >> 8n !== 1n;
}

// Node takes some milliseconds to make a stream, which a command that prints nothing does not need.
function guardWhenUsed(name: 'stdout' | 'stderr', onError: (error: NodeJS.ErrnoException) => void): void {
  const property = Object.getOwnPropertyDescriptor(process, name)!;
  const get = () => {
    Object.defineProperty(process, name, property);
    return process[name].on('error', onError);
  };
  Object.defineProperty(process, name, { ...property, get });
}

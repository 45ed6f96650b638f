// ProgramFrame: what surrounds the commands of the program: its help, its settings and how it ends.
import { createRequire } from 'node:module';
import type { Command } from 'commander';
import { useStateDirVariable } from './arguments/state-dir.js';
import { print, printToStderr } from './terminal/output.js';
import { reportError } from './terminal/report-error.js';
import { HelpfulCommand } from './terminal/suggestions.js';
import { stdoutPage } from './terminal/terminal.js';
import { fillProse } from './terminal/text.js';

// Node keeps it, which main.ts has read.
const version = () => (createRequire(import.meta.filename)('../package.json') as { version: string }).version;

/** By their names, in the order of the help, each with its line in the list of commands. */
export type Commands = Readonly<
  Record<string, readonly [add: (program: Command) => unknown, summary: string]>
>;

const START = `Run a program on exclusive CPUs, plan a pod, or look at the machine:

  numalign run --cpus 2 -- ./server --port 8080
  numalign plan -f pod.yaml
  numalign status; numalign topology`;

export function programOf(commands: Commands): Command {
  const program = new HelpfulCommand('numalign')
    .usage('<command> [options]')
    .description(START)
    .helpCommand('help [command]', 'show the help of a command')
    .helpOption('-h, --help', 'show this help, or that of a command')
    .version(version(), '-V, --version', 'show the version')
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .enablePositionalOptions()
    .showHelpAfterError('(--help after the command shows its options)')
    .configureOutput({
      getOutHelpWidth: () => stdoutPage().width,
      // Commander writes only help to stdout.
      writeOut: (text) => print(fillProse(text, stdoutPage().width)),
      // Without a command, help goes to stderr too, in pieces; an error keeps its lines.
      writeErr: (text) =>
        printToStderr(/^(numalign: |\()/.test(text) ? text : fillProse(text, stdoutPage().width)),
      // A whole sentence of an argument parser stands alone.
      outputError: (text, write) =>
        write(
          text
            .replace(
              /^error: (command-argument value '.*' is invalid for argument '.*'\. (?="))?/,
              'numalign: ',
            )
            .replace(
              /(too many arguments for '(?:plan|admit)')\. .*/,
              '$1: pods come from a file, as in -f pod.yaml',
            ),
        ),
    })
    .exitOverride();
  // A new command copies the settings above.
  for (const [add, summary] of Object.values(commands)) {
    add(program);
    program.commands.at(-1)!.summary(summary);
  }
  return program.addHelpText(
    'after',
    `
Exit code: 0 on success; 1 for an error, a rejected pod or a problem that doctor found; 2 for a wrong command line; run exits as its program does.
Errors go to stderr as "numalign: message [CODE]", with --output json as JSON; NUMALIGN_DEBUG=1 adds stack traces.`,
  );
}

export async function runIn(program: Command, argv: readonly string[]): Promise<void> {
  let format: unknown;
  program.hook('preAction', (_, command) => {
    format = command.opts().output;
    useStateDirVariable(command);
  });
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = reportError(error, format === 'json' ? 'json' : 'text');
  }
}

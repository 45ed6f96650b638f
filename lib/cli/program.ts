// The program: its commands and what they have in common.
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { addAdmit } from './commands/admit.js';
import { addAgent } from './commands/agent.js';
import { addAttach } from './commands/attach.js';
import { addCompletion } from './commands/completion.js';
import { addConfigure } from './commands/configure.js';
import { addDefragment } from './commands/defragment.js';
import { addDoctor } from './commands/doctor.js';
import { addPlan } from './commands/plan.js';
import { addRelease } from './commands/release.js';
import { addRun } from './commands/run.js';
import { addSetup } from './commands/service/setup.js';
import { addSystemdUnit } from './commands/service/systemd-unit.js';
import { addShare } from './commands/share.js';
import { addState } from './commands/state.js';
import { addStatus } from './commands/status.js';
import { addTopology } from './commands/topology.js';
import { print, printToStderr } from './terminal/output.js';
import { reportError } from './terminal/report-error.js';
import { stdoutPage } from './terminal/terminal.js';
import { fillProse } from './terminal/text.js';

function version(): string {
  const file = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(file) as { version: string }).version;
}

// In the order of the help.
const COMMANDS: Readonly<Record<string, (program: Command) => unknown>> = {
  topology: addTopology,
  plan: addPlan,
  run: addRun,
  admit: addAdmit,
  status: addStatus,
  attach: addAttach,
  release: addRelease,
  defragment: addDefragment,
  share: addShare,
  configure: addConfigure,
  setup: addSetup,
  'systemd-unit': addSystemdUnit,
  state: addState,
  agent: addAgent,
  doctor: addDoctor,
  completion: addCompletion,
};

/** `only`: the name of one command, without the others, which take time to make. */
export function createProgram(only?: string): Command {
  const program = new Command('numalign')
    .description('Exclusive CPUs on the right NUMA node, for a command, for pods, or for looking at.')
    .version(version())
    .enablePositionalOptions()
    .showHelpAfterError('(--help after the command shows its options)')
    .configureOutput({
      getOutHelpWidth: () => stdoutPage().width,
      // Only help is written there.
      writeOut: (text) => print(fillProse(text, stdoutPage().width)),
      // The help of who gives no command goes there too, in pieces; an error stays in its lines.
      writeErr: (text) =>
        printToStderr(/^(numalign: |\()/.test(text) ? text : fillProse(text, stdoutPage().width)),
      // What a parser says in a whole sentence needs no more around it.
      outputError: (text, write) =>
        write(
          text.replace(
            /^error: (command-argument value '.*' is invalid for argument '.*'\. (?="))?/,
            'numalign: ',
          ),
        ),
    })
    .exitOverride();
  // Commands take the settings above over when they are made.
  for (const add of only === undefined ? Object.values(COMMANDS) : [COMMANDS[only]!]) add(program);
  return program.addHelpText(
    'after',
    `
Examples:
  $ numalign topology
  $ numalign run --cpus 2 -- ./server --port 8080
  $ numalign plan -f pod.yaml
  $ numalign status
  $ numalign doctor

Exit code: 0 where it is done; 1 where it is not (an error, a pod that is rejected, a problem that doctor found); 2 for a wrong command line. run
exits as its command does. Errors go to stderr as "numalign: message [CODE]", in several lines where a rejection is explained; with --output json as one
line of JSON, { error: { code, message, details } }, but for those of the command line itself.

NO_COLOR and FORCE_COLOR are obeyed. NUMALIGN_DEBUG=1 adds stack traces to errors.`,
  );
}

export async function runProgram(argv: readonly string[]): Promise<void> {
  const [, , name = ''] = argv;
  // What completes command lines knows all of them.
  const isAlone = Object.hasOwn(COMMANDS, name) && name !== 'completion';
  const program = createProgram(isAlone ? name : undefined);
  let format: unknown;
  program.hook('preAction', (_, command) => {
    format = command.opts().output;
  });
  try {
    await program.parseAsync(argv);
  } catch (error) {
    process.exitCode = reportError(error, format === 'json' ? 'json' : 'text');
  }
}

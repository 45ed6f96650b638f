// The program: its commands and their common settings.
import { createRequire } from 'node:module';
import type { Command } from 'commander';
import { useStateDirVariable } from './arguments/state-dir.js';
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
import { addUninstall } from './commands/service/uninstall.js';
import { addShare } from './commands/share.js';
import { addState } from './commands/state.js';
import { addStatus } from './commands/status.js';
import { addTop } from './commands/top.js';
import { addTopology } from './commands/topology.js';
import { print, printToStderr } from './terminal/output.js';
import { reportError } from './terminal/report-error.js';
import { HelpfulCommand } from './terminal/suggestions.js';
import { stdoutPage } from './terminal/terminal.js';
import { fillProse } from './terminal/text.js';

export { fillProse };

// Node keeps it, which main.ts has read.
const version = () => (createRequire(import.meta.url)('../package.json') as { version: string }).version;

// In the order of the help, each with its line in the list of commands.
const COMMANDS: Readonly<Record<string, readonly [add: (program: Command) => unknown, summary: string]>> = {
  run: [addRun, 'run a program on exclusive CPUs until it ends'],
  plan: [addPlan, 'show where pods would go, here or on a machine that you describe'],
  status: [addStatus, 'show grants, their owners and the shared pool'],
  top: [addTop, 'show what happens on the CPUs of grants'],
  topology: [addTopology, 'show NUMA nodes, caches, cores, CPUs and devices'],
  admit: [addAdmit, 'give pods CPUs, memory and devices until you release them'],
  release: [addRelease, 'give back what a grant or pod holds'],
  attach: [addAttach, 'move a running process onto the CPUs of a grant'],
  share: [addShare, 'keep a process or cgroup in the shared pool'],
  defragment: [addDefragment, 'move grants that consent, so that one NUMA node gets room'],
  doctor: [addDoctor, 'check what numalign can do here, and how to fix what it cannot'],
  configure: [addConfigure, "change the machine's settings"],
  setup: [addSetup, 'install group, folder, slice, agent and boot unit for systemd'],
  uninstall: [addUninstall, 'remove what numalign has made on this machine'],
  'systemd-unit': [addSystemdUnit, 'print a systemd unit that runs a program on exclusive CPUs'],
  agent: [addAgent, 'free the CPUs of dead owners, repair drift, serve metrics'],
  state: [addState, "show the state file; export or import the kubelet's files"],
  completion: [addCompletion, 'print a completion script for your shell'],
};

const START = `Run a program on exclusive CPUs, plan a pod, or look at the machine:

  numalign run --cpus 2 -- ./server --port 8080
  numalign plan -f pod.yaml
  numalign status; numalign topology`;

/** @param only the only command to make: each of the others takes time */
export function createProgram(only?: string): Command {
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
  const names = only === undefined ? Object.keys(COMMANDS) : [only];
  for (const name of names) {
    const [add, summary] = COMMANDS[name]!;
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

export async function runProgram(given: readonly string[]): Promise<void> {
  // Other programs have such a command.
  const argv = given[2] === 'version' ? given.with(2, '--version') : given;
  const [, , name = ''] = argv;
  // The completion script covers all commands.
  const isAlone = Object.hasOwn(COMMANDS, name) && name !== 'completion';
  const program = createProgram(isAlone ? name : undefined);
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

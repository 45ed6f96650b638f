// numalign systemd-unit: prints a unit that runs a program on exclusive CPUs.

import { basename, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { NumalignError } from 'numalign';
import { outputOption } from '../../arguments/arguments.js';
import { checkCpusOrRange } from '../../arguments/pod-flags.js';
import type { StateFlags } from '../../arguments/state-dir.js';
import { type Partition, serviceUnit, type UnitWord } from '../../systemd/service-unit.js';
import { SLICE } from '../../systemd/setup-files.js';
import { isSliceName, isTemplate, serviceName } from '../../systemd/unit-name.js';
import { isPlainValue, literal, unitWord } from '../../systemd/unit-word.js';
import { installedLauncher, programPath } from '../../terminal/installed.js';
import { print, tell } from '../../terminal/output.js';
import { formatJson } from '../../terminal/text.js';
import { addRun } from '../run.js';
import { partitionHere, partitionOption } from './partition.js';
import { PassedOptions } from './passed-options.js';

interface UnitFlags extends StateFlags {
  cpus?: number | { readonly min: number; readonly max: number };
  weight?: number;
  supervise?: boolean;
  mixed?: boolean;
  name?: string;
  user?: string;
  description?: string;
  type: string;
  restart: string;
  slice?: string;
  workingDirectory?: string;
  partition?: Required<Partition>;
}

// The options of run in the help: all of them would fill two screens.
const MOST_USED = ['--cpus', '--name', '--state-dir'];

export function addSystemdUnit(program: Command): void {
  const command: Command = program.command('systemd-unit');
  command
    .description('Print a systemd unit that runs a command on exclusive CPUs.')
    .argument('<command>')
    .argument('[args...]')
    .usage('--cpus <n> [options] -- <command> [args...]')
    .addOption(new Option('--user <user>', 'the user of the process (default: root)').argParser(userName))
    .addOption(new Option('--description <text>', 'of the unit (default: from its name)').argParser(oneLine))
    .addOption(
      new Option('--type <type>', 'when it is ready: once it has started, or when it calls sd_notify')
        .choices(['exec', 'notify'])
        .default('exec'),
    )
    .addOption(
      new Option('--restart <when>', 'when systemd starts it again')
        .choices(['no', 'on-failure', 'on-abnormal', 'always'])
        .default('on-failure'),
    )
    .addOption(new Option('--slice <slice>', `its slice (default: ${SLICE})`).argParser(sliceName))
    .addOption(
      new Option('--working-directory <dir>', 'where it runs (default: here)').argParser((text) => {
        if (text === '') throw new InvalidArgumentError('It is empty.');
        return oneLine(resolve(text));
      }),
    )
    .addOption(partitionOption());
  const runOptions = new PassedOptions(command, addRun, [], MOST_USED);
  command
    .addOption(outputOption())
    .passThroughOptions()
    .addHelpText(
      'after',
      `
You can give every option of "numalign run" (see its --help). Without --name the grant has the name of the program. A name that ends in @ makes a
template: each instance has its own grant. The unit uses the paths of Node, numalign and the program on this machine. "numalign setup" makes the
group, for --user, and the folder at each boot. --partition needs systemd 261, --user and --state-dir.

JSON: name, text.

Exit code: 0; 1 for a wrong unit name or an error; 2 for a wrong command line.

Examples:
  $ numalign systemd-unit --cpus 1 --user gateway --type notify -- node app.mjs
  $ numalign systemd-unit --cpus 2 --name gateway -- ./server > /etc/systemd/system/gateway.service`,
    )
    .action((executable: string, args: string[], flags: UnitFlags) => {
      // The same check as in `run`.
      if (flags.cpus === undefined) command.error("error: required option '--cpus <n>' not specified");
      checkCpusOrRange(command, flags);
      checkPartition(command, flags);
      printUnit([executable, ...args], flags, runOptions);
    });
}

function checkPartition(command: Command, { partition, user, stateDir }: UnitFlags): void {
  // In the machine's state others would be granted its CPUs, and root would leave the unit's cgroup.
  if (partition && (user === undefined || stateDir === undefined))
    command.error('error: --partition needs --user and --state-dir: its CPUs belong to this unit alone');
}

// User directories have names with dots. Two of the numbers stand for no user.
function userName(text: string): string {
  const isNumber = /^(0|[1-9]\d*)$/.test(text);
  if (isNumber ? isUserId(Number(text)) : /^[A-Za-z_][\w.-]{0,30}$/.test(text)) return text;
  throw new InvalidArgumentError(`"${text}" is not the name of a user.`);
}

const isUserId = (id: number) => id < 2 ** 32 - 1 && id !== 2 ** 16 - 1;

function oneLine(text: string): string {
  if (isPlainValue(text)) return text;
  throw new InvalidArgumentError(`It must be ${PLAIN}.`);
}

const PLAIN = 'one line without control characters, and without a space or backslash at its ends';

function folderHere(): string {
  const folder = process.cwd();
  if (isPlainValue(folder)) return folder;
  const text = `a unit cannot name the working directory "${folder}": give --working-directory`;
  throw new NumalignError('ERR_INVALID_ARGUMENT', text, { value: folder, valid: PLAIN });
}

function sliceName(text: string): string {
  if (isSliceName(text)) return text;
  throw new InvalidArgumentError('It must be the name of a slice, such as numalign.slice.');
}

function nameWords(flags: UnitFlags, name: string): UnitWord[] {
  if (isTemplate(name)) return ['--name', { specifiers: unitWord(`${name}%i`) }];
  return flags.name === undefined ? ['--name', name] : [];
}

/** The options of `run`, with the name of the grant. */
function runWords(flags: UnitFlags, name: string, runOptions: readonly string[]): UnitWord[] {
  const at = runOptions.lastIndexOf('--name');
  const words =
    isTemplate(name) && at >= 0 ? runOptions.filter((_, i) => i !== at && i !== at + 1) : runOptions;
  return [...words, ...nameWords(flags, name)];
}

function printUnit(
  [executable, ...args]: readonly string[],
  flags: UnitFlags,
  runOptions: PassedOptions,
): void {
  const path = programPath(executable!);
  const { name = basename(path), type, restart, user, stateDir, partition } = flags;
  // Each cgroup above a partition must be one too.
  const { slice = partition ? '-.slice' : SLICE } = flags;
  const unit = serviceName(name);
  const text = serviceUnit(
    {
      name,
      type,
      restart,
      slice,
      user,
      stateDir,
      partition: partition && partitionHere(partition, unit),
      description:
        flags.description === undefined
          ? `${literal(name).replace(/@$/, ' %i')} on its own CPUs`
          : literal(flags.description),
      workingDirectory: flags.workingDirectory ?? folderHere(),
      options: runWords(flags, name, runOptions.words),
      command: [path, ...args],
    },
    installedLauncher(),
  );
  if (!path.startsWith('/')) tell(`warning: ${path} is not found here: it must be in the PATH of the unit`);
  if (flags.output === 'json') print(formatJson({ name: unit, text }));
  else print(text);
}

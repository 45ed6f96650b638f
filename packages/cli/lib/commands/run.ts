// numalign run: runs a command on exclusive CPUs.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { besideText, elasticText, withMixed } from '@numalign/page/words';
import { type Command, Option } from 'commander';
import { type AcquireOptions, type Grant, type Manager, type ManagerOptions, openManager } from 'numalign';
import { cpusNamed, delayNotices, isExtendedResource, isNumalignError, reworded } from 'numalign/tools';
import { outputOption } from '../arguments/arguments.js';
import { type DeviceFlags, deviceOptions, devicesOf } from '../arguments/devices.js';
import { type EnforcementFlags, enforcementOptions, enforcementRequest } from '../arguments/enforcement.js';
import { agreedOption, settingsOf } from '../arguments/machine-settings.js';
import { type MovableFlags, movableOption } from '../arguments/movable.js';
import { type PlacementFlags, placementFlags, placementOf } from '../arguments/placement-flags.js';
import {
  checkCpusOrRange,
  cpusOrRangeOption,
  type PodFlags,
  podOptions,
  weightOption,
} from '../arguments/pod-flags.js';
import { besideKubeletOption, stateDirOption } from '../arguments/state-dir.js';
import { openingLines, warningLines } from '../pages/pod-text.js';
import { quietLines, quietText } from '../pages/quiet-text.js';
import { becomeCommand, superviseCommand } from '../running/command-end.js';
import { messageLine, printToStderr, tell as tellLine } from '../terminal/output.js';
import { errorJson } from '../terminal/report-error.js';
import { dieOf } from '../terminal/signals.js';
import { jsonLine } from '../terminal/text.js';

interface RunFlags
  extends Omit<PodFlags, 'cpus'>,
    PlacementFlags,
    EnforcementFlags,
    DeviceFlags,
    MovableFlags {
  cpus?: AcquireOptions['cpu'];
  weight?: number;
  name?: string;
  stateDir?: string;
  wait?: boolean;
  besideKubelet?: boolean;
  supervise?: boolean;
  threadCounts?: 'auto';
  silent?: boolean;
  output: 'text' | 'json';
}

export function addRun(program: Command): void {
  const command: Command = program.command('run');
  command
    .description('Run a command on exclusive CPUs until it ends.')
    .argument('<command>', 'the program')
    .argument('[args...]', 'its arguments')
    .usage('--cpus <n> [options] -- <command> [args...]');
  for (const option of podOptions(cpusOrRangeOption())) command.addOption(option);
  command
    .addOption(weightOption())
    .option(
      '--name <name>',
      'name of the grant (default: its uid); it gets the CPUs of the last grant of that name if they are free',
    )
    .option('--wait', 'wait until there is room; the longest wait comes first')
    .addOption(agreedOption('reservedSystemCPUs'))
    .addOption(movableOption())
    .addOption(agreedOption('isolatedCPUs'));
  for (const option of [...placementFlags('run'), ...enforcementOptions(), ...deviceOptions()])
    command.addOption(option);
  command
    .addOption(agreedOption('cgroupRoot'))
    .addOption(stateDirOption())
    .addOption(besideKubeletOption())
    .addOption(outputOption())
    .addOption(
      new Option(
        '--thread-counts <how>',
        'auto: set OMP_NUM_THREADS and others, so that libraries start one thread for each CPU',
      ).choices(['auto']),
    )
    .option(
      '--supervise',
      'stay beside the command and end its grant with it (default with --quiet, --movable and a range of CPUs)',
    )
    .option('--no-supervise', 'become the command, with --quiet too')
    .option('--silent', 'print errors only')
    .passThroughOptions()
    .addHelpText(
      'after',
      `
The environment of the command has NUMALIGN_GRANT (the uid), NUMALIGN_CPUS (the list) and NUMALIGN_DEVICES (a JSON object of ids by resource).
Memory comes from the NUMA nodes of the grant while they have room. With --mixed the command runs on the exclusive CPUs; a program that uses
numalign can put threads into the shared pool.

numalign becomes the command and keeps its process id, so signals, exit code and notifications are those of the command. The grant ends when the command
and the processes that it left running have ended: a shell that waits for that, or the agent, then returns the CPUs to the shared pool. If no process
is in the pool, the next use of the folder does. With --supervise numalign stays beside the command, forwards signals, and exits as it does. Use it
for a command that closes unknown descriptors, as sudo does: closing them ends the grant.

The command runs in its own cgroup if the state has a cgroup root that this user may write to, else on its CPUs by affinity only. The line at
the start shows the enforcement level; below --require the command does not run. Messages go to stderr, because stdout belongs to the command. With
--output json the grant, or the error, is one line of JSON on stderr.

With a range such as --cpus 2..8 numalign also stays beside the command. The command has as many of these CPUs as there is room for, gives some up
when others ask, and gets more when there is room. --weight sets the shares of several such grants.

--quiet (as root) keeps interrupts, kernel work, packets, deep idle states and low frequencies off its CPUs until it ends, and reports what it could not
do, a line for each part. This changes settings of the machine, which --supervise restores.

With --movable numalign stays beside the command, and moves it to other CPUs and its memory to other NUMA nodes if that makes room for others.

JSON: one line on stderr, with uid, name, cpus, mixed, elastic, parts, held, upcoming, numaNodes, memory, memoryNodes, devices, movable, isIsolated,
enforcement, memoryEnforcement, quiet, flags, warnings.

Exit code: that of the command, or its signal; 126 if it cannot be executed, 127 if it is not found; 1 if there is no room for
it; 2 for a wrong command line.

Examples:
  $ numalign run --cpus 2 -- ./server --port 8080
  $ numalign run --cpus 4 --name gateway --align-l3 -- node gateway.js
  $ numalign run --cpus 4 --wait -- make -j4
  $ numalign run --cpus 2..8 -- ./server
  $ numalign run --cpus 2.5 --mixed -- node --import numalign/preload app.mjs
  $ numalign run --cpus 2 --memory 2Gi --resource example.com/nic=1 --device example.com/nic=class:0200 -- ./server
  $ numalign run --cpus 2 --policy single-numa-node --smt hold-sibling -- ./server
  $ numalign run --cpus 1 --isolation require -- ./poller
  $ numalign run --cpus 2 --require cpuset -- ./server
  $ numalign run --cpus 1 --quiet interrupts,workqueues --require-quiet interrupts -- ./poller
  $ numalign run --cpus 2 --movable notice=1s -- ./server
  $ numalign run --cpus 1 --reserved 0 --state-dir ~/numalign -- sh -c 'grep Cpus_allowed_list /proc/self/status'`,
    )
    .action((program: string, args: string[], flags: RunFlags) => {
      // Not by makeOptionMandatory(): it would call a misspelled --cpus missing, and suggest no
      // spelling.
      if (flags.cpus === undefined) command.error("error: required option '--cpus <n>' not specified");
      checkCpusOrRange(command, flags);
      if (flags.movable && flags.supervise === false)
        command.error("error: option '--movable [terms]' cannot be used with option '--no-supervise'");
      return run(program, args, { ...flags, cpus: flags.cpus });
    });
}

type Tell = (text: string) => void;

// Longer than a request with room takes, and shorter than others wait for a member's answer (1 s).
const NOTICE_DELAY_MS = 500;

async function run(command: string, args: readonly string[], flags: RunFlags & CpuFlags): Promise<void> {
  const tell: Tell = (text) => {
    if (!flags.silent) tellLine(text);
  };
  const isSupervised =
    flags.supervise ??
    (flags.quiet !== undefined || flags.movable !== undefined || typeof flags.cpus === 'object');
  nameAfter(command, args, isSupervised);
  if (!isSupervised) delayNotices(NOTICE_DELAY_MS);
  const { manager, grant } = await acquire(flags, tell);
  const presentation = () => {
    if (flags.silent) return '';
    return flags.output === 'json' ? jsonLine(grant) : grantLines(grant).map(messageLine).join('');
  };
  const fail = (message: string) =>
    flags.output === 'json' ? printToStderr(errorJson(new Error(message))) : tellLine(message);
  const { threadCounts } = flags;
  const options = threadCounts ? { threadCounts } : {};
  const { stateDir } = manager;
  const run = { command, args, options, grant, stateDir, presentation, tell, fail };
  if (!isSupervised) {
    // Ends the shared membership of this process.
    manager.close();
    await becomeCommand(run);
    return;
  }
  const signal = await superviseCommand(run).finally(() => manager.close());
  if (signal !== null) dieOf(signal);
}

// The state shows people the command line of this process: make it show the command that it runs.
function nameAfter(command: string, args: readonly string[], isSupervised: boolean): void {
  const [node = '', script = ''] = process.argv;
  process.argv = [node, script, 'run', ...(isSupervised ? ['--supervise'] : []), '--', command, ...args];
}

interface CpuFlags {
  readonly cpus: AcquireOptions['cpu'];
}

interface Acquisition {
  readonly manager: Manager;
  readonly grant: Grant;
}

async function acquire(flags: RunFlags & CpuFlags, tell: Tell): Promise<Acquisition> {
  const { cpus, memory, resource, name, wait = false, mixed, movable, weight } = flags;
  const least = typeof cpus === 'object' ? cpus.min : cpus;
  const request: AcquireOptions = {
    cpu: cpus,
    ...(mixed && { mixed }),
    ...(movable && { movable }),
    ...(weight !== undefined && { weight }),
    ...(memory !== undefined && { memory }),
    ...(resource && { resources: resource }),
    ...(name !== undefined && { name }),
    ...placementOf(flags, ['request', 'both']),
    ...enforcementRequest(flags),
    wait,
  };
  const channel = wait ? (await import('numalign/diagnostics')).DIAGNOSTICS_CHANNELS.wait : undefined;
  const manager = await openManager(await openingOptions(flags));
  openingLines(manager.warnings).forEach(tell);
  const tellWait = () => tell(`waiting for ${least} CPU${least === 1 ? '' : 's'}`);
  if (channel) subscribe(channel, tellWait);
  try {
    return { manager, grant: await manager.acquire(request) };
  } catch (error) {
    manager.close();
    throw inWordsOfRun(error);
  } finally {
    if (channel) unsubscribe(channel, tellWait);
  }
}

// The API's message names functions, not flags.
function inWordsOfRun(error: unknown): unknown {
  if (!isNumalignError(error, 'ERR_INVALID_OPTION')) return error;
  if (error.details.option !== 'resources') return error;
  const name = String(error.details.value);
  if (!isExtendedResource(name)) return error;
  const message = `${name} is not registered here: say which devices it is, such as --device ${name}=class:0200`;
  return reworded(error, message, { cause: error });
}

async function openingOptions(flags: RunFlags): Promise<ManagerOptions> {
  const { stateDir, besideKubelet } = flags;
  return {
    ...(stateDir !== undefined && { stateDir }),
    ...(besideKubelet !== undefined && { besideKubelet }),
    ...settingsOf(flags),
    ...placementOf(flags, ['manager']),
    devices: await devicesOf(flags),
  };
}

function grantLines(grant: Grant): string[] {
  const { uid, cpus, mixed, elastic, held, numaNodes, memory, devices } = grant;
  const { isIsolated, enforcement, quiet, warnings } = grant;
  const parts = [
    `${isIsolated ? 'isolated ' : ''}${withMixed(cpusNamed(cpus), mixed)}${elasticText(elastic)}${held.isEmpty ? '' : ` (held: ${held})`} on NUMA node${numaNodes.size === 1 ? '' : 's'} ${numaNodes} (${enforcement})`,
    besideText(memory, devices),
    quietText(quiet),
    `grant ${uid}`,
  ];
  return [parts.filter((part) => part !== '').join(', '), ...quietLines(quiet), ...warningLines(warnings)];
}

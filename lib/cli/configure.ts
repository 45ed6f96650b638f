// numalign configure: the settings that all users of a state folder share.
import { type Command, Option } from 'commander';
import type { MachineOptions } from '../config.js';
import type { CpuSet } from '../cpu-set.js';
import { openManager } from '../manager.js';
import { discover } from '../topology.js';
import { cpuList, cpuListOrAll } from './arguments.js';
import { MACHINE_STATE_DIR, stateDirOption } from './state-dir.js';
import { readState } from './state-view.js';
import { settingsRows } from './status-text.js';
import { table } from './table.js';
import { stdoutColors, stdoutWidth } from './terminal.js';

interface ConfigureFlags {
  managed?: CpuSet | 'all';
  reserved?: CpuSet;
  strict?: boolean;
  stateDir?: string;
}

export function addConfigure(program: Command): void {
  const command = program.command('configure');
  command
    .description("Change the machine's settings for all its users. Grants in force are kept.")
    .addOption(
      new Option('--managed <list>', 'CPUs that are handed out or shared; "all": every online CPU').argParser(
        cpuListOrAll,
      ),
    )
    .addOption(new Option('--reserved <list>', 'CPUs that are never exclusive; "none": no CPU').argParser(cpuList))
    .option('--strict', 'keep the reserved CPUs out of the shared pool too')
    .option('--no-strict', 'the reserved CPUs are shared')
    .addOption(stateDirOption())
    .addHelpText(
      'after',
      `
Prints the settings before and after. Makes the state folder where there is none.

Examples:
  $ numalign configure --reserved 0,32
  $ numalign configure --managed 2-15 --strict
  $ numalign configure --managed all --reserved none --no-strict`,
    )
    .action((flags: ConfigureFlags) => {
      if (flags.managed === undefined && flags.reserved === undefined && flags.strict === undefined) {
        command.error('error: nothing to change: give --managed, --reserved, --strict or --no-strict');
      }
      return configure(flags);
    });
}

async function configure({ managed, reserved, strict, stateDir = MACHINE_STATE_DIR }: ConfigureFlags): Promise<void> {
  const topology = await discover();
  const manager = await openManager({ stateDir, topology });
  const before = readState(stateDir, topology)!;
  const options: MachineOptions = {
    ...(managed !== undefined && { managedCPUs: managed === 'all' ? null : managed }),
    ...(reserved !== undefined && { reservedSystemCPUs: reserved }),
    ...(strict !== undefined && { strictCPUReservation: strict }),
  };
  await manager.configure(options);
  manager.close();
  const after = settingsRows(readState(stateDir, topology)!);
  const rows = settingsRows(before).map(([label, was], i) => [label, was, after[i]![1]]);
  const columns = [{ title: stateDir, flexible: true }, { title: 'BEFORE' }, { title: 'AFTER' }];
  process.stdout.write(`${table(columns, rows, { width: stdoutWidth(), colors: stdoutColors() }).join('\n')}\n`);
}

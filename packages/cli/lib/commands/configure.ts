// numalign configure: changes the settings that all users of a state folder share.
import type { Command } from 'commander';
import { openManager } from 'numalign';
import type { StateStatus } from 'numalign/diagnostics';
import { cpusNamed } from 'numalign/tools';
import { outputOption } from '../arguments/arguments.js';
import { configureOptions, type SettingFlags, settingsOf } from '../arguments/machine-settings.js';
import { MACHINE_STATE_DIR, type StateFlags, stateDirOption } from '../arguments/state-dir.js';
import { openingLines } from '../pages/pod-text.js';
import { settingsRows } from '../pages/settings-text.js';
import { flagLines } from '../pages/status/grant-lines.js';
import { print, tell } from '../terminal/output.js';
import { table } from '../terminal/table.js';
import { stdoutPage } from '../terminal/terminal.js';
import { formatJson } from '../terminal/text.js';

interface ConfigureFlags extends SettingFlags, StateFlags {}

export function addConfigure(program: Command): void {
  const command = program
    .command('configure')
    .description('Change the settings of the machine for all its users. Grants stay as they are.');
  const options = configureOptions();
  for (const option of options) command.addOption(option);
  command
    .addOption(stateDirOption())
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Prints the settings before and after. Makes the state folder if there is none.

JSON: stateDir, before, after, flagged.

Exit code: 0 on success; 1 if the settings are refused, and for an error; 2 for a wrong command line.

Examples:
  $ numalign configure --reserved 0,32
  $ numalign configure --managed 2-15 --strict
  $ numalign configure --isolated 12-15
  $ numalign configure --reserved-memory 0:memory=2Gi --reserved-memory 1:hugepages-2Mi=64Mi
  $ numalign configure --cgroup-root /numalign
  $ numalign configure --kubelet-version v1.36 --feature-gates PodLevelResourceManagers=true
  $ numalign configure --managed all --reserved none --no-strict`,
    )
    .action((flags: ConfigureFlags) => {
      if (Object.keys(settingsOf(flags)).length === 0) {
        const names = options.map(({ long }) => long);
        command.error(`error: nothing to change: give ${names.slice(0, -1).join(', ')} or ${names.at(-1)}`);
      }
      return configure(flags);
    });
}

// Why no CPU can be granted, even without any grant; undefined if some can.
function whyNothing({ settings }: StateStatus): string | undefined {
  const { managedCPUs, reservedSystemCPUs, strictCPUReservation, isolatedCPUs } = settings;
  const grantable = managedCPUs.difference(reservedSystemCPUs).difference(isolatedCPUs);
  if (!isolatedCPUs.isEmpty || grantable.size > 1) return undefined;
  if (grantable.isEmpty) return `all that are managed (${managedCPUs}) are reserved`;
  const isAllShared = strictCPUReservation || grantable.equals(managedCPUs);
  return isAllShared ? `${cpusNamed(grantable)} is all that is shared, and stays so` : undefined;
}

async function configure(flags: ConfigureFlags): Promise<void> {
  const { stateDir = MACHINE_STATE_DIR, output } = flags;
  // This command grants nothing.
  const manager = await openManager({ stateDir, besideKubelet: true, sharedMember: false });
  openingLines(manager.warnings).forEach(tell);
  const before = manager.status();
  let after: StateStatus;
  try {
    await manager.configure(settingsOf(flags));
    after = manager.status();
  } finally {
    manager.close();
  }
  const why = whyNothing(after);
  if (why !== undefined) tell(`warning: with these settings no CPU can be granted: ${why}`);
  if (output === 'json') {
    const flaggedGrants = after.grants
      .filter(({ flags }) => flags.length > 0)
      .map(({ uid, name, flags }) => ({ uid, name, flags }));
    print(formatJson({ stateDir, before: before.settings, after: after.settings, flagged: flaggedGrants }));
    return;
  }
  const now = settingsRows(after.settings);
  const rows = settingsRows(before.settings).map(([label, was], i) => [label, was, now[i]![1]]);
  const columns = [{ title: stateDir, flexible: true }, { title: 'BEFORE' }, { title: 'AFTER' }];
  const flagged = flagLines(after.grants);
  const lines = [
    ...table(columns, rows, stdoutPage()),
    ...(flagged.length > 0
      ? ['', 'flagged: kept until released', ...flagged.map((line) => `  ${line}`)]
      : []),
  ];
  print(`${lines.join('\n')}\n`);
}

// numalign uninstall: removes what numalign has made on a machine, as `numalign setup --remove` does.
import type { Command } from 'commander';
import { outputOption } from '../../arguments/arguments.js';
import { addRemovalOptions } from './setup.js';
import type { SetupFlags } from './setup-machine.js';

export function addUninstall(program: Command): void {
  const command: Command = program.command('uninstall');
  addRemovalOptions(
    command.description(
      'Remove what numalign has made on this machine, as "numalign setup --remove": units, group and files, the state with its folder, cgroups, and changes of kernel settings.',
    ),
  );
  command
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
Grants of dead owners are released. While others live, nothing is removed: end their programs, or release them. --force releases those that no
process owns, and leaves what the others need: their cgroups, the folder and the group. So do programs that have the state open.

What stays is reported, with the reason: files that you have edited, a group that has members or existed before, and kernel settings that could
not be put back. With --root, a folder with a state in it stays until the next boot. The packages stay: npm uninstall --global @numalign/cli.

JSON: root, dryRun, commands, notes, files (as of setup), state (grants, settings, cgroups, folder: null if it stays; null without a state).

Exit code: 0 on success; 1 for an error, also if grants live; 2 for a wrong command line.

Examples:
  $ numalign uninstall --dry-run
  $ numalign uninstall
  $ numalign uninstall --force`,
    )
    .action(async (flags: SetupFlags) => {
      const { setup } = await import('./setup-machine.js');
      await setup({ ...flags, remove: true }, []);
    });
}

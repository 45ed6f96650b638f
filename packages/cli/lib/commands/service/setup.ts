// numalign setup: installs what numalign needs at each boot of a machine with systemd.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { outputOption } from '../../arguments/arguments.js';
import { addConfigure } from '../configure.js';
import { PassedOptions } from './passed-options.js';
import type { SetupFlags } from './setup-machine.js';

export function addSetup(program: Command): void {
  const command: Command = program.command('setup');
  command
    .description(
      'Install the group, folder, slice and agent of numalign, and a boot unit with its settings, for systemd.',
    )
    .option('--remove', 'remove all that numalign has made on this machine');
  addRemovalOptions(command);
  const settings = new PassedOptions(command, addConfigure, ['--state-dir']);
  command
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
The agent gives CPUs back as soon as their owners end, however they end.

The boot unit applies the settings that you give here, with the options of "numalign configure", at each boot. Without settings, setup makes no
boot unit and keeps an existing one. Members of the group numalign may use the machine's folder: usermod --append --groups numalign USER.

You can run setup again. It reports and keeps files that you have edited. --remove is "numalign uninstall".

JSON: root, dryRun, commands, notes, files (path, action: write, replace, unchanged, remove, kept, needed or absent, text).

Exit code: 0 on success; 1 for an error, such as a file that cannot be written; 2 for a wrong command line.

Examples:
  $ numalign setup --reserved 0 --dry-run
  $ numalign setup --reserved 0
  $ numalign setup --root /mnt/image --managed 2-15 --strict
  $ numalign setup --remove`,
    )
    .action(async (flags: SetupFlags) => {
      if (flags.remove && settings.words.length > 0)
        command.error(`error: option '${settings.words[0]}' cannot be used with option '--remove'`);
      if (flags.force && !flags.remove) command.error("error: option '--force' needs option '--remove'");
      const { setup } = await import('./setup-machine.js');
      await setup(flags, settings.words);
    });
}

/** The options of a removal, which {@link addUninstall} has too. */
export function addRemovalOptions(command: Command): void {
  command
    .option('--force', 'remove what living grants do not need')
    .option('--dry-run', 'only show what it would do')
    .addOption(
      new Option('--root <dir>', 'root of a system that is not running, such as an image').argParser(
        (text) => {
          if (text === '') throw new InvalidArgumentError('It is empty.');
          return resolve(text);
        },
      ),
    );
}

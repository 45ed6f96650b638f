// numalign setup: what a machine with systemd needs for numalign, made once for every boot.
import { resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { outputOption } from '../../arguments/arguments.js';
import { addConfigure } from '../configure.js';
import { PassedOptions } from './passed-options.js';
import { type SetupFlags, setup } from './setup-machine.js';

export function addSetup(program: Command): void {
  const command: Command = program.command('setup');
  command
    .description(
      'Make the group, the folder and the slice of numalign, and a boot unit of its settings, where systemd runs.',
    )
    .option('--remove', 'take away what it has made')
    .option('--dry-run', 'change nothing, and show files and commands')
    .addOption(
      new Option('--root <dir>', 'of a system that does not run, such as an image').argParser((text) => {
        if (text === '') throw new InvalidArgumentError('It is empty.');
        return resolve(text);
      }),
    );
  const settings = new PassedOptions(command, addConfigure, ['--state-dir']);
  command
    .addOption(outputOption())
    .addHelpText(
      'after',
      `
The boot unit makes the settings that are given here, with the options of "numalign configure", at each boot. Where none are given, a unit that is
there keeps its own, and none is made. Members of the group numalign may use the machine's folder: usermod --append --groups numalign USER.

It can be called again. A file that somebody has edited stays as it is, and is told. --remove leaves these too, a group that has members or was there
before, and a folder with a state in it, until the next boot.

JSON: root, dryRun, commands, notes, files (path, action: write, replace, unchanged, remove, kept or absent, text).

Exit code: 0 where it is done; 1 for an error, such as a file that cannot be written; 2 for a wrong command line.

Examples:
  $ numalign setup --reserved 0 --dry-run
  $ numalign setup --reserved 0
  $ numalign setup --root /mnt/image --managed 2-15 --strict
  $ numalign setup --remove`,
    )
    .action((flags: SetupFlags) => {
      if (flags.remove && settings.words.length > 0)
        command.error(`error: option '${settings.words[0]}' cannot be used with option '--remove'`);
      setup(flags, settings.words);
    });
}

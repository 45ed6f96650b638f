// PassedOptions: the options of another command that a command accepts and passes on unchanged.
import { resolve } from 'node:path';
import { Command, type Option } from 'commander';

// Relative paths must become absolute: a unit has another working directory than the shell.
const PATHS = ['--state-dir', '--devices'];
// Options that the command has itself.
const COMMON = ['--output'];

/** The words on the command line for the other command, in their order. */
export class PassedOptions {
  readonly #words: string[] = [];

  /**
   * @param add adds the other command to a program
   * @param shown the options in the help; all by default
   */
  constructor(
    command: Command,
    add: (program: Command) => unknown,
    except: readonly string[] = [],
    shown?: readonly string[],
  ) {
    const program = new Command().enablePositionalOptions();
    add(program);
    for (const option of program.commands[0]!.options) {
      if ([...COMMON, ...except].includes(option.long!)) continue;
      command.addOption(option.hideHelp(shown?.includes(option.long!) === false));
      command.on(`option:${option.name()}`, (value: string | null) => this.#add(option, value));
    }
  }

  get words(): readonly string[] {
    return this.#words;
  }

  #add({ long, optional }: Option, value: string | null): void {
    if (value === null || value === undefined) this.#words.push(long!);
    else if (optional) this.#words.push(`${long}=${value}`);
    else this.#words.push(long!, PATHS.includes(long!) ? resolve(value) : value);
  }
}

// PassedOptions: options that a command takes for another one, word for word.
import { resolve } from 'node:path';
import { Command, type Option } from 'commander';

// What is below a folder of the shell's is not below that of a unit.
const PATHS = ['--state-dir', '--devices'];
// Each command has its own.
const OWN = ['--output'];

/** The words of a command line that were given for the other command, in their order. */
export class PassedOptions {
  readonly #words: string[] = [];

  /**
   * @param add adds the other command to a program
   * @param shown the options that are in the help; default: all
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
      if ([...OWN, ...except].includes(option.long!)) continue;
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

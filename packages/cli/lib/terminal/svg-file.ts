// --svg: a picture in addition to a command's output, or instead of it.
import { writeFile } from 'node:fs/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { NumalignError } from 'numalign';
import { errnoName, kernelFacts } from 'numalign/tools';
import { print } from './output.js';

const STANDARD_OUTPUT = '-';

export interface SvgFlags {
  svg?: string;
  output: 'text' | 'json';
}

export function svgOption(): Option {
  return new Option(
    '--svg <file>',
    'also draw the machine with its grants; "-": print only the picture',
  ).argParser((value) => {
    if (value === '') throw new InvalidArgumentError('It is empty.');
    return value;
  });
}

/** Ends the command if the picture and JSON would both go to standard output. */
export function checkSvg(command: Command, { svg, output }: SvgFlags): void {
  if (svg === STANDARD_OUTPUT && output === 'json') {
    command.error('error: --svg - and --output json cannot both be the standard output');
  }
}

/** Writes the picture and prints `text`, or prints only the picture. @throws ERR_SYSCALL */
export async function printWithSvg(
  text: () => string | Promise<string>,
  svg: string | undefined,
  picture: () => string | Promise<string>,
): Promise<void> {
  if (svg === STANDARD_OUTPUT) {
    process.stdout.write(await picture());
    return;
  }
  if (svg !== undefined) await writePicture(svg, await picture());
  print(await text());
}

async function writePicture(path: string, picture: string): Promise<void> {
  try {
    await writeFile(path, picture);
  } catch (error) {
    const { errno } = error as NodeJS.ErrnoException;
    if (errno === undefined) throw error;
    throw new NumalignError('ERR_SYSCALL', `cannot write the picture ${path}: ${errnoName(-errno)}`, {
      value: path,
      valid: 'a file that can be written, or - for the standard output',
      ...kernelFacts(error as Error),
      cause: error,
    });
  }
}

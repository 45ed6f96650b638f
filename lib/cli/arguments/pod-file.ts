// The pods that a command is to plan or admit: a file of them.
import { type Command, Option } from 'commander';
import { NumalignError } from '../../base/errors.js';
import type { PodSpec } from '../../index.js';
import { type PodRequest, parsePod } from '../../input/pod-request.js';
import { checkStandardInput, fileName, inPlace, readDocuments } from './documents.js';

export interface FilePod {
  readonly spec: PodSpec;
  /** For messages. */
  readonly place: string;
  readonly request: PodRequest;
}

export function podFileOption(): Option {
  return new Option(
    '-f, --file <file>',
    'the pods: YAML or JSON, several documents allowed; "-": standard input',
  );
}

/**
 * The file that was given. Ends the command where there is none, or where another file is to be the
 * standard input too.
 */
export function fileOf(
  command: Command,
  flags: { file?: string; config?: string; devices?: string },
): string {
  const { file } = flags;
  if (file === undefined) command.error("error: required option '-f, --file <file>' not specified");
  checkStandardInput(command, flags);
  return file;
}

/**
 * Every document is a pod, and all are checked.
 * @throws ERR_INVALID_ARGUMENT, ERR_INVALID_POD, ERR_INVALID_QUANTITY, ERR_INVALID_OPTION
 */
export async function readPods(file: string): Promise<FilePod[]> {
  const documents = await readDocuments(file);
  if (documents.length === 0) {
    throw new NumalignError('ERR_INVALID_ARGUMENT', `${fileName(file)}: there is no pod in it`, {
      value: file,
      valid: 'a manifest of kind Pod',
    });
  }
  return documents.map(({ value, place }) => {
    return { spec: value as PodSpec, place, request: inPlace(place, () => parsePod(value)) };
  });
}

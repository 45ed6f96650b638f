// The documents of a YAML or JSON file, with their places for messages.
import { createReadStream } from 'node:fs';
import type { Command } from 'commander';
import { NumalignError } from 'numalign';
import { errorName, reworded } from 'numalign/tools';
import type { Position, YamlDocument } from './yaml-text.js';

export interface FileDocument {
  /** The file in messages. */
  readonly name: string;
  readonly value: unknown;
  /** The file, and the line if it has several documents. */
  readonly place: string;
  /** The place of a field such as `spec.containers[0].name`. */
  readonly positionOf: (field: string) => Position;
}

/** The file name that stands for standard input. */
export const STANDARD_INPUT = '-';
const MAX_BYTES = 1 << 22;

const WHY_UNREADABLE: Readonly<Record<string, string>> = {
  ENOENT: 'no such file',
  EACCES: 'it cannot be read: permission denied',
  EISDIR: 'it is a folder',
};

function unreadable(place: string, why: string, cause?: unknown): NumalignError {
  return new NumalignError('ERR_INVALID_ARGUMENT', `${place}: ${why}`, { value: place, cause });
}

/** The name of a file in messages. */
export function fileName(path: string): string {
  return path === STANDARD_INPUT ? 'standard input' : path;
}

// What Helm and others replace.
const TEMPLATE = /\{\{-?\s*[.$\w"(/][^{}]*\}\}/;

/** Adds what to do to the message about a value that is a template. */
export const withAdvice = (message: string) =>
  TEMPLATE.test(message) ? `${message}; render the template first, with \`helm template\`` : message;

/** Adds the place to the errors of `action`. */
export function inPlace<T>(place: string, action: () => T): T {
  try {
    return action();
  } catch (cause) {
    if (!(cause instanceof NumalignError)) throw cause;
    throw reworded(cause, `${place}: ${withAdvice(cause.message)}`, { cause });
  }
}

// What is wrong with a template as YAML says nothing of its cause.
function parse(name: string, text: string, read: () => YamlDocument[]): YamlDocument[] {
  try {
    return read();
  } catch (error) {
    const [template] = TEMPLATE.exec(text) ?? [];
    if (template === undefined) throw error;
    throw unreadable(name, `it has ${template}: render the template first, with \`helm template\``, error);
  }
}

/** Ends the command if several files are the standard input: the first would read all of it. */
export function checkStandardInput(
  command: Command,
  flags: {
    file?: readonly string[] | undefined;
    config?: string | undefined;
    devices?: string | undefined;
  },
): void {
  const { file = [], config, devices } = flags;
  const inputs = [...file.map((each) => ['file', each]), ['config', config], ['devices', devices]];
  const names = inputs.flatMap(([name, path]) => (path === STANDARD_INPUT ? [name] : []));
  if (names.length < 2) return;
  const options = [...new Set(names.map((name) => `--${name}`))];
  const one = options.length === 1 ? `only one ${options[0]}` : `only one of ${options.join(', ')}`;
  command.error(`error: ${one} can be the standard input`);
}

async function readText(path: string, name: string): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    // Chunk by chunk, since some files have no end.
    for await (const chunk of path === STANDARD_INPUT ? process.stdin : createReadStream(path)) {
      chunks.push(chunk as Buffer);
      size += (chunk as Buffer).length;
      if (size > MAX_BYTES) break;
    }
  } catch (cause) {
    const code = errorName(cause as NodeJS.ErrnoException) ?? '';
    throw unreadable(name, WHY_UNREADABLE[code] ?? `it cannot be read: ${code}`, cause);
  }
  if (size > MAX_BYTES) throw unreadable(name, `it is larger than ${MAX_BYTES >> 20} MiB`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch (cause) {
    throw unreadable(name, 'it is not UTF-8 text', cause);
  }
}

/** Reads the documents of a file, without empty ones. @throws ERR_INVALID_ARGUMENT */
export async function readDocuments(path: string): Promise<FileDocument[]> {
  const name = fileName(path);
  const { YamlText } = await import('./yaml-text.js');
  const text = await readText(path, name);
  const documents = parse(name, text, () => new YamlText(name, text).documents());
  return documents.map((document) => ({
    name,
    value: document.value,
    place: documents.length === 1 ? name : `${name}, document at line ${document.line}`,
    positionOf: (field) => document.positionOf(field),
  }));
}
